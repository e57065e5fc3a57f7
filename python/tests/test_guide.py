"""docs/python.md and README.md typed along: every block runs, and prints what stands behind it."""

import contextlib
import io
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Guide(unittest.TestCase):
    def test_the_page(self):
        self.typed("docs/python.md", 6)

    def test_the_first_page(self):
        self.typed("README.md", 1)

    def typed(self, page, least):
        with open(os.path.join(ROOT, page)) as f:
            text = f.read()
        blocks = re.findall(r"```python\n(.*?)```(?:\n```\n(.*?)```)?", text, re.S)
        self.assertGreaterEqual(len(blocks), least)
        names = {}
        for code, expected in blocks:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, page, "exec"), names)
            if expected:
                self.assertEqual([l.rstrip() for l in printed.getvalue().strip().splitlines()],
                                 [l.rstrip() for l in expected.strip().splitlines()], code)


if __name__ == "__main__":
    unittest.main()
