#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws our times beside the peers', out of a table in results/.

    bench/chart.py bench/results/2026-11-27-h100.md >bench/results/peers.svg

One bar a row that has a peer, its length the ratio of the two times on a
logarithmic scale: to the left we are faster, to the right the peer is. For
sparse_decode the faster of "whole" and "in parts" counts. A peer that is given
as a range counts with its better end.
"""
import math
import re
import sys
from xml.sax.saxutils import escape

LEFT, HALF, RIGHT, LINE, TOP = 270, 200, 190, 15, 62
SPAN = 1.6  # powers of two on either side
FASTER, SLOWER, INK, PALE = "#3f7d5c", "#c0703a", "#1c2429", "#6b7780"


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def number(text):
    """The first number of a cell, which may be bold or a range."""
    found = re.search(r"\d+(\.\d+)?", text)
    return float(found.group()) if found else None


def rows(lines):
    """(op, shape, our us, the peer, its us) of each row that has a peer."""
    head = None
    for line in lines:
        if not line.startswith("|"):
            continue
        row = cells(line)
        if row[0] == "op":
            head = row
        if head is None or row[0] == "op" or len(row) != len(head):
            continue
        of = dict(zip(head, row))
        peer = next(of[name] for name in head if name.startswith("peer us"))
        shape = of["shape"]
        if of["op"] == "sparse_decode":
            if "**" not in of["cold us"]:
                continue
            shape = shape.rsplit(", ", 1)[0]
        for given in peer.split(";"):
            if number(given) is None:
                continue
            name = {"topk": "fastest"}.get(of["op"], "")
            if given.strip().startswith("exact"):
                name = "deterministic"
            if given.strip().startswith("sum"):
                name = "sum of kernels"
            yield (of["op"], shape, number(of["cold us"]), name,
                   number(given))


def text(x, y, what, fill=INK, anchor="start", size=10):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
            f'text-anchor="{anchor}" fill="{fill}">{escape(what)}</text>')


def axis(bottom):
    for power in (-1, -0.5, 0, 0.5, 1, 1.5):
        x = LEFT + HALF + HALF * power / SPAN
        yield (f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" '
               f'y2="{bottom}" stroke="{INK if power == 0 else "#d8dcdf"}" '
               'stroke-width="0.8"/>')
        yield text(x, TOP - 10, f"{2 ** power:.2g}", PALE, "middle")


def draw(title, peer, table):
    ops = list(dict.fromkeys(row[0] for row in table))
    bottom = TOP + LINE * (len(table) + len(ops))
    width = LEFT + 2 * HALF + RIGHT
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
           f'height="{bottom + 12}" font-family="sans-serif">')
    yield '<rect width="100%" height="100%" fill="#ffffff"/>'
    yield text(12, 20, title, size=13)
    yield text(12, 37, "Our time / the peer's. Green: we are faster. Orange: "
               f"the peer is. Peer: fastest public kernel, {peer}.", PALE)
    yield from axis(bottom)
    y = TOP
    for op in ops:
        yield text(12, y + 11, op, size=11)
        y += LINE
        for _, shape, ours, name, theirs in (r for r in table if r[0] == op):
            ratio = ours / theirs
            end = max(-SPAN, min(SPAN, math.log2(ratio))) * HALF / SPAN
            middle = LEFT + HALF
            yield text(LEFT - 8, y + 11,
                       f"{shape} / {name}" if name else shape, anchor="end")
            yield (f'<rect x="{min(middle, middle + end):.1f}" y="{y + 2}" '
                   f'width="{abs(end):.1f}" height="{LINE - 4}" '
                   f'fill="{FASTER if ratio < 1 else SLOWER}"/>')
            yield text(LEFT + 2 * HALF + 36, y + 11, f"{ratio:.2f}",
                       anchor="end")
            yield text(LEFT + 2 * HALF + 48, y + 11,
                       f"{ours:g} us, peer {theirs:g} us", PALE)
            y += LINE
    yield "</svg>"


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 2)
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = file.read().splitlines()
    table = list(rows(lines))
    dates = [re.search(r"peer us \((.*?)\)", line) for line in lines]
    peer = next(date.group(1) for date in dates if date)
    device = next(line for line in lines[1:] if line).split(",")[0]
    print("\n".join(draw(f"{lines[0]}, {device}, L2 cold", peer, table)))


if __name__ == "__main__":
    main()
