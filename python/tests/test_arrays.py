"""Arrays of other libraries."""

import numpy as np
import pytest

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

    def __dlpack__(self):
        return self._array.__dlpack__()


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
