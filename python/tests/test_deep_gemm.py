"""Index scores: what DeepGEMM gave, and a reference in float64."""

import numpy as np
import pytest

from spmla.deep_gemm import (
    fp8_mqa_logits,
    fp8_paged_mqa_logits,
    get_paged_mqa_logits_metadata,
)

from conftest import of_e4m3


def score(q, k, scale, w):
    """[heads, 128], [keys, 128], [keys], [heads] to [keys]."""
    dots = np.maximum(of_e4m3(k) @ of_e4m3(q).T, 0)
    return dots @ w.astype(np.float64) * scale


def cut(q, k, scale, w):
    """How far Hopper's products of e4m3 may be off: see mqa_logits.h."""
    largest = np.abs(of_e4m3(q)[:, None] * of_e4m3(k)).max(2)
    return 0.82 * (np.abs(w).astype(np.float64) @ largest) * scale


def alike(got, want):
    """The measure of DeepGEMM's own tests; its sums cut off what they add."""
    got, want = got.astype(np.float64), want.astype(np.float64)
    total = (got**2 + want**2).sum()
    assert total - 2 * (got * want).sum() <= 5e-6 * total


def test_scores_are_those_of_deep_gemm(place, golden):
    g = golden("deepgemm_mqa_logits/a0")
    logits = place.get(
        fp8_mqa_logits(
            place.put(g["q"]),
            (place.put(g["k"]), place.put(g["k_scale"])),
            place.put(g["weights"]),
            place.put(g["cu_seq_len_k_start"]),
            place.put(g["cu_seq_len_k_end"]),
        )
    )
    want = g["logits"]
    assert logits.shape == want.shape
    keys = np.arange(want.shape[1])
    for t, (first, last) in enumerate(
        zip(g["cu_seq_len_k_start"], g["cu_seq_len_k_end"])
    ):
        inside = (keys >= first) & (keys < last)
        assert np.isneginf(logits[t, ~inside]).all()
        alike(logits[t, inside], want[t, inside])


def test_compressed_rows_begin_at_their_first_key(place, golden):
    g = golden("deepgemm_mqa_logits/a0")
    first, last = g["cu_seq_len_k_start"], g["cu_seq_len_k_end"]
    widest = int((last - first).max())
    logits = place.get(
        fp8_mqa_logits(
            place.put(g["q"]),
            (place.put(g["k"]), place.put(g["k_scale"])),
            place.put(g["weights"]),
            place.put(first),
            place.put(last),
            clean_logits=False,
            max_seqlen_k=widest,
        )
    )
    assert logits.shape == (len(first), widest)
    for t in range(len(first)):
        alike(
            logits[t, : last[t] - first[t]], g["logits"][t, first[t] : last[t]]
        )


def test_paged_scores_are_those_of_deep_gemm(place, golden):
    g = golden("deepgemm_paged_mqa_logits/a1_b2_n2")
    logits = place.get(
        fp8_paged_mqa_logits(
            place.put(g["q"]),
            place.put(g["kv_cache"]),
            place.put(g["weights"]),
            place.put(g["context_lens"]),
            place.put(g["block_table"]),
            None,
            g.params["max_context_len"],
            clean_logits=True,
        )
    )
    assert logits.shape == g["logits"].shape
    for row, length in enumerate(g["context_lens"].ravel()):
        alike(logits[row, :length], g["logits"][row, :length])
        assert np.isneginf(logits[row, length:]).all()


def test_a_length_a_request_is_that_of_its_last_query(place, golden):
    g = golden("deepgemm_paged_mqa_logits/a1_b2_n2")
    last = g["context_lens"][:, 1]
    each = np.stack([last - 1, last], 1).astype(np.int32)

    def logits(lens):
        return place.get(
            fp8_paged_mqa_logits(
                place.put(g["q"]),
                place.put(g["kv_cache"]),
                place.put(g["weights"]),
                place.put(np.ascontiguousarray(lens)),
                place.put(g["block_table"]),
                None,
                g.params["max_context_len"],
                clean_logits=True,
            )
        )

    assert (logits(last) == logits(each)).all()
    assert np.isneginf(logits(last)[0, last[0] - 1])


def test_the_schedule_is_that_of_deep_gemm(golden):
    g = golden("deepgemm_paged_mqa_logits/a1_b2_n2")
    schedule = get_paged_mqa_logits_metadata(
        g["context_lens"], 64, g.params["num_sms"]
    )
    assert (schedule == g["schedule_metadata"]).all()


def test_paged_scores_of_one_query(place):
    rng = np.random.default_rng(4)
    b, heads, rows, longest = 3, 6, 16, 40
    q = rng.integers(0, 120, (b, 1, heads, 128)).astype(np.uint8)
    w = rng.standard_normal((b, heads)).astype(np.float32)
    pages = np.zeros((9, rows * 132), np.uint8)
    keys = rng.integers(0, 120, (9, rows, 128)).astype(np.uint8)
    scales = rng.random((9, rows)).astype(np.float32)
    pages[:, : rows * 128] = keys.reshape(9, -1)
    pages[:, rows * 128 :] = scales.view(np.uint8).reshape(9, -1)
    table = rng.permutation(9).reshape(3, 3).astype(np.int32)
    lens = np.array([40, 1, 17], np.int32)
    logits = place.get(
        fp8_paged_mqa_logits(
            place.put(q),
            place.put(pages.reshape(9, rows, 1, 132)),
            place.put(w),
            place.put(lens),
            place.put(table),
            None,
            longest,
        )
    )
    for i, length in enumerate(lens):
        k = keys[table[i]].reshape(-1, 128)[:length]
        s = scales[table[i]].reshape(-1)[:length]
        want = score(q[i, 0], k, s, w[i])
        off = 1e-4 * max(np.abs(want).max(), 1)
        if place.name == "cuda":
            off = off + cut(q[i, 0], k, s, w[i])
        assert (np.abs(logits[i, :length] - want) <= off).all()


def test_lengths_past_the_row_are_refused():
    with pytest.raises(ValueError, match="more than 8"):
        fp8_paged_mqa_logits(
            np.zeros((1, 1, 2, 128), np.uint8),
            np.zeros((1, 16, 1, 132), np.uint8),
            np.zeros((1, 2), np.float32),
            np.array([9], np.int32),
            np.zeros((1, 1), np.int32),
            None,
            8,
        )
