"""A line that tells how far long work is, on the terminal or in a notebook."""

import sys
import time


class Progress:
    """Shown at most ten times a second; `total` may be unknown."""

    def __init__(self, total=None, label="", unit="", file=None):
        self.total, self.label, self.unit = total, label, unit
        self.file = sys.stderr if file is None else file
        self.count, self.begin, self.shown = 0, time.monotonic(), 0.0

    def add(self, count=1):
        self.count += count
        if time.monotonic() - self.shown >= 0.1:
            self._show()

    def _show(self, end=""):
        self.shown = time.monotonic()
        rate = self.count / max(self.shown - self.begin, 1e-9)
        text = f"{self.count}{self.unit and ' ' + self.unit}"
        if self.total:
            done = min(1.0, self.count / self.total)
            filled = int(20 * done)
            text = f"[{'#' * filled}{'.' * (20 - filled)}] {self.count}/{self.total}{self.unit and ' ' + self.unit}"
        self.file.write(f"\r{self.label}{self.label and ' '}{text}, {rate:.1f}/s{end}")
        self.file.flush()

    def close(self):
        self._show("\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def progress(items, total=None, label=""):
    """The items, with a line that tells how many have been taken: for step in rlx.progress(range(1000))."""
    if total is None:
        total = len(items) if hasattr(items, "__len__") else None
    with Progress(total, label) as shown:
        for item in items:
            yield item
            shown.add()
