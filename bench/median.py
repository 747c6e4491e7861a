#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes one table of bench_cuda out of several.

    bench/median.py TABLE TABLE TABLE [..]

Each row is the whole row of that table whose cold time is the median; all else
is the first table's. The tables have the same rows in the same order.
"""
import re
import sys

MEASURED = re.compile(r"\| [^|]+ \| [^|]+ \| \**([0-9.]+)\** \| [0-9.]+ \| ")


def cold(line):
    """The cold time of a row, or None of any other line."""
    found = MEASURED.match(line)
    return float(found.group(1)) if found else None


def name(line):
    return [cell.strip() for cell in line.split("|")[1:3]]


def main():
    if len(sys.argv) < 4 or len(sys.argv) % 2:
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    tables = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            tables.append(file.read().splitlines())
    rows = [[line for line in table if cold(line) is not None]
            for table in tables]
    if len({len(of) for of in rows}) != 1:
        print("median.py: the tables have "
              f"{', '.join(str(len(of)) for of in rows)} rows")
        return 2
    for same in zip(*rows):
        if any(name(line) != name(same[0]) for line in same):
            print(f"median.py: not the same row: {same}")
            return 2
    medians = iter(sorted(same, key=cold)[len(same) // 2]
                   for same in zip(*rows))
    for line in tables[0]:
        print(line if cold(line) is None else next(medians))
    return 0


if __name__ == "__main__":
    sys.exit(main())
