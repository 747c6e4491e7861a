"""The part of the CUDA driver that is needed beside SpMLA: memory and copies.

SpMLA refuses the NULL stream, which waits for all others. Callers without a
stream get one here, and wait for it by `synchronize`, as every copy does.
"""

from __future__ import annotations

import ctypes

# CU_STREAM_PER_THREAD: in order with the NULL stream, and may be captured.
PER_THREAD = 2

_NON_BLOCKING = 1

_opened: ctypes.CDLL | None = None


def _driver() -> ctypes.CDLL:
    global _opened
    if _opened is None:
        library = ctypes.CDLL("libcuda.so.1")
        size, ptr = ctypes.c_size_t, ctypes.c_uint64
        for name, types in {
            "cuInit": [ctypes.c_uint],
            "cuDeviceGet": [ctypes.c_void_p, ctypes.c_int],
            "cuDevicePrimaryCtxRetain": [ctypes.c_void_p, ctypes.c_int],
            "cuCtxGetCurrent": [ctypes.c_void_p],
            "cuCtxSetCurrent": [ctypes.c_void_p],
            "cuCtxSynchronize": [],
            "cuStreamCreate": [ctypes.c_void_p, ctypes.c_uint],
            "cuMemAlloc_v2": [ctypes.c_void_p, size],
            "cuMemFree_v2": [ptr],
            "cuMemAllocHost_v2": [ctypes.c_void_p, size],
            "cuMemFreeHost": [ptr],
            "cuMemcpyHtoD_v2": [ptr, ctypes.c_void_p, size],
            "cuMemcpyDtoH_v2": [ctypes.c_void_p, ptr, size],
        }.items():
            function = getattr(library, name)
            function.argtypes = types
            function.restype = ctypes.c_int
        _opened = library
    return _opened


def call(name: str, *args: object) -> None:
    code = getattr(_driver(), name)(*args)
    if code != 0:
        raise RuntimeError(f"{name}: CUDA error {code}")


def use_device(index: int = 0) -> None:
    """Makes the device's primary context current, unless some context is."""
    call("cuInit", 0)
    context = ctypes.c_void_p()
    call("cuCtxGetCurrent", ctypes.byref(context))
    if context.value is None:
        device = ctypes.c_int()
        call("cuDeviceGet", ctypes.byref(device), index)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        call("cuCtxSetCurrent", context)


_streams: dict[int, int] = {}


def default_stream() -> int:
    """A stream of the current context, the same each time."""
    context = ctypes.c_void_p()
    use_device()
    call("cuCtxGetCurrent", ctypes.byref(context))
    key = context.value or 0
    if key not in _streams:
        stream = ctypes.c_void_p()
        call("cuStreamCreate", ctypes.byref(stream), _NON_BLOCKING)
        assert stream.value is not None
        _streams[key] = stream.value
    return _streams[key]


def synchronize() -> None:
    call("cuCtxSynchronize")


class Memory:
    """Bytes of the device, or page-locked bytes of the host; freed with the
    object."""

    def __init__(self, bytes_: int, pinned: bool = False) -> None:
        use_device()
        ptr = ctypes.c_uint64()
        self._free = "cuMemFreeHost" if pinned else "cuMemFree_v2"
        call(
            "cuMemAllocHost_v2" if pinned else "cuMemAlloc_v2",
            ctypes.byref(ptr),
            bytes_,
        )
        self.ptr = ptr.value

    def __del__(self) -> None:
        if getattr(self, "ptr", 0) and _opened is not None:
            getattr(_opened, self._free)(self.ptr)


def copy_to_device(to: int, source: int, bytes_: int) -> None:
    if bytes_:
        call("cuMemcpyHtoD_v2", to, source, bytes_)
        synchronize()


def copy_to_host(to: int, source: int, bytes_: int) -> None:
    synchronize()
    if bytes_:
        call("cuMemcpyDtoH_v2", to, source, bytes_)
