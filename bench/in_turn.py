"""Runs the benchmark programs of two builds in turn and tells how much faster the second is, line by line.

usage: in_turn.py BEFORE AFTER [NAME...] [--lines TEXT] [--rounds N] [--json]
    BEFORE, AFTER  folders with programs bench_*, as build/release/bench
    NAME           programs whose name contains it (default: all that are in both, but workloads)
    --lines TEXT   only the lines of these programs whose name contains it
    --rounds N     how often each program runs (default 3); the order of the two changes from round to round

With RLX_THREADS=1 programs count processor time, which other people's programs disturb least. A ratio above 1: the second
is faster. It is the median over the rounds, each of which compares neighbours in time; its range stands behind it.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

LESS_IS_BETTER = {"s", "ms", "us", "ns", "bytes", "KiB", "MiB", "MB"}


def lines_of(program, wanted):
    """Name -> (value, unit) of what a program prints."""
    done = subprocess.run([program, *wanted], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"in_turn: {program} failed with status {done.returncode}")
    rows = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    return {row["name"]: (row["value"], row["unit"]) for row in rows}


def gains(before, after):
    """Name -> how many times as fast `after` is, for the lines that both have."""
    for name, (old, unit) in before.items():
        new, new_unit = after.get(name, (0, None))
        if unit != new_unit or not old or not new:
            continue
        yield name, old / new if unit.split()[0] in LESS_IS_BETTER else new / old


def programs(folder):
    return {p for p in os.listdir(folder) if p.startswith("bench_") and os.access(os.path.join(folder, p), os.X_OK)}


parser = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1])
parser.add_argument("before")
parser.add_argument("after")
parser.add_argument("names", nargs="*")
parser.add_argument("--lines", action="append", default=[])
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--json", action="store_true")
args = parser.parse_intermixed_args()

both = sorted(programs(args.before) & programs(args.after) - {"bench_workloads", "bench_gpu"})
chosen = [p for p in both if not args.names or any(name in p for name in args.names)]
if not chosen:
    sys.exit(f"in_turn: no program of both folders is called {' or '.join(args.names) or 'bench_*'}; there are: {', '.join(both)}")
for program in chosen:
    found = {}
    for turn in range(args.rounds):
        order = [args.before, args.after] if turn % 2 == 0 else [args.after, args.before]
        lines = {folder: lines_of(os.path.join(folder, program), args.lines) for folder in order}
        for name, gain in gains(lines[args.before], lines[args.after]):
            found.setdefault(name, []).append(gain)
    for name, ratios in found.items():
        low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
        if args.json:
            print(json.dumps({"program": program, "name": name, "ratio": middle, "low": low, "high": high}), flush=True)
        else:
            print(f"{program:24} {name:42} {middle:5.2f}  ({low:.2f}-{high:.2f})", flush=True)
