"""Steps as records: one captured graph per bucket, replayed with what changed.

    context = Context(config("v32", buckets=[(4, 4, 1)], ...))
    layer = v32.layer(context, 0, q=q, out=out, ...)
    ring = StepRing(context)
    with ring.capture(0) as shape:          # once
        v32.attn(context, layer, shape)
    ring.step([Request(row=0, query=1, length=17)])      # every step

Between two launches only memory changes: the input tensors, and the record.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
from ctypes import byref
from typing import Iterator, Sequence

from . import _native as n
from ._context import Context


@dataclasses.dataclass(frozen=True)
class Request:
    """A row of a step: its query tokens, and its length with them. A row that
    joins forgets its old pages."""

    row: int
    query: int
    length: int
    join: bool = False


@dataclasses.dataclass(frozen=True)
class Store:
    """Columns of a row's block table, from first_column on, become `pages`."""

    row: int
    first_column: int
    pages: Sequence[int]
    group: int = 0


@dataclasses.dataclass(frozen=True)
class Ticket:
    """A record that was written and waits for its launch."""

    number: int
    bucket: int
    tokens: int


@dataclasses.dataclass(frozen=True)
class Chunk:
    """A part of a long step: a step of its own."""

    requests: list[Request]
    first_query: int  # its query tokens are rows of the long step's tensors
    end_query: int


def split_step(plan: n.Plan, requests: Sequence[Request]) -> list[Chunk]:
    """Cuts a step of decodes and prompts of any length into steps that the plan
    has room for, in order; decodes fit a bucket."""
    step = n.Step(request_count=len(requests), requests=_rows(requests))
    diag, count = n.Diag(), ctypes.c_uint32()
    # A chunk takes a token at least.
    capacity = max(sum(r.query for r in requests), 1)
    chunks = (n.PrefillChunk * capacity)()
    n.check(
        n.lib.spmla_split_step(
            byref(plan),
            byref(step),
            chunks,
            capacity,
            byref(count),
            byref(diag),
        ),
        diag,
    )
    return [_chunk(step, chunk) for chunk in chunks[: count.value]]


def _chunk(step: n.Step, chunk: n.PrefillChunk) -> Chunk:
    rows, diag = (n.Request * chunk.request_count)(), n.Diag()
    n.check(
        n.lib.spmla_prefill_chunk_requests(
            byref(step), byref(chunk), rows, len(rows), byref(diag)
        ),
        diag,
    )
    return Chunk(
        [
            Request(
                r.row,
                r.query_tokens,
                r.seq_len_tokens,
                bool(r.flags & n.REQUEST_JOIN),
            )
            for r in rows
        ],
        chunk.queries.first,
        chunk.queries.end,
    )


def _rows(requests: Sequence[Request]) -> ctypes.Array[n.Request]:
    return (n.Request * len(requests))(
        *[
            n.Request(
                r.row, r.query, r.length, n.REQUEST_JOIN if r.join else 0
            )
            for r in requests
        ]
    )


class StepRing:
    """The replay contract: write, then launch; one launch per record, in
    order.

    A call that breaks it is refused and changes nothing: another ticket than
    the next one (Error, "SPMLA_E_TICKET"), a full ring (RingFull), a step that
    no bucket takes (Error, "SPMLA_E_RECORD"). Bad data on the device gives
    empty rows and shows in Context.status().
    """

    def __init__(self, context: Context, stream: int | None = None) -> None:
        self._context = context
        self._stream = context.default_stream if stream is None else stream
        self._graphs: dict[int, int] = {}

    @contextlib.contextmanager
    def capture(self, bucket: int) -> Iterator[n.Shape]:
        """Captures a prologue and what the `with` block enqueues as the graph
        of a bucket; yields the bucket's shape."""
        context, lib = self._context, n.lib
        shape = context.plan.config.buckets[bucket]
        context.call(lib.spmla_graph_begin, self._stream)
        try:
            context.call(
                lib.spmla_step_prologue, byref(shape), n.FROM_RING, self._stream
            )
            yield shape
            graph = ctypes.c_uint32()
            context.call(lib.spmla_graph_end, byref(graph))
        except BaseException:
            context.call(lib.spmla_graph_abort)
            raise
        self._graphs[bucket] = graph.value

    def write(
        self,
        requests: Sequence[Request],
        stores: Sequence[Store] = (),
        lengths_on_device: bool = False,
    ) -> Ticket:
        """Checks a step and puts its record into the ring."""
        rows = _rows(requests)
        pages = [(ctypes.c_int32 * len(s.pages))(*s.pages) for s in stores]
        changes = (n.TableStore * len(stores))(
            *[
                n.TableStore(s.group, s.row, s.first_column, len(s.pages), p)
                for s, p in zip(stores, pages)
            ]
        )
        step = n.Step(
            flags=n.STEP_LENS_ON_DEVICE if lengths_on_device else 0,
            request_count=len(rows),
            requests=rows,
            store_count=len(changes),
            stores=changes,
        )
        number, info = ctypes.c_uint64(), n.StepInfo()
        self._context.call(
            n.lib.spmla_step_write, byref(step), byref(number), byref(info)
        )
        return Ticket(number.value, info.bucket, info.tokens)

    def replay(self, ticket: Ticket) -> None:
        """Launches the graph of the ticket's bucket."""
        graph = self._graphs.get(ticket.bucket)
        if graph is None:
            raise KeyError(f"no graph was captured for bucket {ticket.bucket}")
        self._context.call(
            n.lib.spmla_graph_replay, graph, ticket.number, self._stream
        )

    def launched(self, ticket: Ticket) -> None:
        """Tells that the caller launched the ticket with a graph of its
        own."""
        self._context.call(n.lib.spmla_step_launched, ticket.number)

    def undo(self, ticket: Ticket) -> None:
        """Takes back the last ticket, if it was not launched. Its stores were
        not applied."""
        self._context.call(n.lib.spmla_step_undo, ticket.number)

    def resync(self) -> None:
        """Drops all records that were not consumed. Drain the stream first."""
        self._context.call(n.lib.spmla_step_resync)

    def step(
        self, requests: Sequence[Request], stores: Sequence[Store] = ()
    ) -> Ticket:
        """Writes and replays. If the launch is refused, takes the record
        back."""
        ticket = self.write(requests, stores)
        try:
            self.replay(ticket)
        except Exception:
            self.undo(ticket)
            raise
        return ticket
