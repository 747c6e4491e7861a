"""Sparse attention with the names and arguments of FlashMLA.

    from spmla.flash_mla import flash_mla_with_kvcache, get_mla_metadata

Queries and results are bf16, heads are 1..256, top-k is any number. A result
that FlashMLA leaves undefined is defined here: an index outside the cache does
not count. `stream` is a CUstream; left out, it is PyTorch's current one.
"""

from __future__ import annotations

import dataclasses
from ctypes import byref
from typing import Any

from . import _checks as checks
from . import _native as n
from ._arrays import View, beside, compute, cut, make, stream_of, view
from ._context import operations

_DIM_V = 512
_LAYOUTS = {
    (576, 656): n.LAYOUT_FP8_DS_MLA,
    (512, 584): n.LAYOUT_V4_FP8,
    (576, 1152): n.LAYOUT_MLA_BF16,
}


@dataclasses.dataclass
class FlashMLASchedMeta:
    """The result of `get_mla_metadata`. It holds nothing: a token's keys are
    not split, so a call depends on no other."""


def get_mla_metadata(
    *args: Any, **kwargs: Any
) -> tuple[FlashMLASchedMeta, None]:
    """The tile_scheduler_metadata argument of `flash_mla_with_kvcache`.
    Ignores its own arguments."""
    return FlashMLASchedMeta(), None


def _cache(name: str, value: Any, dim: int, like: View) -> n.Cache:
    known = checks.array(name, value, 4, (*checks.E4M3, *checks.BF16), like)
    width = known.shape[3] * known.itemsize
    layout = _LAYOUTS.get((dim, width))
    if layout is None or known.shape[2] != 1:
        raise ValueError(
            f"{name}: shape {known.shape}, want rows of 656 bytes"
            " (fp8) or 576 bf16 for queries of 576, of 584 bytes"
            " for 512, of one head"
        )
    if known.shape[1] > 1 and known.strides[1] * known.itemsize != width:
        raise ValueError(f"{name}: the rows of a page are not contiguous")
    return checks.cache(known, layout)


def _token_lens(name: str, q: Any, lens: Any) -> Any:
    """Expands one length per batch element to one per token."""
    b, per = q.shape[:2]
    if lens is None or per == 1:
        return lens
    checks.flat(name, lens, b, checks.INT32, view(q))
    return compute(
        q,
        lambda xp, a: a.reshape(-1, 1)
        + xp.zeros((1, per), dtype=xp.int32, **beside(a)),
        lens,
    )


def flash_mla_with_kvcache(
    q: Any,
    k_cache: Any,
    block_table: Any,
    cache_seqlens: Any,
    head_dim_v: int,
    tile_scheduler_metadata: FlashMLASchedMeta,
    num_splits: None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    is_fp8_kvcache: bool = False,
    indices: Any = None,
    attn_sink: Any = None,
    extra_k_cache: Any = None,
    extra_indices_in_kvcache: Any = None,
    topk_length: Any = None,
    extra_topk_length: Any = None,
    *,
    stream: int | None = None,
) -> tuple[Any, Any]:
    """Attention of each query over the cache rows that `indices` names.

    q is [b, s_q, heads, 576] with rows of 656 bytes (or 576 bf16), or [b, s_q,
    heads, 512] with V4's rows of 584, which may be of two caches; k_cache is
    [pages, rows, 1, ..], indices int32 [b, s_q, topk], -1 for none,
    topk_length int32 [b], attn_sink float32 [heads]. Dense attention (no
    `indices`) is not supported; block_table and cache_seqlens are ignored.

    Returns out [b, s_q, heads, 512] and lse float32 [b, heads, s_q], natural,
    +inf for a query without keys.
    """
    if indices is None:
        raise NotImplementedError("attention without indices is not sparse")
    if causal:
        raise ValueError("causal: indices say which keys a query sees")
    if head_dim_v != _DIM_V:
        raise ValueError(f"head_dim_v: {head_dim_v}, want {_DIM_V}")
    if num_splits is not None:
        raise ValueError("num_splits: want None, as get_mla_metadata gives")
    known = checks.array("q", q, 4, checks.BF16)
    b, s_q, heads, dim = known.shape
    tokens = b * s_q
    slots = checks.array("indices", indices, 3, checks.INT32, known)
    checks.same("indices", slots.shape[:2], (b, s_q))
    out = make(q, (b, s_q, heads, _DIM_V), "bf16")
    lse = make(q, (b, s_q, heads), "f4")
    lens = _token_lens("topk_length", q, topk_length)
    args = n.SparseDecode(
        tokens=tokens,
        heads=heads,
        topk=slots.shape[2],
        softmax_scale=dim**-0.5 if softmax_scale is None else softmax_scale,
        q=known.ptr,
        q_token_stride_elems=checks.rows("q", known),
        q_head_stride_elems=known.strides[2],
        slots=slots.ptr,
        slots_stride_elems=checks.rows("indices", slots),
        topk_lens=checks.optional(
            "topk_length", lens, tokens, checks.INT32, known
        ),
        attn_sink=checks.optional(
            "attn_sink", attn_sink, heads, checks.F32, known
        ),
        out=view(out).ptr,
        out_token_stride_elems=heads * _DIM_V,
        out_head_stride_elems=_DIM_V,
        lse=view(lse).ptr,
        lse_token_stride_elems=heads,
        lse_head_stride_elems=1,
    )
    args.cache = _cache("k_cache", k_cache, dim, known)
    extra_lens = _token_lens("extra_topk_length", q, extra_topk_length)
    if extra_k_cache is not None:
        more = checks.array(
            "extra_indices_in_kvcache",
            extra_indices_in_kvcache,
            3,
            checks.INT32,
            known,
        )
        checks.same("extra_indices_in_kvcache", more.shape[:2], (b, s_q))
        args.extra_topk = more.shape[2]
        args.extra_slots = more.ptr
        args.extra_slots_stride_elems = checks.rows(
            "extra_indices_in_kvcache", more
        )
        args.extra_topk_lens = checks.optional(
            "extra_topk_length", extra_lens, tokens, checks.INT32, known
        )
        args.extra_cache = _cache("extra_k_cache", extra_k_cache, dim, known)
    operations(known.device, known.ordinal).call(
        n.lib.spmla_sparse_decode, byref(args), stream_of(q, stream)
    )
    return out, cut(lse, (b, heads, s_q), (s_q * heads, 1, heads))


