"""Top-k per row with the names and arguments of vLLM's operations.

    from spmla.vllm import top_k_per_row_decode

The set is exact, ties take the lower position, and positions ascend: the same
input gives the same indices. `stream` is a CUstream; left out, it is PyTorch's
current one.
"""

from __future__ import annotations

from ctypes import byref
from typing import Any

from . import _checks as checks
from . import _native as n
from ._arrays import View, beside, compute, stream_of, view
from ._context import operations
from .deep_gemm import _constant, _token_lens


def _topk(
    logits: Any,
    starts: View,
    lens: View,
    indices: Any,
    num_rows: int,
    topk: int,
    stream: int | None,
) -> None:
    known = checks.array("logits", logits, 2, checks.F32 + checks.BF16)
    out = checks.array("indices", indices, 2, checks.INT32, known)
    if out.shape[0] < num_rows or out.shape[1] < topk:
        raise ValueError(
            f"indices: shape {out.shape}, want at least" f" {(num_rows, topk)}"
        )
    if known.shape[0] < num_rows:
        raise ValueError(f"logits: {known.shape[0]} rows, want {num_rows}")
    args = n.Topk(
        rows=num_rows,
        k=topk,
        logits=known.ptr,
        logits_elems=(known.shape[0] - 1) * known.strides[0] + known.shape[1],
        row_starts=starts.ptr,
        context_lens=lens.ptr,
        indices=out.ptr,
        indices_stride_elems=max(out.strides[0], topk),
        logits_dtype=n.REAL_BF16 if known.dtype in checks.BF16 else n.REAL_F32,
    )
    operations(known.device, known.ordinal).call(
        n.lib.spmla_topk, byref(args), stream_of(logits, stream)
    )


def top_k_per_row_prefill(
    logits: Any,
    row_starts: Any,
    row_ends: Any,
    indices: Any,
    num_rows: int,
    stride0: int,
    stride1: int,
    topk: int,
    *,
    stream: int | None = None,
) -> None:
    """The topk largest of logits[r, row_starts[r]:row_ends[r]], as positions
    from row_starts[r] on, then -1, into indices int32 [num_rows, topk]. logits
    are float32 or bfloat16. The logits of a row with at most topk elements are
    not read."""
    known = checks.array("logits", logits, 2, checks.F32 + checks.BF16)
    _strides(known, stride0, stride1)
    for name, value in (("row_starts", row_starts), ("row_ends", row_ends)):
        checks.array(name, value, 1, checks.INT32, known)
    first = compute(
        logits,
        lambda xp, a: xp.arange(num_rows, dtype=xp.int64, **beside(a)) * stride0
        + a[:num_rows],
        row_starts,
    )
    lens = compute(
        logits,
        lambda xp, a, b: b[:num_rows] - a[:num_rows],
        row_starts,
        row_ends,
    )
    _topk(logits, view(first), view(lens), indices, num_rows, topk, stream)


def top_k_per_row_decode(
    logits: Any,
    next_n: int,
    seq_lens: Any,
    indices: Any,
    num_rows: int,
    stride0: int,
    stride1: int,
    topk: int,
    *,
    stream: int | None = None,
) -> None:
    """As `top_k_per_row_prefill`, for rows that begin at 0. seq_lens is int32:
    [num_rows / next_n], the length of each request's last token, or [num_rows
    / next_n, next_n], the length of each token."""
    known = checks.array("logits", logits, 2, checks.F32 + checks.BF16)
    _strides(known, stride0, stride1)
    if num_rows % next_n:
        raise ValueError(f"num_rows: {num_rows} is no multiple of {next_n}")
    lens = _token_lens("seq_lens", logits, seq_lens, num_rows, next_n)
    starts = _constant(logits, known, "mul", num_rows, stride0)
    _topk(logits, starts, lens, indices, num_rows, topk, stream)


def _strides(known: View, stride0: int, stride1: int) -> None:
    if stride1 != 1 or (known.shape[0] > 1 and known.strides[0] != stride0):
        raise ValueError(
            f"strides {stride0}, {stride1}: the strides of logits are"
            f" {known.strides}"
        )
