"""Where the tests run: on the CPU, and with SPMLA_TEST_CUDA=1 on a CUDA device
too, whose arrays are DeviceArrays."""

from __future__ import annotations

import json
import os
import pathlib

import numpy as np
import pytest

import spmla

ROOT = pathlib.Path(__file__).absolute().parents[2]
GOLDEN = pathlib.Path(os.environ.get("SPMLA_GOLDEN", ROOT / "testdata/golden"))

_DTYPES = {
    "bfloat16": "u2",
    "float8_e4m3fn": "u1",
    "uint8": "u1",
    "int32": "i4",
    "float32": "f4",
}


class Place:
    """put: a NumPy array to where the test runs; get: back."""

    def __init__(self, name: str) -> None:
        self.name = name

    def put(self, array):
        if array is None or self.name == "cpu":
            return array
        return spmla.DeviceArray.of(array)

    def get(self, array) -> np.ndarray:
        return array if self.name == "cpu" else array.numpy()


_PLACES = ["cpu"] + ["cuda"] * bool(os.environ.get("SPMLA_TEST_CUDA"))


@pytest.fixture(params=_PLACES)
def place(request) -> Place:
    return Place(request.param)


class Golden:
    """A case that a real kernel computed: its tensors by name."""

    def __init__(self, case: str) -> None:
        folder = GOLDEN / case
        manifest = json.loads((folder / "manifest.json").read_text())
        self.params = manifest["params"]
        self._tensors = {}
        for t in manifest["tensors"]:
            flat = np.fromfile(folder / t["file"], _DTYPES[t["dtype"]])
            size = flat.dtype.itemsize
            self._tensors[t["name"]] = np.lib.stride_tricks.as_strided(
                flat[t["storage_offset"] :],
                t["shape"],
                [size * s for s in t["strides"]],
            )

    def __getitem__(self, name: str) -> np.ndarray:
        return self._tensors[name]


@pytest.fixture
def golden():
    return Golden


def to_bf16(values: np.ndarray) -> np.ndarray:
    """f32 as bf16's bits, rounded to nearest even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def of_bf16(bits: np.ndarray) -> np.ndarray:
    return (np.ascontiguousarray(bits).astype(np.uint32) << 16).view(np.float32)


def of_e4m3(codes: np.ndarray) -> np.ndarray:
    codes = codes.astype(np.int32)
    exponent, mantissa = codes >> 3 & 15, codes & 7
    value = np.where(
        exponent == 0,
        mantissa * 2.0**-9,
        (8 + mantissa) * 2.0 ** (exponent - 10.0),
    )
    return np.where(codes & 128, -value, value)
