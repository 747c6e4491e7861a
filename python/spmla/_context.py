"""Contexts: a plan, its memory, and the library's state in it.

`operations` is the one place that knows how to call an operation without a
model: it makes a context, which needs a plan.
"""

from __future__ import annotations

import ctypes
import threading
from ctypes import byref, c_void_p
from typing import Any, Iterable, Mapping, Sequence

import numpy as np

from . import _driver
from . import _native as n

_FLAGS = {"batch_invariant": 1, "apart": 2}


def _named(what: str, names: Mapping[str, Any], name: str) -> Any:
    if name not in names:
        raise ValueError(f"{what}: no {name!r}, want one of {', '.join(names)}")
    return names[name]


def config(
    model: str,
    buckets: Iterable[Sequence[int]],
    groups: Sequence[Mapping[str, int]] = (),
    flags: str = "",
    **fields: Any,
) -> n.Config:
    """A config: the preset of the model (v32, v4-flash, v4-pro), overridden by
    the arguments. `buckets` are (tokens, requests, next_n[,
    max_live_context]), `groups` are tables of fields, `flags` are words
    (batch_invariant, apart), and all other names are fields of
    spmla_config."""
    made = n.Config()
    n.check(n.lib.spmla_config_preset(byref(made), _named("model", n.MODELS, model)))
    shapes = [n.Shape(*bucket) for bucket in buckets]
    made.bucket_count = len(shapes)
    for i, shape in enumerate(shapes):
        made.buckets[i] = shape
    for i, group in enumerate(groups):
        for name, value in group.items():
            if not hasattr(made.groups[i], name):
                raise TypeError(f"a group has no {name}")
            setattr(made.groups[i], name, value)
    made.flags = sum(
        _named("flags", _FLAGS, word) for word in flags.split()
    )
    for name, value in fields.items():
        if not hasattr(made, name):
            raise TypeError(f"spmla_config has no {name}")
        setattr(made, name, value)
    return made


class Context:
    """One timeline of steps, or of operations, on one device. `backend` is cpu
    or cuda.

    Its memory is allocated here, once. One thread at a time uses a context;
    calls from several threads wait for each other.
    """

    def __init__(
        self, config: n.Config, backend: str = "cpu", device: int = 0
    ) -> None:
        self._handle = c_void_p()
        self._lock = threading.RLock()
        self._kept: list[Any] = []
        table = _named("backend", n.BACKENDS, backend)
        self._cpu = backend == "cpu"
        self._device_memory: list[range] = []  # which the host cannot read
        if not self._cpu:
            _driver.use_device(device)
        facts, diag = n.Device(), n.Diag()
        n.check(
            n.lib.spmla_backend_query(table, None, byref(facts), byref(diag)),
            diag,
        )
        self.plan = n.Plan()
        n.check(
            n.lib.spmla_plan_make(
                byref(self.plan), byref(config), byref(facts), byref(diag)
            ),
            diag,
        )
        regions = (n.Region * n.MEMORY_COUNT)()
        for memory, region in enumerate(regions):
            bytes_ = self.plan.region_bytes[memory]
            region.struct_bytes = ctypes.sizeof(region)
            region.memory = memory
            region.base = self._allocate(memory, bytes_)
            region.bytes = bytes_
            if memory in (n.DEVICE, n.CACHE) and not self._cpu:
                self._device_memory.append(
                    range(region.base, region.base + bytes_)
                )
        n.check(
            n.lib.spmla_init(
                byref(self._handle),
                byref(self.plan),
                table,
                None,
                regions,
                len(regions),
                byref(diag),
            ),
            diag,
        )

    def _allocate(self, memory: int, bytes_: int) -> int:
        if self._cpu or memory == n.HOST:
            align = int(self.plan.region_align[memory]) or 1
            block = np.zeros(bytes_ + align, np.uint8)
            self._kept.append(block)
            return -(-block.ctypes.data // align) * align
        place = _driver.Memory(max(bytes_, 1), memory == n.PINNED)
        self._kept.append(place)
        return place.ptr

    def call(self, function: Any, *args: Any) -> None:
        """Calls function(ctx, *args) and raises its error."""
        with self._lock:
            status = function(self._handle, *args)
            if status != 0:
                n.check(status, n.lib.spmla_ctx_diag(self._handle).contents)

    @property
    def default_stream(self) -> int | None:
        """The stream of calls that name none."""
        return None if self._cpu else _driver.default_stream()

    def view(self, buf: int, dtype: Any = np.uint8) -> np.ndarray[Any, Any]:
        """A planned buffer, on the CPU or in pinned memory, by its number;
        another is a TypeError."""
        bytes_ = ctypes.c_uint64()
        at = n.lib.spmla_view(self._handle, buf, byref(bytes_))
        if not at:
            raise KeyError(f"the plan has no buffer {buf}")
        if any(at in place for place in self._device_memory):
            raise TypeError(f"buffer {buf} lies in the device's memory")
        memory = (ctypes.c_uint8 * bytes_.value).from_address(at)
        return np.ctypeslib.as_array(memory).view(dtype)

    def status(self) -> tuple[int, str, int]:
        """The number of reports of bad data, then the fault and the row of the
        first. Does not wait."""
        read = n.DeviceStatus()
        self.call(n.lib.spmla_status_read, byref(read))
        return read.count, n.lib.spmla_fault_name(read.fault).decode(), read.row

    def clear_status(self) -> None:
        """Clears the status. The device must be idle."""
        self.call(n.lib.spmla_status_clear)

    def wake(self) -> None:
        """Makes the context usable again whose DEVICE memory was given up and
        is back at the same addresses, with any bytes. Graphs stay valid; rows
        JOIN again."""
        self.call(n.lib.spmla_wake)

    def close(self) -> None:
        """Ends the context. The device must be idle. A second call does
        nothing."""
        if self._handle:
            if not self._cpu:
                _driver.synchronize()
            self.call(n.lib.spmla_fini)
            self._handle = c_void_p()
            self._kept.clear()

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_contexts: dict[tuple[str, int], Context] = {}
_making = threading.Lock()


def operations(device: str, index: int = 0) -> Context:
    """The context of operations without a model. There is one per device, with
    room for as many heads as any operation takes."""
    with _making:
        key = (device, index)
        if key not in _contexts:
            _contexts[key] = Context(
                config(
                    "v32",
                    [(1, 1, 1)],
                    [{"pool_pages": 1}],
                    "batch_invariant",
                    heads=256,
                    index_heads=128,
                    max_rows=1,
                    max_context_tokens=1,
                ),
                device,
                index,
            )
        return _contexts[key]
