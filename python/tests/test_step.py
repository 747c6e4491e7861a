"""Captured steps and the replay contract."""

import numpy as np
import pytest

import spmla
from spmla import Request, StepRing, Store

from conftest import of_bf16, to_bf16

HEADS, INDEX_HEADS, LAYERS = 2, 4, 1


class Engine:
    """Two buckets of one layer. Queries are zeros, so that out is the mean of
    the keys."""

    def __init__(self, backend, put):
        self.context = spmla.Context(
            spmla.config(
                "v32",
                [(1, 1, 1), (3, 3, 1)],
                [{"pool_pages": 8, "page_tokens": 4}],
                heads=HEADS,
                index_heads=INDEX_HEADS,
                topk=16,
                kv_layout=2,
                max_rows=3,
                max_context_tokens=16,
                cache_layers=LAYERS,
                ring_slots=2,
            ),
            backend,
        )
        zeros = lambda *shape: put(np.zeros(shape, np.uint16))
        self.arrays = {
            "kv_c": zeros(3, 512),
            "k_pe": zeros(3, 64),
            "index_k": zeros(3, 128),
            "index_q": zeros(3, INDEX_HEADS, 128),
            "index_weights": put(np.zeros((3, INDEX_HEADS), np.float32)),
            "q": zeros(3, HEADS, 576),
            "out": zeros(3, HEADS, 512),
            "lse": put(np.zeros((3, HEADS), np.float32)),
        }
        layer = spmla.v32.layer(self.context, 0, **self.arrays)
        self.ring = StepRing(self.context)
        for bucket in range(2):
            with self.ring.capture(bucket) as shape:
                spmla.v32.attn(self.context, layer, shape)


@pytest.fixture
def engine(place):
    made = Engine(place.name, place.put)
    yield made
    made.context.close()


def set_keys(place, array, values):
    bits = to_bf16(np.broadcast_to(np.float32(values)[:, None], (3, 512)))
    if place.name == "cpu":
        array[:] = bits
    else:
        from spmla import _driver

        _driver.copy_to_device(array.data_ptr(), bits.ctypes.data, bits.nbytes)


