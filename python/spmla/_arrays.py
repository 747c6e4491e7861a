"""Arrays of other libraries, as pointers, shapes and strides.

Inputs: NumPy arrays; anything with ``data_ptr()`` (PyTorch),
``__cuda_array_interface__`` or ``__dlpack__``. Outputs belong to the caller's
library if that is NumPy or PyTorch; otherwise they are a `DeviceArray`.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, NamedTuple, Sequence

import numpy as np

from . import _driver

CPU = "cpu"
CUDA = "cuda"


class View(NamedTuple):
    """Where an array lies. Strides count elements."""

    ptr: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    dtype: str  # "int32", "bfloat16", "float8_e4m3fn"
    device: str
    ordinal: int
    owner: Any


class DeviceArray:
    """Memory of a CUDA device, for callers without a library of their own."""

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        strides: Sequence[int] | None = None,
        _memory: _driver.Memory | None = None,
    ) -> None:
        self.shape = tuple(int(n) for n in shape)
        self.dtype = np.dtype(dtype)
        self.strides = tuple(strides) if strides else dense(self.shape)
        span = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides))
        bytes_ = self.dtype.itemsize * span if all(self.shape) else 0
        self._memory = _memory or _driver.Memory(max(bytes_, 1))

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> "DeviceArray":
        """A copy of a NumPy array on the device."""
        array = np.ascontiguousarray(array)
        made = cls(array.shape, array.dtype)
        _driver.copy_to_device(
            made._memory.ptr, array.ctypes.data, array.nbytes
        )
        return made

    def data_ptr(self) -> int:
        return self._memory.ptr

    def view(
        self, shape: Sequence[int], strides: Sequence[int]
    ) -> "DeviceArray":
        return DeviceArray(shape, self.dtype, strides, self._memory)

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy on the host; waits for the device."""
        span = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides))
        if not all(self.shape):
            return np.empty(self.shape, self.dtype)
        flat = np.empty(span, self.dtype)
        _driver.copy_to_host(flat.ctypes.data, self.data_ptr(), flat.nbytes)
        step = [s * self.dtype.itemsize for s in self.strides]
        return np.lib.stride_tricks.as_strided(flat, self.shape, step).copy()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.data_ptr(), False),
            "strides": tuple(s * self.dtype.itemsize for s in self.strides),
            "version": 3,
        }


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


# DLDeviceType: where the host reads, and where CUDA does.
_HOST = (1, 3)  # kDLCPU, kDLCUDAHost
_DEVICE = (2, 13)  # kDLCUDA, kDLCUDAManaged


def _of_dlpack(array: Any) -> View:
    where = int(array.__dlpack_device__()[0])
    if where not in _HOST + _DEVICE:
        raise TypeError(f"DLPack device {where}: want the host or CUDA")
    # The producer makes its work visible to the stream of SpMLA's own.
    capsule = (
        array.__dlpack__()
        if where in _HOST
        else array.__dlpack__(stream=_driver.default_stream())
    )
    tensor = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = (
        tuple(tensor.strides[i] for i in range(tensor.ndim))
        if tensor.strides
        else dense(shape)
    )
    # kDLInt 0, kDLUInt 1, kDLFloat 2, kDLBfloat 4, kDLFloat8_e4m3fn 10.
    dtype = {0: "int", 1: "uint", 2: "float", 4: "bfloat"}.get(tensor.code)
    name = (
        f"{dtype}{tensor.bits}"
        if dtype
        else "float8_e4m3fn" if tensor.code == 10 else "unknown"
    )
    return View(
        (tensor.data or 0) + tensor.byte_offset,
        shape,
        strides,
        tensor.bits // 8,
        name,
        CPU if where in _HOST else CUDA,
        tensor.device_id,
        capsule,
    )


def _of_torch(array: Any) -> View:
    strides = (
        array.strides if isinstance(array, DeviceArray) else array.stride()
    )
    size = getattr(array, "element_size", None)
    itemsize = size() if size else array.dtype.itemsize
    name = str(array.dtype).rsplit(".", 1)[-1]
    device = getattr(array, "device", CUDA)
    index = getattr(device, "index", None) or 0
    return View(
        array.data_ptr(),
        tuple(array.shape),
        tuple(strides),
        itemsize,
        name,
        CUDA if "cuda" in str(device) else CPU,
        index,
        array,
    )


