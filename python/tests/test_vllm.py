"""Top-k a row, compared with a stable sort."""

import numpy as np
import pytest

from spmla.vllm import top_k_per_row_decode, top_k_per_row_prefill

from conftest import to_bf16


def best(row, k):
    """Positions of the k largest, ties to the lower one, ascending."""
    order = sorted(range(len(row)), key=lambda i: (-row[i], i))[:k]
    return sorted(order) + [-1] * (k - len(order))


def world(rows, columns):
    rng = np.random.default_rng(5)
    # Few values, so that there are ties.
    return rng.integers(-9, 9, (rows, columns)).astype(np.float32)


def test_prefill_takes_each_rows_own_range(place):
    logits, k = world(5, 64), 8
    starts = np.array([0, 3, 20, 60, 10], np.int32)
    ends = np.array([64, 30, 26, 64, 10], np.int32)
    indices = place.put(np.full((5, k), 77, np.int32))
    top_k_per_row_prefill(
        place.put(logits),
        place.put(starts),
        place.put(ends),
        indices,
        5,
        64,
        1,
        k,
    )
    for r, got in enumerate(place.get(indices)):
        assert list(got) == best(logits[r, starts[r] : ends[r]], k)


def test_logits_may_be_bfloat16(place):
    logits, k = world(3, 40), 6
    indices = place.put(np.full((3, k), 77, np.int32))
    top_k_per_row_decode(
        place.put(to_bf16(logits)),
        1,
        place.put(np.array([40, 4, 17], np.int32)),
        indices,
        3,
        40,
        1,
        k,
    )
    for row, end, got in zip(logits, [40, 4, 17], place.get(indices)):
        assert list(got) == best(row[:end], k)


@pytest.mark.parametrize("two", [False, True])
def test_decode_with_two_queries_a_request(place, two):
    logits, k = world(6, 48), 5
    last = np.array([48, 2, 20], np.int32)
    lens = np.stack([last - 1, last], 1)
    indices = place.put(np.full((6, k), 77, np.int32))
    top_k_per_row_decode(
        place.put(logits),
        2,
        place.put(np.ascontiguousarray(lens) if two else last),
        indices,
        6,
        48,
        1,
        k,
    )
    for r, got in enumerate(place.get(indices)):
        assert list(got) == best(logits[r, : lens.ravel()[r]], k)


def test_other_strides_than_the_arrays_are_refused():
    logits = world(2, 16)
    with pytest.raises(ValueError, match="strides 8, 1"):
        top_k_per_row_decode(
            logits,
            1,
            np.array([16, 16], np.int32),
            np.zeros((2, 4), np.int32),
            2,
            8,
            1,
            4,
        )
