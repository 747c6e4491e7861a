#!/usr/bin/env python3
"""Decodes a batch of growing requests by replaying captured steps, checks the
last step against plain attention over the selected keys, and draws the time of
each step.

    decode.py [--steps N] [--rows N] [--svg FILE]

The tensors are random numbers; in an engine, kernels would write them. It runs
on the CPU.
"""

from __future__ import annotations

import argparse
import difflib
import pathlib
import sys
import time

import numpy as np

try:
    import spmla
except ModuleNotFoundError:  # in SpMLA's folder, not installed
    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))
    import spmla
from spmla import Request, StepRing, Store

HEADS, INDEX_HEADS, TOPK, PAGE = 8, 4, 64, 16
SCALE = 192**-0.5
TOPK_INDICES = 39  # the planned buffer, SPMLA_BUF_TOPK_INDICES


def to_bf16(values: np.ndarray) -> np.ndarray:
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def of_bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


class Engine:
    """One layer of V3.2 with bf16 rows, and one graph per bucket of 1, 2, 4,
    .. rows."""

    def __init__(self, rows: int, longest: int) -> None:
        columns = -(-longest // PAGE)
        buckets = [(2**i, 2**i, 1) for i in range(rows.bit_length())]
        if buckets[-1][0] < rows:
            buckets.append((rows, rows, 1))
        self.context = spmla.Context(
            spmla.config(
                "v32",
                buckets,
                [{"page_tokens": PAGE, "pool_pages": rows * columns}],
                heads=HEADS,
                index_heads=INDEX_HEADS,
                topk=TOPK,
                kv_layout=2,  # SPMLA_LAYOUT_MLA_BF16
                max_rows=rows,
                softmax_scale=SCALE,
                max_context_tokens=longest,
                cache_layers=1,
            )
        )
        tokens = buckets[-1][0]
        self.tensors = {
            name: np.zeros((tokens, *shape), np.uint16)
            for name, shape in {
                "kv_c": (512,),
                "k_pe": (64,),
                "index_k": (128,),
                "index_q": (INDEX_HEADS, 128),
                "q": (HEADS, 576),
                "out": (HEADS, 512),
                "index_weights": (INDEX_HEADS,),
            }.items()
        }
        layer = spmla.v32.layer(self.context, 0, **self.tensors)
        self.ring = StepRing(self.context)
        for bucket in range(len(buckets)):
            with self.ring.capture(bucket) as shape:
                spmla.v32.attn(self.context, layer, shape)

    def write(self, random: np.random.Generator, tokens: int) -> None:
        """Stands for the engine's kernels: writes new tensors in place."""
        for name, tensor in self.tensors.items():
            if name != "out":
                values = random.standard_normal(tensor[:tokens].shape)
                tensor[:tokens] = to_bf16(values)


def decode(engine: Engine, rows: int, steps: int):
    """A row joins every other step; each then grows by a token a step. Returns
    seconds and keys of each step, and the largest error of the last."""
    random = np.random.default_rng(0)
    keys: list[list[np.ndarray]] = [[] for _ in range(rows)]
    free = iter(range(10**9))
    seconds, live = [], []
    for step in range(steps):
        active = range(min(step // 2 + 1, rows))
        engine.write(random, len(active))
        requests, stores = [], []
        for token, row in enumerate(active):
            length = len(keys[row]) + 1
            if (length - 1) % PAGE == 0:
                stores.append(Store(row, (length - 1) // PAGE, [next(free)]))
            requests.append(Request(row, 1, length, join=length == 1))
            keys[row].append(
                np.concatenate(
                    [
                        engine.tensors["kv_c"][token],
                        engine.tensors["k_pe"][token],
                    ]
                )
            )
        start = time.perf_counter()
        engine.ring.step(requests, stores)
        seconds.append(time.perf_counter() - start)
        live.append(sum(len(row) for row in keys))
    worst = 0.0
    selected = engine.context.view(TOPK_INDICES, np.int32).reshape(-1, TOPK)
    for token, row in enumerate(active):
        which = selected[token][selected[token] >= 0]
        assert len(which) == min(TOPK, len(keys[row]))
        k = of_bf16(np.array(keys[row])[which])
        s = of_bf16(engine.tensors["q"][token]) @ k.T * SCALE
        p = np.exp(s - s.max(1, keepdims=True))
        want = p / p.sum(1, keepdims=True) @ k[:, :512]
        got = of_bf16(engine.tensors["out"][token])
        worst = max(worst, float(np.abs(got - want).max()))
    return np.array(seconds), np.array(live), worst


def draw(path: str, milliseconds: np.ndarray, live: np.ndarray) -> None:
    """Step times and live keys over the steps; by matplotlib if it is there."""
    try:
        from matplotlib import pyplot
    except ImportError:
        pathlib.Path(path).write_text(as_svg(milliseconds, live))
        return
    figure, left = pyplot.subplots(figsize=(8, 4))
    left.plot(milliseconds, color="tab:blue")
    left.set(xlabel="step", ylabel="ms a step", ylim=(0, None))
    right = left.twinx()
    right.plot(live, color="tab:orange")
    right.set(ylabel="keys", ylim=(0, None))
    figure.savefig(path, format="svg")


def as_svg(milliseconds: np.ndarray, live: np.ndarray) -> str:
    width, height, edge = 800, 400, 60
    across = (width - 2 * edge) / max(len(live) - 1, 1)

    def line(values: np.ndarray, colour: str) -> str:
        up = (height - 2 * edge) / max(float(values.max()), 1e-9)
        points = " ".join(
            f"{edge + i * across:.1f},{height - edge - v * up:.1f}"
            for i, v in enumerate(values)
        )
        return (
            f'<polyline points="{points}" fill="none" stroke="{colour}"'
            ' stroke-width="2"/>'
        )

    def text(x: int, y: int, words: str, colour: str, anchor: str) -> str:
        return (
            f'<text x="{x}" y="{y}" fill="{colour}"'
            f' text-anchor="{anchor}">{words}</text>'
        )

    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}"'
            f' height="{height}" font-family="sans-serif" font-size="14">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
            f'<path d="M{edge} {edge}V{height - edge}H{width - edge}V{edge}"'
            ' fill="none" stroke="gray"/>',
            line(live, "#ff7f0e"),
            line(milliseconds, "#1f77b4"),
            text(
                edge,
                edge - 10,
                f"ms a step, up to {milliseconds.max():.2f}",
                "#1f77b4",
                "start",
            ),
            text(
                width - edge,
                edge - 10,
                f"keys, up to {live.max()}",
                "#ff7f0e",
                "end",
            ),
            text(
                width // 2,
                height - edge + 30,
                f"{len(live)} steps",
                "black",
                "middle",
            ),
            "</svg>\n",
        ]
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for name, default, text in (
        ("--steps", 48, "steps to run, and the longest request's tokens"),
        ("--rows", 6, "most requests at a time"),
    ):
        parser.add_argument(
            name, type=int, default=default, metavar="N", help=text
        )
    parser.add_argument(
        "--svg",
        default="decode.svg",
        metavar="FILE",
        help="file to draw the time of every step into",
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"%(prog)s of SpMLA {spmla.version()}",
    )
    options, unknown = parser.parse_known_args()
    for word in unknown:
        near = difflib.get_close_matches(
            word, ["--steps", "--rows", "--svg", "--version", "--help"], 1, 0
        )
        parser.error(f"{word}: unknown option; the nearest is {near[0]}")
    if options.steps < 1 or options.rows < 1:
        parser.error("--steps and --rows: at least 1")
    try:
        open(options.svg, "a").close()
    except OSError as why:
        parser.error(f"--svg: cannot write {options.svg}: {why.strerror}")
    return options


def main() -> int:
    options = parse()
    print(
        f"spmla {spmla.version()}: V3.2, 1 layer, {HEADS} heads, on the CPU,"
        f" {options.rows} rows, {options.steps} steps"
    )
    engine = Engine(options.rows, options.steps)
    seconds, live, worst = decode(engine, options.rows, options.steps)
    faults = engine.context.status()[0]
    draw(options.svg, 1e3 * seconds, live)
    tokens = sum(min(i // 2 + 1, options.rows) for i in range(options.steps))
    print(
        f"{tokens} tokens, {tokens / seconds.sum():.0f} tokens/s; a step"
        f" p50 {1e3 * np.median(seconds):.2f} ms,"
        f" p99 {1e3 * np.quantile(seconds, .99):.2f} ms; {options.svg}"
    )
    good = faults == 0 and worst < 0.05
    print(
        f"{'OK' if good else 'FAILED'}: largest error {worst:.4f},"
        f" {faults} faults"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