def _of_interface(
    interface: dict[str, Any], dtype: Any, device: str, owner: Any
) -> View:
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    strides = (
        tuple(s // dtype.itemsize for s in strides) if strides else dense(shape)
    )
    return View(
        interface["data"][0],
        shape,
        strides,
        dtype.itemsize,
        dtype.name,
        device,
        0,
        owner,
    )


def view(array: Any) -> View:
    """The pointer, shape and strides of `array`, whatever its library."""
    if isinstance(array, View):
        return array
    if isinstance(array, np.ndarray):
        return _of_interface(array.__array_interface__, array.dtype, CPU, array)
    if hasattr(array, "data_ptr"):
        return _of_torch(array)
    if hasattr(array, "__cuda_array_interface__"):
        interface = array.__cuda_array_interface__
        return _of_interface(
            interface, np.dtype(interface["typestr"]), CUDA, array
        )
    if hasattr(array, "__dlpack__"):
        return _of_dlpack(array)
    raise TypeError(f"not an array: {type(array).__name__}")


_TORCH_NAMES = {
    "f4": "float32",
    "i4": "int32",
    "u1": "uint8",
    "bf16": "bfloat16",
}


def make(
    like: Any, shape: Sequence[int], dtype: str, fill: float | None = None
) -> Any:
    """A new array of `like`'s library and device. dtype: "f4", "i4" or "bf16"
    (the dtype of `like` where its library has no bf16)."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        kind = getattr(torch, _TORCH_NAMES[dtype])
        if fill is None:
            return torch.empty(tuple(shape), dtype=kind, device=like.device)
        return torch.full(tuple(shape), fill, dtype=kind, device=like.device)
    known = view(like)
    plain = (
        like.dtype
        if dtype == "bf16" and isinstance(like, np.ndarray)
        else np.dtype("u2" if dtype == "bf16" else dtype)
    )
    if known.device == CPU:
        host = np.empty(tuple(shape), plain)
        if fill is not None:
            host.fill(fill)
        return host
    if fill is not None:
        return DeviceArray.of(np.full(tuple(shape), fill, plain))
    return DeviceArray(shape, plain)


def cut(array: Any, shape: Sequence[int], strides: Sequence[int]) -> Any:
    """The same memory with another shape and strides, in elements."""
    if hasattr(array, "as_strided"):
        return array.as_strided(tuple(shape), tuple(strides))
    if isinstance(array, DeviceArray):
        return array.view(shape, strides)
    step = [s * array.dtype.itemsize for s in strides]
    return np.lib.stride_tricks.as_strided(array, tuple(shape), step)


def ints(like: Any, host: np.ndarray[Any, Any]) -> Any:
    """Moves a host array of integers to the device of `like`."""
    return host if view(like).device == CPU else DeviceArray.of(host)


def to_host(array: Any) -> np.ndarray[Any, Any]:
    """The values of an int32 array; waits for the device if it lies there."""
    known = view(array)
    flat = np.empty(
        1 + sum((n - 1) * s for n, s in zip(known.shape, known.strides)), "i4"
    )
    if not all(known.shape):
        return np.empty(known.shape, "i4")
    if known.device == CPU:
        ctypes.memmove(flat.ctypes.data, known.ptr, flat.nbytes)
    else:
        _driver.copy_to_host(flat.ctypes.data, known.ptr, flat.nbytes)
    return np.lib.stride_tricks.as_strided(
        flat, known.shape, [4 * s for s in known.strides]
    )


def compute(like: Any, how: Any, *arrays: Any) -> Any:
    """how(xp, *arrays), integer arithmetic on int32 arrays. PyTorch does it
    for its own tensors, in stream order. Otherwise NumPy does it on the host,
    after waiting for the device."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        return how(torch, *arrays).contiguous()
    return ints(
        like, np.ascontiguousarray(how(np, *[to_host(a) for a in arrays]))
    )


def beside(array: Any) -> dict[str, Any]:
    """The arguments with which PyTorch's constructors put an array beside this
    one."""
    return {"device": array.device} if hasattr(array, "is_cuda") else {}


def stream_of(like: Any, stream: int | None) -> int | None:
    """The stream to enqueue on: the given one, or PyTorch's current one."""
    known = view(like)
    if known.device == CPU:
        return None
    if stream is not None:
        return stream
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        current = torch.cuda.current_stream(like.device).cuda_stream
        return current or _driver.PER_THREAD
    return _driver.default_stream()
