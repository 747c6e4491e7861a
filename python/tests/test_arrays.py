"""Arrays of other libraries."""

import numpy as np
import pytest

from spmla import _driver
from spmla._arrays import view
from spmla.vllm import top_k_per_row_decode


class Tensor:
    """What PyTorch's tensors show of themselves."""

    def __init__(self, array):
        self._array = array
        self.shape = array.shape
        self.dtype = f"torch.{array.dtype}"
        self.device = "cpu"

    def data_ptr(self):
        return self._array.ctypes.data

    def stride(self):
        return tuple(s // self._array.itemsize for s in self._array.strides)

    def element_size(self):
        return self._array.itemsize


class Exchanged:
    """What an array shows that knows DLPack only."""

    def __init__(self, array):
        self._array = array

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __dlpack__(self):
        return self._array.__dlpack__()


class Abroad(Exchanged):
    """The same, as if it lay on a device."""

    def __init__(self, array, device):
        super().__init__(array)
        self._device = device
        self.streams = []

    def __dlpack_device__(self):
        return self._device, 0

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return super().__dlpack__()


@pytest.mark.parametrize("wrap", [Tensor, Exchanged, lambda array: array])
def test_a_view_is_that_of_the_memory(wrap):
    base = np.arange(60, dtype=np.int32).reshape(5, 12)
    known = view(wrap(base[1:, 2:9]))
    assert known.ptr == base.ctypes.data + 4 * 14
    assert (known.shape, known.strides) == ((4, 7), (12, 1))
    assert (known.itemsize, known.dtype, known.device) == (4, "int32", "cpu")


@pytest.mark.parametrize("wrap", [Tensor, Exchanged])
def test_operations_take_them(wrap):
    logits = np.array([[3, 1, 2, 9]], np.float32)
    lens, indices = np.array([4], np.int32), np.zeros((1, 2), np.int32)
    top_k_per_row_decode(wrap(logits), 1, wrap(lens), wrap(indices), 1, 4, 1, 2)
    assert list(indices[0]) == [0, 3]


@pytest.mark.parametrize("device", [2, 13])
def test_a_producer_on_cuda_orders_its_work(device, monkeypatch):
    monkeypatch.setattr(_driver, "default_stream", lambda: 77)
    array = Abroad(np.zeros(3, np.int32), device)
    assert view(array).device == "cuda"
    assert array.streams == [77]


def test_other_devices_are_refused():
    array = Abroad(np.zeros(3, np.int32), 10)  # kDLROCM
    with pytest.raises(TypeError, match="DLPack device 10"):
        view(array)
    assert array.streams == []
