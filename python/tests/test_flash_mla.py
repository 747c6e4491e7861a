"""Sparse attention: what a real kernel gave, and a reference in float64."""

import numpy as np
import pytest

import spmla
from spmla.flash_mla import (
    flash_mla_sparse_fwd,
    flash_mla_with_kvcache,
    get_mla_metadata,
)

from conftest import of_bf16, to_bf16


def close(got, want, absolute, relative):
    finite = np.isfinite(want)
    assert np.array_equal(np.where(finite, 0, got), np.where(finite, 0, want))
    off = np.abs(np.where(finite, got, 0) - np.where(finite, want, 0))
    assert (
        off <= absolute + relative * np.abs(np.where(finite, want, 0))
    ).all()


def attend(q, keys, scale, sink):
    """One head over its keys: out without and with the sink, and lse."""
    if len(keys) == 0:
        return np.zeros(512), np.inf
    s = keys.astype(np.float64) @ q.astype(np.float64) * scale
    lse = s.max() + np.log(np.exp(s - s.max()).sum())
    out = np.exp(s - lse) @ keys[:, :512].astype(np.float64)
    return out / (1 + np.exp(sink - lse)), lse


@pytest.mark.parametrize("case", ["a0_d576_h64", "a3_d512_h64"])
def test_decode_gives_what_flash_mla_gave(place, golden, case):
    g = golden(f"flashmla_sparse_decode/{case}")
    cache = g["kv_cache"]
    if cache.ndim == 3:  # pages that are padded: with their stride
        pages, rows, width = cache.shape
        flat = np.zeros((pages, cache.strides[0]), np.uint8)
        flat[:, : rows * width] = cache.reshape(pages, -1)
        cache = np.lib.stride_tricks.as_strided(
            flat, (pages, rows, 1, width), (flat.strides[0], width, width, 1)
        )
    lens = g["topk_length"] if "tl" in g.params else None
    held = place.put(cache if cache.flags.c_contiguous else flat)
    if place.name == "cuda" and not cache.flags.c_contiguous:
        held = held.view(cache.shape, cache.strides)
    elif place.name == "cpu":
        held = cache
    out, lse = flash_mla_with_kvcache(
        place.put(g["q"]),
        held,
        None,
        None,
        512,
        get_mla_metadata()[0],
        softmax_scale=g.params["softmax_scale"],
        is_fp8_kvcache=True,
        indices=place.put(g["indices"]),
        attn_sink=place.put(g["attn_sink"]),
        topk_length=place.put(lens),
    )
    # FlashMLA rounds scales, values and weights to bf16. The CPU rounds only
    # weights, Hopper rounds to f16. V4's scales are powers of two.
    same = place.name == "cpu" and g["q"].shape[-1] == 512
    out, want = of_bf16(place.get(out)), of_bf16(g["out"])
    close(out, want, 1e-3 if same else 6e-3, (2.01 if same else 3.01) / 128)
    close(place.get(lse), g["lse"], 1e-6 if same else 2e-3, 8.01 / 65536)


def bf16_world(rng, b, s_q, heads, dim, rows, topk):
    q = to_bf16(rng.standard_normal((b, s_q, heads, dim)))
    keys = to_bf16(rng.standard_normal((rows, dim)))
    indices = rng.integers(0, rows, (b, s_q, topk)).astype(np.int32)
    return q, keys, indices


def test_decode_of_several_queries_a_request(place):
    rng = np.random.default_rng(1)
    b, s_q, heads, topk, scale = 2, 3, 5, 20, 576**-0.5
    q, keys, indices = bf16_world(rng, b, s_q, heads, 576, 32, topk)
    indices[0, 1, 4:9] = -1
    lens = np.array([topk, 7], np.int32)
    sink = rng.standard_normal(heads).astype(np.float32)
    out, lse = flash_mla_with_kvcache(
        place.put(q),
        place.put(keys.reshape(2, 16, 1, 576)),
        None,
        None,
        512,
        get_mla_metadata(1, 2, 3)[0],
        indices=place.put(indices),
        attn_sink=place.put(sink),
        topk_length=place.put(lens),
    )
    assert out.shape == (b, s_q, heads, 512) and lse.shape == (b, heads, s_q)
    out, lse = of_bf16(place.get(out)), place.get(lse)
    for i, j, h in np.ndindex(b, s_q, heads):
        chosen = [x for x in indices[i, j, : lens[i]] if x >= 0]
        want, want_lse = attend(
            of_bf16(q[i, j, h]), of_bf16(keys[chosen]), scale, sink[h]
        )
        close(out[i, j, h], want, 4e-3, 2.01 / 128)
        close(lse[i, h, j], want_lse, 1e-5, 8.01 / 65536)


