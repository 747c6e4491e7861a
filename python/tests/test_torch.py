"""PyTorch's tensors, on the CPU: the results are NumPy's, to the bit."""

import numpy as np
import pytest

import spmla

torch = pytest.importorskip("torch", reason="SKIPPED: PyTorch is not there")


def tensor(array, bf16=False):
    if array is None:
        return None
    array = np.ascontiguousarray(array)
    if bf16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def same(got, want):
    if got.dtype == torch.bfloat16:
        got, want = got.view(torch.int16), want.view(np.int16)
    assert np.array_equal(got.numpy(), want)


def test_decode(golden):
    g = golden("flashmla_sparse_decode/a0_d576_h64")
    indices = g["indices"].reshape(1, 2, -1)
    q, lens = g["q"].reshape(1, 2, 64, 576), np.array([100], np.int32)
    meta = spmla.get_mla_metadata()[0]
    want = spmla.flash_mla_with_kvcache(
        q,
        g["kv_cache"],
        None,
        None,
        512,
        meta,
        indices=indices,
        topk_length=lens,
    )
    got = spmla.flash_mla_with_kvcache(
        tensor(q, True),
        tensor(g["kv_cache"]),
        None,
        None,
        512,
        meta,
        indices=tensor(indices),
        topk_length=tensor(lens),
    )
    assert got[0].dtype == torch.bfloat16
    for a, b in zip(got, want):
        same(a, b)


def test_sparse_forward(golden):
    g = golden("rocm_sparse_prefill/a_dense_sink")
    indices = np.ascontiguousarray(g["indices"])
    want = spmla.flash_mla_sparse_fwd(
        g["q"], g["kv"], indices, 0.04, attn_sink=g["attn_sink"]
    )
    got = spmla.flash_mla_sparse_fwd(
        tensor(g["q"], True),
        tensor(g["kv"], True),
        tensor(indices),
        0.04,
        attn_sink=tensor(g["attn_sink"]),
    )
    for a, b in zip(got, want):
        same(a, b)


@pytest.mark.parametrize("each", [True, False])
def test_paged_scores(golden, each):
    g = golden("deepgemm_paged_mqa_logits/a1_b2_n2")
    lens = g["context_lens"]
    lens = lens if each else np.ascontiguousarray(lens[:, 1])
    names = ["q", "kv_cache", "weights", None, "block_table"]
    arrays = [g[name] if name else lens for name in names]
    want = spmla.fp8_paged_mqa_logits(*arrays, None, 192, clean_logits=True)
    got = spmla.fp8_paged_mqa_logits(
        *[tensor(a) for a in arrays], None, 192, clean_logits=True
    )
    same(got, want)


def test_topk():
    logits = torch.randn(6, 48)
    starts = torch.tensor([0, 3, 20, 30, 10, 5], dtype=torch.int32)
    ends = torch.tensor([48, 30, 26, 48, 40, 40], dtype=torch.int32)
    indices = torch.zeros(6, 5, dtype=torch.int32)
    spmla.top_k_per_row_prefill(logits, starts, ends, indices, 6, 48, 1, 5)
    for r in range(6):
        best = logits[r, starts[r] : ends[r]].topk(5)[1]
        assert indices[r].tolist() == sorted(best.tolist())