def flash_mla_sparse_fwd(
    q: Any,
    kv: Any,
    indices: Any,
    sm_scale: float,
    d_v: int = 512,
    attn_sink: Any = None,
    topk_length: Any = None,
    indexer_topk: int = 0,
    *,
    stream: int | None = None,
) -> tuple[Any, Any, Any]:
    """Attention of each query over rows of bf16 keys.

    q is [s_q, heads, 576 or 512], kv [s_kv, 1, the same], indices int32 [s_q,
    1, topk]; one outside [0, s_kv) does not count. topk_length is int32 [s_q],
    attn_sink float32 [heads].

    Returns out [s_q, heads, 512], max_logits and lse, float32 [s_q, heads],
    natural; for a query without keys 0, -inf and +inf.
    """
    if d_v != _DIM_V:
        raise ValueError(f"d_v: {d_v}, want {_DIM_V}")
    if indexer_topk:
        raise NotImplementedError("indexer_topk: there is no lse_indexer")
    known = checks.array("q", q, 3, checks.BF16)
    s_q, heads, dim = known.shape
    keys = checks.array("kv", kv, 3, checks.BF16, known)
    checks.same("kv", keys.shape[1:], (1, dim))
    which = checks.array("indices", indices, 3, checks.INT32, known)
    checks.same("indices", which.shape[:2], (s_q, 1))
    out = make(q, (s_q, heads, _DIM_V), "bf16")
    most = make(q, (s_q, heads), "f4")
    lse = make(q, (s_q, heads), "f4")
    args = n.SparsePrefill(
        tokens=s_q,
        heads=heads,
        dim=dim,
        topk=which.shape[2],
        kv_rows=keys.shape[0],
        softmax_scale=sm_scale,
        q=known.ptr,
        q_token_stride_elems=known.strides[0],
        q_head_stride_elems=known.strides[1],
        kv=keys.ptr,
        kv_stride_elems=keys.strides[0],
        indices=which.ptr,
        indices_stride_elems=which.strides[0],
        topk_lens=checks.optional(
            "topk_length", topk_length, s_q, checks.INT32, known
        ),
        attn_sink=checks.optional(
            "attn_sink", attn_sink, heads, checks.F32, known
        ),
        out=view(out).ptr,
        out_token_stride_elems=heads * _DIM_V,
        out_head_stride_elems=_DIM_V,
        max_logits=view(most).ptr,
        lse=view(lse).ptr,
        lse_token_stride_elems=heads,
        lse_head_stride_elems=1,
    )
    operations(known.device, known.ordinal).call(
        n.lib.spmla_sparse_prefill, byref(args), stream_of(q, stream)
    )
    return out, most, lse
