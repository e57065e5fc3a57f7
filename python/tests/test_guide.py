"""docs/python.md typed along: every block runs, and prints what stands behind it."""

import contextlib
import io
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Guide(unittest.TestCase):
    def test_the_page(self):
        with open(os.path.join(ROOT, "docs/python.md")) as f:
            text = f.read()
        blocks = re.findall(r"```python\n(.*?)```(?:\n```\n(.*?)```)?", text, re.S)
        self.assertGreater(len(blocks), 3)
        names = {}
        for code, expected in blocks:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, "docs/python.md", "exec"), names)
            if expected:
                self.assertEqual([l.rstrip() for l in printed.getvalue().strip().splitlines()],
                                 [l.rstrip() for l in expected.strip().splitlines()], code)


if __name__ == "__main__":
    unittest.main()
