#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two tables of bench_cuda, row by row.

    bench/compare.py OLD NEW [PERCENT]

Prints the rows of both that NEW is slower at by more than PERCENT (3), the worst
first, and the geometric mean of all ratios. Exit status 1 if there is such a
row. A row that stands twice counts with its first place.
"""
import math
import sys


def read(path):
    """{(op, shape): cold us}"""
    rows = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.startswith("| "):
                continue
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            try:
                rows.setdefault((cells[0], cells[1].strip("*")),
                                float(cells[2].strip("*")))
            except (IndexError, ValueError):
                continue  # a head, or another table
    return rows


def main():
    if len(sys.argv) not in (3, 4):
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    old, new = read(sys.argv[1]), read(sys.argv[2])
    most = 1 + float(sys.argv[3] if len(sys.argv) == 4 else 3) / 100
    both = sorted(((new[row] / old[row], row) for row in old if row in new),
                  reverse=True)
    if not both:
        print("no row is in both")
        return 2
    slower = [entry for entry in both if entry[0] > most]
    for ratio, row in slower:
        print(f"{ratio:.2f}  {old[row]:g} to {new[row]:g} us  "
              f"{row[0]}, {row[1]}")
    mean = math.exp(sum(math.log(ratio) for ratio, _ in both) / len(both))
    print(f"{len(both)} rows, {len(slower)} slower; geometric mean {mean:.3f}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
