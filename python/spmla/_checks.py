"""Checks of the arrays that the peers' functions take."""

from __future__ import annotations

import math
from typing import Any

from . import _native as n
from ._arrays import View, view

# Raw bits stand in for what NumPy has not.
INT32 = ("int32",)
F32 = ("float32",)
BF16 = ("bfloat16", "uint16")
E4M3 = ("float8_e4m3fn", "uint8")


def array(
    name: str,
    value: Any,
    dims: int,
    dtypes: tuple[str, ...],
    like: View | None = None,
) -> View:
    """The array, if it has these dimensions and one of these types, lies on
    the device of `like`, and its last dimension is contiguous."""
    known = view(value)
    if len(known.shape) != dims:
        raise ValueError(f"{name}: {len(known.shape)} dimensions, want {dims}")
    if known.dtype not in dtypes:
        raise ValueError(f"{name}: {known.dtype}, want {' or '.join(dtypes)}")
    if known.shape[-1] > 1 and known.strides[-1] != 1:
        raise ValueError(f"{name}: the last dimension is not contiguous")
    beside(name, known, like)
    return known


def beside(name: str, known: View, like: View | None) -> None:
    """Both are on one device."""
    if like is not None and (known.device, known.ordinal) != (
        like.device,
        like.ordinal,
    ):
        raise ValueError(f"{name}: on {known.device}, want {like.device}")


def flat(
    name: str, value: Any, count: int, dtypes: tuple[str, ...], like: View
) -> View:
    """The array, if it has `count` elements without gaps, of any shape."""
    known = view(value)
    if known.dtype not in dtypes or math.prod(known.shape) != count:
        raise ValueError(
            f"{name}: {known.dtype} {known.shape}, want {count}"
            f" elements of {' or '.join(dtypes)}"
        )
    dense(name, known)
    beside(name, known, like)
    return known


def optional(
    name: str, value: Any, count: int, dtypes: tuple[str, ...], like: View
) -> int | None:
    """The pointer of such an array, which may be None."""
    return None if value is None else flat(name, value, count, dtypes, like).ptr


def rows(name: str, known: View) -> int:
    """The stride of the first two dimensions taken as one: [b, s, ..] as [b *
    s, ..]."""
    b, s = known.shape[:2]
    if b > 1 and s > 1 and known.strides[0] != s * known.strides[1]:
        raise ValueError(f"{name}: the first two dimensions are not contiguous")
    return known.strides[1] if s > 1 else known.strides[0]


def dense(name: str, known: View) -> None:
    """The array has no gaps."""
    step = 1
    for extent, stride in zip(reversed(known.shape), reversed(known.strides)):
        if extent > 1 and stride != step:
            raise ValueError(f"{name}: not contiguous")
        step *= extent


def same(name: str, got: tuple[int, ...], want: tuple[int, ...]) -> None:
    if got != want:
        raise ValueError(f"{name}: shape {got}, want {want}")


def cache(known: View, layout: int) -> n.Cache:
    """A paged cache [pages, entries, 1, bytes]."""
    pages, entries = known.shape[:2]
    return n.Cache(
        layout=layout,
        entries_per_page=entries,
        pages=pages,
        page_stride_bytes=(
            known.strides[0] * known.itemsize
            if pages > 1
            else entries * known.strides[1] * known.itemsize
        ),
        base=known.ptr,
    )