def test_a_replayed_row_sees_all_of_its_keys(place, engine):
    ring, out = engine.ring, engine.arrays["out"]
    for length in range(1, 7):
        stores = [Store(0, (length - 1) // 4, [(length - 1) // 4 + 2])]
        set_keys(place, engine.arrays["kv_c"], [length, 0, 0])
        ticket = ring.step(
            [Request(0, 1, length, join=length == 1)],
            stores if length % 4 == 1 else [],
        )
        assert (ticket.number, ticket.bucket, ticket.tokens) == (length, 0, 1)
        got = of_bf16(place.get(out))[0]
        assert (got == np.float32(1 + length) / 2).all()
        lse = place.get(engine.arrays["lse"])[0]
        assert np.allclose(lse, np.log(length), rtol=1e-5, atol=1e-6)
    assert engine.context.status()[0] == 0


def test_buckets_share_the_ring(place, engine):
    ring = engine.ring
    joins = [Store(r, 0, [r]) for r in range(3)]
    set_keys(place, engine.arrays["kv_c"], [1, 2, 3])
    assert (
        ring.step([Request(r, 1, 1, join=True) for r in range(3)], joins).bucket
        == 1
    )
    set_keys(place, engine.arrays["kv_c"], [4, 0, 0])
    assert ring.step([Request(1, 1, 2)]).bucket == 0
    assert (of_bf16(place.get(engine.arrays["out"]))[0] == 3).all()


def test_what_breaks_the_contract_is_refused(engine):
    ring = engine.ring
    first = ring.write([Request(0, 1, 1, join=True)], [Store(0, 0, [0])])
    second = ring.write([])
    with pytest.raises(spmla.RingFull):
        ring.write([])
    with pytest.raises(spmla.Error) as caught:
        ring.replay(second)
    assert caught.value.status == "SPMLA_E_TICKET"
    with pytest.raises(spmla.Error):
        ring.undo(first)  # not the last one
    ring.undo(second)
    ring.replay(first)
    with pytest.raises(spmla.Error, match="seq_len_tokens"):
        ring.write([Request(0, 1, 99)])
    assert ring.write([]).number == 2


def test_a_page_that_is_not_there_is_reported(place, engine):
    engine.ring.step([Request(2, 1, 1, join=True)])  # without a store
    out = of_bf16(place.get(engine.arrays["out"]))
    assert (out[0] == 0).all()
    count, fault, row = engine.context.status()
    assert count > 0 and (fault, row) == ("PAGE", 2)
    engine.context.clear_status()
    assert engine.context.status()[0] == 0


def test_a_view_is_of_memory_that_the_host_can_read(engine, place):
    with pytest.raises(KeyError):
        engine.context.view(10000)
    if place.name == "cpu":
        engine.context._device_memory = [range(1 << 62)]
    with pytest.raises(TypeError, match="buffer 39 lies in the device's memory"):
        engine.context.view(39)  # SPMLA_BUF_TOPK_INDICES
    with pytest.raises(TypeError, match="buffer 70 lies"):
        engine.context.view(70)  # SPMLA_BUF_KV_CACHE


def test_a_capture_that_fails_leaves_none(engine):
    with pytest.raises(KeyError):
        with engine.ring.capture(0):
            raise KeyError("an error of the caller's")
    engine.ring.step([Request(0, 1, 1, join=True)], [Store(0, 0, [0])])


def test_names_that_are_not_there_are_told_what_there_is():
    with pytest.raises(ValueError, match="model: no 'v3'.* v32, v4-flash"):
        spmla.config("v3", [(1, 1, 1)])
    with pytest.raises(ValueError, match="flags: no 'fast'.* batch_invariant"):
        spmla.config("v32", [(1, 1, 1)], flags="apart fast")
    with pytest.raises(ValueError, match="backend: no 'gpu'.* cpu, cuda"):
        spmla.Context(spmla.config("v32", [(1, 1, 1)]), "gpu")


def test_fields_that_are_not_there_are_named():
    with pytest.raises(TypeError, match="no head"):
        spmla.config("v32", [(1, 1, 1)], head=3)
    with pytest.raises(spmla.Error, match="config.max_rows"):
        spmla.Context(
            spmla.config(
                "v32", [(1, 1, 1)], [{"pool_pages": 1}], max_context_tokens=1
            )
        )


def test_a_step_that_is_not_launched_is_taken_back(engine):
    other = StepRing(engine.context)  # without a graph
    with pytest.raises(KeyError, match="bucket 0"):
        other.step([])
    assert engine.ring.step([]).number == 1


def test_a_long_step_is_split(place):
    """Two decodes fit the bucket of 3; 20 tokens need chunks of at most 8."""
    with spmla.Context(
        spmla.config(
            "v32",
            [(1, 1, 1), (3, 3, 1)],
            [{"pool_pages": 8, "page_tokens": 4}],
            heads=HEADS,
            index_heads=INDEX_HEADS,
            topk=16,
            max_rows=3,
            max_context_tokens=24,
            max_prefill_tokens=8,
            prefill_workspace_tokens=24,
        ),
        place.name,
    ) as context:
        chunks = spmla.split_step(
            context.plan,
            [Request(0, 1, 9), Request(1, 1, 3), Request(2, 20, 20, True)],
        )
    assert chunks[0].requests == [Request(0, 1, 9), Request(1, 1, 3)]
    rest = chunks[1:]
    assert [c.requests[0].length for c in rest] == [8, 16, 20]
    assert [c.requests[0].join for c in rest] == [True, False, False]
    ends = [0] + [c.end_query for c in chunks]
    assert [c.first_query for c in chunks] == ends[:-1] and ends[-1] == 22


def test_a_request_that_no_plan_takes_is_named(place, engine):
    with pytest.raises(spmla.Error, match="UNSUPPORTED|request"):
        spmla.split_step(engine.context.plan, [Request(0, 9, 9)])


def test_a_context_that_woke_begins_anew(place, engine):
    ring = engine.ring
    set_keys(place, engine.arrays["kv_c"], [3, 0, 0])
    first = ring.step([Request(0, 1, 1, join=True)], [Store(0, 0, [2])])
    if place.name == "cuda":
        from spmla import _driver

        _driver.synchronize()
    engine.context.wake()
    again = ring.step([Request(0, 1, 1, join=True)], [Store(0, 0, [5])])
    assert first.number == again.number == 1
    assert (of_bf16(place.get(engine.arrays["out"]))[0] == 3).all()
    assert engine.context.status()[0] == 0