def test_sparse_forward_with_lengths_and_rows_without_keys(place):
    rng = np.random.default_rng(2)
    s_q, heads, dim, rows, topk = 4, 3, 512, 24, 12
    q, keys, indices = bf16_world(rng, 1, s_q, heads, dim, rows, topk)
    indices[0, 0, 3] = rows + 5  # legal here, and no key
    indices[0, 3] = -1
    lens = np.array([topk, 5, 0, topk], np.int32)
    out, most, lse = flash_mla_sparse_fwd(
        place.put(q[0]),
        place.put(keys[:, None]),
        place.put(indices[0][:, None]),
        0.04,
        topk_length=place.put(lens),
    )
    out, most, lse = of_bf16(place.get(out)), place.get(most), place.get(lse)
    for t, h in np.ndindex(s_q, heads):
        chosen = [x for x in indices[0, t, : lens[t]] if 0 <= x < rows]
        k = of_bf16(keys[chosen])
        want, want_lse = attend(of_bf16(q[0, t, h]), k, 0.04, -np.inf)
        close(out[t, h], want, 4e-3, 3.01 / 128)
        close(lse[t, h], want_lse, 1e-5, 2.01 / 65536)
        top = (k @ of_bf16(q[0, t, h])).max() * 0.04 if chosen else -np.inf
        close(most[t, h], top, 1e-5, 2.01 / 65536)


def test_prefill_gives_what_a_real_kernel_gave(place, golden):
    g = golden("rocm_sparse_prefill/a_dense_sink")
    out, _, _ = flash_mla_sparse_fwd(
        place.put(g["q"]),
        place.put(g["kv"]),
        place.put(np.ascontiguousarray(g["indices"])),
        g.params["scale"],
        attn_sink=place.put(g["attn_sink"]),
        topk_length=place.put(g["topk_length"]),
    )
    close(of_bf16(place.get(out)), of_bf16(g["output"]), 4e-3, 3.01 / 128)


def test_arguments_that_do_not_fit_are_named():
    rng = np.random.default_rng(3)
    q, keys, indices = bf16_world(rng, 1, 1, 2, 576, 16, 4)
    cache = keys.reshape(1, 16, 1, 576)
    good = dict(indices=indices)
    meta = get_mla_metadata()[0]

    def call(*args, **changed):
        return flash_mla_with_kvcache(*args, **dict(good, **changed))

    with pytest.raises(NotImplementedError, match="without indices"):
        call(q, cache, None, None, 512, meta, indices=None)
    with pytest.raises(ValueError, match="head_dim_v"):
        call(q, cache, None, None, 576, meta)
    with pytest.raises(ValueError, match="k_cache: shape"):
        call(q, cache[..., :512], None, None, 512, meta)
    with pytest.raises(ValueError, match="indices: 2 dim"):
        call(q, cache, None, None, 512, meta, indices=indices[0])
    with pytest.raises(ValueError, match="topk_length"):
        call(q, cache, None, None, 512, meta, topk_length=np.zeros(2, np.int32))
    with pytest.raises(ValueError, match="q: float16"):
        call(q.view(np.float16), cache, None, None, 512, meta)
    with pytest.raises(TypeError, match="not an array: list"):
        call([1], cache, None, None, 512, meta)
    with pytest.raises(spmla.Error, match="softmax_scale") as caught:
        call(q, cache, None, None, 512, meta, softmax_scale=-1.0)
    assert caught.value.status == "SPMLA_E_RANGE"
