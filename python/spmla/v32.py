"""Layers of DeepSeek V3.2, in a captured step."""

from __future__ import annotations

from ctypes import byref
from typing import Any

from . import _native as n
from ._arrays import view
from ._context import Context


def layer(context: Context, number: int, **fields: Any) -> n.V32Layer:
    """A layer over the context's own pools. Fields are named
    as in spmla_v32_layer: arrays, which bring their strides, and numbers. The caller
    keeps the arrays alive, because captures contain their addresses."""
    made = n.V32Layer()
    context.call(n.lib.spmla_v32_layer_preset, number, byref(made))
    names = {field[0] for field in n.V32Layer._fields_}
    for name, value in fields.items():
        if name not in names:
            raise TypeError(f"spmla_v32_layer has no {name}")
        if isinstance(value, (int, float)):
            setattr(made, name, value)
            continue
        known = view(value)
        setattr(made, name, known.ptr)
        strides = dict(zip(("token", "head"), known.strides))
        if f"{name}_stride_elems" in names:
            setattr(made, f"{name}_stride_elems", known.strides[0])
        for which, stride in strides.items():
            if f"{name}_{which}_stride_elems" in names:
                setattr(made, f"{name}_{which}_stride_elems", stride)
    if "index_weights" in fields:
        wide = view(fields["index_weights"]).itemsize == 4
        made.index_weights_dtype = n.DTYPE_F32 if wide else n.DTYPE_BF16
    return made


def attn(
    context: Context,
    layer: n.V32Layer,
    shape: n.Shape,
    stream: int | None = None,
) -> None:
    """Insert, index, attend: one layer of the step that the last prologue
    began."""
    context.call(
        n.lib.spmla_v32_attn,
        byref(layer),
        byref(shape),
        context.default_stream if stream is None else stream,
    )
