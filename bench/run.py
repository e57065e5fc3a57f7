"""Runs every benchmark program in a build folder and prints their lines as a table, or as JSON lines.

usage: run.py FOLDER [NAME...] [--json]    NAME selects the results whose name contains it, and all those of a program of
                                           that name (graph, workloads, conv for bench_cpu_conv)
"""
import glob
import json
import os
import subprocess
import sys

folder, names = sys.argv[1], [a for a in sys.argv[2:] if not a.startswith("--")]
unknown = [a for a in sys.argv[2:] if a.startswith("--") and a != "--json"]
if unknown:
    sys.exit(f"bench: unknown option {unknown[0]}; usage: ./dev bench [NAME...] [--json]")
as_json = "--json" in sys.argv[2:]

HERE = os.path.dirname(os.path.abspath(__file__))
programs = [p for p in sorted(glob.glob(os.path.join(folder, "bench_*"))) if os.access(p, os.X_OK) and not os.path.isdir(p)]


def called(program):
    """The names that ask for all of a program."""
    own = os.path.basename(program).removeprefix("bench_")
    return {own, own.removeprefix("cpu_")}


def lines_of(program):
    """What a program prints, a line at a time; whole workloads go through bench/peers, beside other systems."""
    global failed
    wanted = names if called(program).isdisjoint(names) else []
    commands = [[program, *wanted]]
    if os.path.basename(program) == "bench_workloads":
        commands = [[program, "--alone", *wanted], [sys.executable, os.path.join(HERE, "peers/compare.py"), program, *wanted]]
    for command in commands:
        run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        yield from run.stdout
        if run.wait():
            failed += 1
            print(f"bench: {os.path.basename(command[0])} failed with status {run.returncode}", file=sys.stderr)


head = f"{'name':34} {'ours':>9} {'unit':8} {'of limit':>8}  {'peer':>9} {'ratio':>6}  goal"
if not as_json:
    print(head)
seen = failed = 0
for program in programs:
    for line in lines_of(program):
        seen += 1
        if as_json:
            print(line, end="", flush=True)
            continue
        r = json.loads(line)
        share = f"{100 * r['share']:.0f} %" if "share" in r else ""
        peer = f"{r['peer']:9.4g} {r['ratio']:6.2f}" if "peer" in r else " " * 16
        name = f" ({r['peer_name']})" if "peer_name" in r else ""
        print(f"{r['name']:34} {r['value']:9.4g} {r['unit']:8} {share:>8}  {peer}  {r.get('goal', '')}{name}",
              flush=True)
if not seen:
    sys.exit("bench: nothing matches " + " ".join(names))
sys.exit(1 if failed else 0)
