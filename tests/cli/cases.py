"""Runs the functions test_... of a script, each in a folder of its own."""

import pathlib
import subprocess
import tempfile


def run(names, wanted):
    """The number of failures among `names` (globals() of the script); with `wanted`, only those."""
    failed = 0
    tests = [(name, test) for name, test in names.items() if name.startswith("test_")]
    for name, test in tests:
        if wanted and name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(*([pathlib.Path(folder)] if test.__code__.co_argcount else []))
            except (AssertionError, subprocess.SubprocessError, ValueError) as error:
                failed += 1
                print(f"{name}: {error}")
    print(f"{len(tests)} tests, {failed} failed")
    return failed
