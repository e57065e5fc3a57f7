#!/usr/bin/env python3
"""The guide, typed along. A chapter docs/guide/NAME.md is one program: its ```cpp blocks in order are what main does
(those marked ```cpp top stand before it), and its ```text blocks in order are what it prints. So is README.md, which shows
its includes and `int main() {` too.

    programs.py write OUT_FOLDER   one source file a chapter, and main.cpp that calls them by name
    programs.py run PROGRAM        runs every chapter and compares"""
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Every program starts with these, and what main does is put into a function of the chapter's name.
SHOWN = re.compile(r'^(#include (<iostream>|"rlx/rlx.h")|using namespace rlx;)$', re.M)
MAIN = re.compile(r"^int main\(\) \{$(.*)^\}$", re.M | re.S)


def blocks(chapter):
    """(language, rest of the fence line, first line number, text) of every fenced block."""
    found, fence, lines, start = [], None, [], 0
    for number, line in enumerate(chapter.read_text().splitlines(), 1):
        match = re.match(r"```(\w*) ?(.*)$", line)
        if match and fence is None:
            fence, lines, start = match.groups(), [], number + 1
        elif match:
            found.append((*fence, start, "\n".join(lines)))
            fence = None
        elif fence is not None:
            lines.append(line)
    return found


def inside(text):
    """What a block does, without what every program has."""
    return MAIN.sub(lambda main: main.group(1), SHOWN.sub("", text))


def source(chapter):
    """Errors of the compiler name the line of the chapter."""
    def part(top):
        return "".join(f'#line {start} "{chapter}"\n{inside(text)}\n' for language, mark, start, text in blocks(chapter)
                       if language == "cpp" and (mark == "top") == top)
    name = chapter.stem.replace("-", "_")
    return f'#include <iostream>\n\n#include "rlx/rlx.h"\n\nusing namespace rlx;\n\n{part(True)}\nvoid guide_{name}() {{\n{part(False)}}}\n'


def printed(chapter):
    return "".join(text + "\n" for language, _, _, text in blocks(chapter) if language == "text")


def chapters():
    return sorted(c for c in [ROOT / "README.md", *(ROOT / "docs/guide").glob("*.md")] if any(b[0] == "cpp" for b in blocks(c)))


def write_if_changed(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def write(out):
    out.mkdir(parents=True, exist_ok=True)
    names = [c.stem.replace("-", "_") for c in chapters()]
    for chapter, name in zip(chapters(), names):
        write_if_changed(out / f"{name}.cpp", source(chapter))
    declared = "".join(f"void guide_{n}();\n" for n in names)
    table = ", ".join(f'{{"{n}", guide_{n}}}' for n in names)
    write_if_changed(out / "main.cpp", f"""#include <iostream>
#include <map>
#include <string>

{declared}
int main(int, char** argv) {{
  const std::map<std::string, void (*)()> chapters = {{{table}}};
  chapters.at(argv[1])();
}}
""")
    print(";".join(str(out / f"{n}.cpp") for n in names), end="")


def run(program):
    failed = 0
    for chapter in chapters():
        with tempfile.TemporaryDirectory() as scratch:  # chapters may write files
            result = subprocess.run([program, chapter.stem.replace("-", "_")], cwd=scratch, text=True, capture_output=True)
        want = printed(chapter)
        wrong = result.returncode != 0 or result.stdout != want
        failed += wrong
        print(f"{chapter.stem}: {'WRONG' if wrong else 'as printed'}")
        if wrong:
            print(result.stderr, end="")
            print("\n".join(difflib.unified_diff(want.splitlines(), result.stdout.splitlines(), "guide", "program", lineterm="")))
    return failed


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(pathlib.Path(sys.argv[2]))
    else:
        sys.exit(1 if run(str(pathlib.Path(sys.argv[2]).resolve())) else 0)
