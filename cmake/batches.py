"""batches.py FOLDER SOURCE...: puts small sources together. Writes a unit into FOLDER for each group, and prints what to
compile, one path a line: the units, and the sources that stay alone.

Loading precompiled headers and instantiating what they hold costs a small source more than its own text, so the dev
presets compile several sources as one. Two sources may share a unit if neither declares, with internal linkage, a name
that the other mentions: then every name means in the unit what it means alone. Their headers stand first, so that no
header sees a name of a source.

A source falls into a bucket by the hash of its path, and only members of a bucket are put together: a new source
changes the units of its own bucket and no other.
"""
import hashlib
import os
import re
import sys

UNIT_LINES = 1200  # at most, unless one source is longer: 7 s in the middle
BUCKET_LINES = 4000

TOKEN = re.compile(r"[A-Za-z_]\w*|::|->|\.\.\.|[{}()\[\]<>;,=.&*:#]|[^\s\w]|\d[\w.']*")
SKIPPED = re.compile(
    r'R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*(?:\\\n[^\n]*)*", re.M)
KEYWORDS = frozenset("if for while switch return sizeof alignas alignof decltype noexcept requires template typename"
                     " static inline constexpr consteval constinit const operator explicit auto void bool char int float double"
                     " int64_t size_t uint8_t".split())


def tokens_of(text):
    text = SKIPPED.sub(lambda m: '""' if m[0].endswith(('"', "'")) else " ", text)
    return TOKEN.findall(DIRECTIVE.sub("", text))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Source:
    def __init__(self, path):
        self.path = path
        text = read(path)
        self.lines = text.count("\n")
        tokens = tokens_of(text)
        self.mentioned, self.called = set(), set()  # called: by what follows, a function
        for before, t, after in zip([""] + tokens, tokens, tokens[1:] + [""]):
            if (t[0].isalpha() or t[0] == "_") and before not in (".", "->", "::"):
                self.mentioned.add(t)
                if after in ("(", "<"):
                    self.called.add(t)
        head, body = re.match(r"((?:[ \t]*(?://[^\n]*|#include[^\n]*)?\n)*)(.*)", text, re.S).groups()
        self.headers = re.findall(r'^#include "[^"]+"', head, re.M)
        self.alone = re.search(r'^[ \t]*#[ \t]*include "', body, re.M) is not None  # a header that reads what stands above it
        self.functions, self.declared = set(), set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M))
        self.aliases = {}  # name -> the declaration: two that are equal may stand in one unit
        self.directives = set()
        scopes(tokens, self)

    def name(self):
        """The same in every checkout."""
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        return re.sub(r"\W", "_", os.path.splitext(os.path.relpath(self.path, root))[0])

    def clashes(self, other):
        """Names declared here that would change what the other means."""
        aliases = {a for a, text in self.aliases.items() if a in other.mentioned and other.aliases.get(a) != text}
        return (self.functions & other.called) | (self.declared & other.mentioned) | aliases

    def fits(self, other):
        return (not (self.alone or other.alone) and self.directives == other.directives and not self.clashes(other)
                and not other.clashes(self))


def scopes(tokens, source):
    """Splits the tokens into declarations of namespaces and notes what those of internal linkage declare."""
    hidden = []  # of each open namespace: whether it has no name
    start = i = 0
    while i < len(tokens):
        t = tokens[i]
        if t == "namespace" and tokens[i - 1:i] != ["using"] and "=" not in tokens[i:i + 3]:
            hidden.append(tokens[i + 1] == "{")
            i = tokens.index("{", i)
            start = i + 1
        elif t == "}" and hidden:
            hidden.pop()
            start = i + 1
        elif t == "{":
            i = closing(tokens, i)
            if tokens[i + 1:i + 2] not in ([";"], [","], ["="]):  # a function's body, not an initialiser
                declaration(tokens[start:i + 1], any(hidden), source)
                start = i + 1
        elif t == "(":
            i = closing(tokens, i)
        elif t == ";":
            declaration(tokens[start:i + 1], any(hidden), source)
            start = i + 1
        i += 1


def closing(tokens, i):
    pairs = {"{": "}", "(": ")", "[": "]"}
    end, depth = pairs[tokens[i]], 0
    for j in range(i, len(tokens)):
        depth += (tokens[j] == tokens[i]) - (tokens[j] == end)
        if depth == 0:
            return j
    return len(tokens) - 1


def without_groups(tokens):
    """Tokens outside of brackets, which stay as an empty pair; angles only behind a name."""
    out, i = [], 0
    while i < len(tokens):
        t = tokens[i]
        if t in "({[":
            i = closing(tokens, i)
            out += [t]
        elif t == "<" and out and (out[-1] == "template" or out[-1][0].isalpha()):
            depth = 0
            while i < len(tokens):
                depth += (tokens[i] == "<") - (tokens[i] == ">")
                if tokens[i] in "({[":
                    i = closing(tokens, i)
                if depth == 0:
                    break
                i += 1
        else:
            out.append(t)
        i += 1
    return out


def declaration(tokens, hidden, source):
    if tokens[:2] == ["using", "namespace"]:
        source.directives.add(" ".join(tokens))
        return
    if tokens[:1] in (["using"], ["namespace"]):  # an alias, or a name of another namespace
        flat = without_groups(tokens)
        names = [tokens[1]] if "=" in flat else [t for t, after in zip(tokens, tokens[1:]) if after in (";", ",")]
        source.aliases.update((name, " ".join(tokens)) for name in names)
        return
    if not hidden and not {"static", "const", "constexpr", "struct", "class", "enum"} & set(tokens[:8]):
        return
    flat = without_groups(tokens)
    if flat[:1] == ["template"]:
        flat = flat[1:]
    for i, t in enumerate(flat):
        if t in ("struct", "class", "enum") and i + 1 < len(flat):
            name = next((x for x in flat[i + 1:] if x not in ("class", "alignas", "(")), "")
            source.declared.add(name)
            return
        if t in ("(", "=", "{", "[", ";", ",") and i > 0 and (flat[i - 1][0].isalpha() or flat[i - 1][0] == "_"):
            name = flat[i - 1]
            if name not in KEYWORDS and not name.isupper():
                (source.functions if t == "(" else source.declared).add(name)
            if t == "(":
                return


def units_of(sources):
    count = 1
    while count * BUCKET_LINES < sum(s.lines for s in sources):
        count *= 2
    units = []
    for source in sorted(sources, key=lambda s: s.path):
        bucket = int(hashlib.md5(source.name().encode()).hexdigest(), 16) % count
        for where, members in units:
            if (where == bucket and source.lines + sum(m.lines for m in members) <= UNIT_LINES
                    and all(source.fits(m) for m in members)):
                members.append(source)
                break
        else:
            units.append((bucket, [source]))
    return [members for _, members in units]


def write_unit(folder, members):
    path = os.path.join(folder, members[0].name() + ".cpp")
    headers = sorted({header for m in members for header in m.headers})
    text = "\n".join([*headers, *(f'#include "{os.path.abspath(m.path)}"' for m in members), ""])
    if not os.path.exists(path) or read(path) != text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return path


def main():
    folder, *paths = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for members in units_of([Source(path) for path in paths]):
        print(write_unit(folder, members) if len(members) > 1 else members[0].path)


if __name__ == "__main__":
    main()
