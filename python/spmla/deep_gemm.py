"""Index scores with the names and arguments of DeepGEMM.

    from spmla.deep_gemm import fp8_paged_mqa_logits

Queries and keys are e4m3 of 128 values, heads 1..128. `stream` is a CUstream;
left out, it is PyTorch's current one.
"""

from __future__ import annotations

from ctypes import byref
from typing import Any

import numpy as np

from . import _checks as checks
from . import _native as n
from ._arrays import (
    CPU,
    View,
    beside,
    compute,
    cut,
    ints,
    make,
    stream_of,
    to_host,
    view,
)
from ._context import operations

_DIM = 128
_ALIGN = 256  # elements of a row of logits

_constants: dict[tuple[Any, ...], Any] = {}


def _constant(like: Any, known: View, how: str, rows: int, by: int) -> View:
    """[rows] of row // by, int32, or row * by, int64. Kept, because captured
    graphs contain its address."""
    key = (known.device, known.ordinal, how, rows, by)
    if key not in _constants:
        row = np.arange(rows, dtype=np.int64)
        host = (row // by).astype(np.int32) if how == "div" else row * by
        _constants[key] = ints(like, host)
    return view(_constants[key])


def _token_lens(
    name: str, like: Any, lens: Any, tokens: int, next_n: int
) -> View:
    """A length for each token: as given, or from the length of the request's
    last token."""
    each = len(view(lens).shape) == 2
    count = tokens if each else tokens // next_n
    known = checks.flat(name, lens, count, checks.INT32, view(like))
    if each or next_n == 1:
        return known
    return view(
        compute(
            like,
            lambda xp, a: a.reshape(-1, 1)
            - xp.arange(next_n - 1, -1, -1, dtype=xp.int32, **beside(a)),
            lens,
        )
    )


def fp8_mqa_logits(
    q: Any,
    kv: tuple[Any, Any],
    weights: Any,
    cu_seq_len_k_start: Any,
    cu_seq_len_k_end: Any,
    clean_logits: bool = True,
    max_seqlen_k: int = 0,
    *,
    stream: int | None = None,
) -> Any:
    """Scores of dense keys: logits[m, n] = scale[n] * sum over
    heads of relu(q[m, h] . k[n]) * weights[m, h], for start[m] <= n < end[m].

    q is [m, heads, 128], kv the keys [n, 128] and their scales float32 [n],
    weights float32 [m, heads], the starts and ends int32 [m]. All other
    columns are -inf with clean_logits and not written without. With
    max_seqlen_k (not clean) column c is key start[m] + c. Returns float32 [m,
    n] or [m, max_seqlen_k]; the stride of its rows is larger.
    """
    if clean_logits and max_seqlen_k:
        raise ValueError("clean_logits and max_seqlen_k exclude each other")
    known = checks.array("q", q, 3, checks.E4M3)
    checks.dense("q", known)
    tokens, heads, dim = known.shape
    keys = checks.array("kv[0]", kv[0], 2, checks.E4M3, known)
    checks.dense("kv[0]", keys)
    checks.same("kv[0]", (keys.shape[1], dim), (_DIM, _DIM))
    w = checks.array("weights", weights, 2, checks.F32, known)
    checks.same("weights", w.shape, (tokens, heads))
    columns = max_seqlen_k or keys.shape[0]
    stride = -(-columns // _ALIGN) * _ALIGN
    logits = make(q, (tokens, stride), "f4")
    form = (
        n.LOGITS_COMPRESSED
        if max_seqlen_k
        else n.LOGITS_CLEAN if clean_logits else n.LOGITS_ABSOLUTE
    )
    args = n.MqaLogitsGathered(
        tokens=tokens,
        heads=heads,
        keys=keys.shape[0],
        form=form,
        columns=columns,
        q=known.ptr,
        weights=w.ptr,
        weights_stride_elems=w.strides[0],
        k=keys.ptr,
        k_scales=checks.flat(
            "kv[1]", kv[1], keys.shape[0], checks.F32, known
        ).ptr,
        starts=checks.flat(
            "cu_seq_len_k_start",
            cu_seq_len_k_start,
            tokens,
            checks.INT32,
            known,
        ).ptr,
        ends=checks.flat(
            "cu_seq_len_k_end", cu_seq_len_k_end, tokens, checks.INT32, known
        ).ptr,
        logits=view(logits).ptr,
        logits_stride_elems=stride,
    )
    operations(known.device, known.ordinal).call(
        n.lib.spmla_mqa_logits_gathered, byref(args), stream_of(q, stream)
    )
    return cut(logits, (tokens, columns), (stride, 1))


def get_paged_mqa_logits_metadata(
    context_lens: Any,
    block_kv: int,
    num_sms: int,
    indices: Any = None,
    *,
    stream: int | None = None,
) -> Any:
    """DeepGEMM's schedule of a batch's scores over SMs, int32 [num_sms + 1,
    2], by the rule of sm_100 on such a device, else of sm_90.
    `fp8_paged_mqa_logits` of this module does not need it."""
    known = view(context_lens)
    next_n = known.shape[1] if len(known.shape) == 2 else 1
    batch = known.shape[0]
    context = operations(known.device, known.ordinal)
    rule = n.SCHEDULE_SM90
    if indices is not None:
        rule = n.SCHEDULE_SM100_VARLEN
    elif context.plan.device.arch >= 100:
        rule = n.SCHEDULE_SM100
    schedule = make(context_lens, (num_sms + 1, 2), "i4")
    args = n.IndexerSchedule(
        rule=rule,
        batch=batch,
        next_n=next_n,
        num_sms=num_sms,
        context_lens=known.ptr,
        context_lens_stride_elems=max(known.strides[0], next_n),
        indices=checks.optional("indices", indices, batch, checks.INT32, known),
        schedule=view(schedule).ptr,
    )
    context.call(
        n.lib.spmla_indexer_schedule,
        byref(args),
        stream_of(context_lens, stream),
    )
    return schedule


def fp8_paged_mqa_logits(
    q: Any,
    kv_cache: Any,
    weights: Any,
    context_lens: Any,
    block_table: Any,
    schedule_meta: Any,
    max_context_len: int,
    clean_logits: bool = False,
    indices: Any = None,
    *,
    stream: int | None = None,
) -> Any:
    """Scores of keys in pages: logits[b * next_n + j, p] for the positions p <
    context_lens[b, j], as in `fp8_mqa_logits`.

    q is [b, next_n, heads, 128], kv_cache uint8 [pages, rows, 1, 132] (in a
    page all keys, then all scales), weights float32 [b * next_n, heads],
    context_lens int32 [b, next_n], or [b] for each request's last token,
    block_table int32 [b, columns]. No length may exceed max_context_len; only
    the CPU checks that, elsewhere a longer row runs into the next one. Columns
    past a length are -inf with clean_logits and not written without.
    schedule_meta and indices are ignored. Returns float32 [b * next_n,
    max_context_len]; the stride of its rows is larger.
    """
    known = checks.array("q", q, 4, checks.E4M3)
    checks.dense("q", known)
    b, next_n, heads, dim = known.shape
    tokens = b * next_n
    keys = checks.array("kv_cache", kv_cache, 4, checks.E4M3, known)
    checks.same("kv_cache", (dim, *keys.shape[2:]), (_DIM, 1, _DIM + 4))
    w = checks.array("weights", weights, 2, checks.F32, known)
    checks.dense("weights", w)
    checks.same("weights", w.shape, (tokens, heads))
    table = checks.array("block_table", block_table, 2, checks.INT32, known)
    stride = -(-max_context_len // _ALIGN) * _ALIGN
    logits = make(
        q, (tokens, stride), "f4", float("-inf") if clean_logits else None
    )
    lens = _token_lens("context_lens", q, context_lens, tokens, next_n)
    if known.device == CPU and (to_host(lens) > max_context_len).any():
        raise ValueError(f"context_lens: more than {max_context_len}")
    args = n.MqaLogits(
        tokens=tokens,
        heads=heads,
        rows=b,
        columns=table.shape[1],
        table_stride_elems=table.strides[0] if b > 1 else table.shape[1],
        q=known.ptr,
        weights=w.ptr,
        token_row=_constant(q, known, "div", tokens, next_n).ptr,
        context_lens=lens.ptr,
        row_starts=_constant(q, known, "mul", tokens, stride).ptr,
        block_table=table.ptr,
        logits=view(logits).ptr,
        logits_elems=tokens * stride,
    )
    args.cache = checks.cache(keys, n.LAYOUT_INDEX_FP8)
    operations(known.device, known.ordinal).call(
        n.lib.spmla_mqa_logits, byref(args), stream_of(q, stream)
    )
    return cut(logits, (tokens, max_context_len), (stride, 1))
