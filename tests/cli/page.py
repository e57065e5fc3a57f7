#!/usr/bin/env python3
"""`rlx inspect FILE --html` as a browser shows it: the page is opened in Chromium without a window.

usage: page.py RLX_COMMAND
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

RLX = os.path.abspath(sys.argv[1])
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
GRAPH = """graph @layer(x: f32[4,16], param w: f32[16,8], param b: f32[8]) {
  h = matmul(x, w)
  a = add(h, b)
  y = gelu(a)
  z = softmax(y, axis=1)
  return z
}
"""


def browse(browser, folder, *arguments):
    """Runs the browser on the page; what it prints, and what the page complained about."""
    run = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                          "--enable-logging=stderr", f"--user-data-dir={folder}/profile", "--virtual-time-budget=3000",
                          *arguments, f"file://{folder}/page.html"], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    complaints = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
    return run.stdout, complaints


def check_shown(page):
    """What the script of the page left on the screen."""
    stages = re.findall(r'<div class="stage"( style="[^"]*")?>', page)
    hidden = [s for s in stages if "display: none" in s]
    assert len(stages) > 3 and len(hidden) == len(stages) - 1, f"{len(hidden)} of {len(stages)} stages hidden"
    for title in ("Graph by stage", "Rewrites", "Plan over time", "Kernels", "Fusion"):
        assert f"<h2>{title}</h2>" in page, f"no part {title!r}"
    assert len(re.findall(r"<option>", page)) == len(stages)
    assert "matmul_epilogue_f32" in page and "softmax" in page, "no kernels"
    assert len(re.findall(r"<svg ", page)) >= 3 and "<rect " in page, "no pictures"


def check_picture(path):
    """A picture of the page is there and is not one colour."""
    data = open(path, "rb").read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) > 20_000, f"{len(data)} bytes"


def main():
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/g.rlx", "w") as f:
            f.write(GRAPH)
        subprocess.run([RLX, "inspect", f"{folder}/g.rlx", "--html", f"{folder}/page.html"], check=True, timeout=60)
        text = open(f"{folder}/page.html").read()
        outside = re.findall(r'(?:src|href)="[^"#][^"]*"', text)
        assert not outside, f"the page needs {outside}"
        browser = next((b for b in map(shutil.which, BROWSERS) if b), None)
        if not browser:
            print("skipped: no Chromium to look at the page with")
            return
        page, complaints = browse(browser, folder, "--dump-dom")
        assert not complaints, complaints
        check_shown(page)
        browse(browser, folder, f"--screenshot={folder}/page.png", "--window-size=1280,2400")
        check_picture(f"{folder}/page.png")
        if len(sys.argv) > 2:
            shutil.copy(f"{folder}/page.png", sys.argv[2])
    print("the page shows its stages, plan and kernels")


main()
