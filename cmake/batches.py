"""batches.py LINES [-- FOLDER SOURCE...]...: puts small sources together, up to so many lines, those of each folder by themselves.
Writes a unit into the folder for each group, and into FOLDER/sources.txt what to compile, one path a line: the units,
and the sources that stay alone.

Loading precompiled headers and instantiating what they hold costs a small source more than its own text, so the dev
presets compile several sources as one. Every name must mean in the unit what it means alone. Headers stand first, so
that no header sees a name of a source. A name that one source declares with internal linkage and another mentions is
another name in the unit: a macro around the source's text adds the source's number. Where that would reach further
than the declaration (members, names of headers, arguments of macros) the two do not share a unit.

A source falls into a bucket by the hash of its path, and only members of a bucket are put together: a new source
changes the units of its own bucket and no other.
"""
import functools
import hashlib
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
UNITS_IN_BUCKET = 4

TOKEN = re.compile(r"[A-Za-z_]\w*|::|->|\.\.\.|[{}()\[\]<>;,=.&*:#]|[^\s\w]|\d[\w.']*")
SKIPPED = re.compile(
    r'R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#[^\n]*(?:\\\n[^\n]*)*", re.M)
KEYWORDS = frozenset("if for while switch return sizeof alignas alignof decltype noexcept requires template typename"
                     " static inline constexpr consteval constinit const operator explicit auto void bool char int float double"
                     " int64_t size_t uint8_t true false nullptr this new delete try catch throw default case do else".split())


def tokens_of(text):
    text = SKIPPED.sub(lambda m: '""' if m[0].endswith(('"', "'")) else " ", text)
    return TOKEN.findall(DIRECTIVE.sub("", text))


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Names:
    """What the namespaces of a text declare."""

    def __init__(self, tokens, text, public):
        self.defines = set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M))
        self.functions, self.declared = set(), set(self.defines)
        self.aliases = {}  # name -> the declaration: two that are equal may stand in one unit
        self.directives = set()
        scopes(tokens, self, public)


class Source(Names):
    def __init__(self, path):
        self.path = path
        text = read(path)
        self.lines = text.count("\n")
        tokens = tokens_of(text)
        super().__init__(tokens, text, public=False)
        self.mentioned, self.called = set(), set()  # called: by what follows, a function
        self.fixed = self.defines | set(self.aliases) | reaches_further(tokens)
        headers = included(path, text)
        self.fixed |= {name for name in self.functions | self.declared if any(name in public_names(h) for h in headers)}
        for before, t, after in zip([""] + tokens, tokens, tokens[1:] + [""]):
            if (t[0].isalpha() or t[0] == "_") and before not in (".", "->", "::"):
                self.mentioned.add(t)
                if after in ("(", "<"):
                    self.called.add(t)
        head, body = re.match(r"((?:[ \t]*(?://[^\n]*|#include[^\n]*)?\n)*)(.*)", text, re.S).groups()
        self.headers = re.findall(r'^#include (?:"[^"]+"|<[^>]+>)', head, re.M)
        self.alone = re.search(r'^[ \t]*#[ \t]*include "', body, re.M) is not None  # a header that reads what stands above it
        tables = set(re.findall(r"^RLX_ISA_TABLE\w*\(\w+, (\w+)\)", text, re.M))  # a function each, called as its maker is
        self.functions |= tables
        self.fixed |= tables
        if re.search(r"^[ \t]*#[ \t]*include <", body, re.M):  # behind the macros
            self.fixed |= self.functions | self.declared

    def name(self):
        """The same in every checkout."""
        return re.sub(r"\W", "_", os.path.splitext(os.path.relpath(self.path, ROOT))[0])

    def clashes(self, other):
        """Names declared here that would change what the other means."""
        aliases = {a for a, text in self.aliases.items() if a in other.mentioned and other.aliases.get(a) != text}
        return (self.functions & other.called) | (self.declared & other.mentioned) | aliases

    def fits(self, other):
        return (not (self.alone or other.alone) and self.directives == other.directives
                and not self.clashes(other) & self.fixed and not other.clashes(self) & other.fixed)


def included(path, text):
    candidates = (os.path.join(folder, name) for name in re.findall(r'^#include "([^"]+\.h)"', text, re.M)
                  for folder in (ROOT, os.path.dirname(path)))
    return [header for header in candidates if os.path.exists(header)]


@functools.cache
def public_names(path):
    """Names that a header and all that it includes declare: a source may mean one of these where it declares its own."""
    text = read(path)
    header = Names(tokens_of(text), text, public=True)
    return frozenset(header.functions | header.declared | set(header.aliases)).union(
        *(public_names(h) for h in included(path, text)))


def reaches_further(tokens):
    """Names that a macro must not replace: members, overrides, and arguments of macros, which may turn them into text."""
    names = {t for before, t in zip(tokens, tokens[1:]) if before in (".", "->", "::")}
    for i, t in enumerate(tokens[:-1]):
        if tokens[i + 1] == "(":
            end = closing(tokens, i + 1)
            if "override" in tokens[end + 1:end + 4]:
                names.add(t)
            if t.isupper() and not t.startswith(("EXPECT_", "ASSERT_", "RLX_CHECK")):
                names.update(tokens[i + 2:end])
    return names


def scopes(tokens, source, public):
    """Splits the tokens into declarations of namespaces and notes what those of internal linkage declare, or all."""
    hidden = [public]  # and of each open namespace: whether it has no name
    start = i = 0
    while i < len(tokens):
        t = tokens[i]
        if t == "namespace" and tokens[i - 1:i] != ["using"] and "=" not in tokens[i:i + 3]:
            hidden.append(tokens[i + 1] == "{")
            i = tokens.index("{", i)
            start = i + 1
        elif t == "}" and len(hidden) > 1:
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
    internal = {"static", "const", "constexpr", "struct", "class", "enum"} & set(tokens[:8]) and tokens[0] != "extern"
    if not hidden and not internal:
        return
    flat = without_groups(tokens)
    if flat[:1] == ["template"]:
        flat = flat[1:]
    value = False  # behind "=", up to the next name
    for i, t in enumerate(flat):
        if t in ("struct", "class", "enum") and i + 1 < len(flat):
            name = next((x for x in flat[i + 1:] if x not in ("class", "alignas", "(")), "")
            source.declared.add(name)
            if t == "enum" and flat[i + 1] not in ("class", "struct"):
                source.declared.update(enumerators(tokens))
            return
        if t in ("(", "=", "{", "[", ";", ",") and i > 0 and (flat[i - 1][0].isalpha() or flat[i - 1][0] == "_"):
            name = flat[i - 1]
            if name not in KEYWORDS and not name.isupper() and not value:
                (source.functions if t == "(" else source.declared).add(name)
            if t == "(" and not value:
                return
        if t in ("=", ","):
            value = t == "="


def enumerators(tokens):
    inside = tokens[tokens.index("{"):] if "{" in tokens else []
    return {name for before, name in zip(inside, inside[1:]) if before in ("{", ",") and name[0].isalpha()}


def units_of(sources, lines):
    count = 1
    while count * lines * UNITS_IN_BUCKET < sum(s.lines for s in sources):
        count *= 2
    units = []
    for source in sorted(sources, key=lambda s: s.path):
        bucket = int(hashlib.md5(source.name().encode()).hexdigest(), 16) % count
        for where, members in units:
            if (where == bucket and source.lines + sum(m.lines for m in members) <= lines
                    and all(source.fits(m) for m in members)):
                members.append(source)
                break
        else:
            units.append((bucket, [source]))
    return [members for _, members in units]


def text_of(members):
    """The headers, then the sources, in which names that another one mentions end in a number."""
    lines = sorted({header for m in members for header in m.headers})
    for i, member in enumerate(members):
        names = sorted(set().union(*(member.clashes(other) for other in members if other is not member)))
        lines += [f"#define {name} {name}_{i}" for name in names]
        lines += [f'#include "{os.path.abspath(member.path)}"']
        lines += [f"#undef {name}" for name in names]
    return "\n".join([*lines, ""])


def write(path, text):
    if not os.path.exists(path) or read(path) != text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return path


def write_units(folder, paths, lines):
    os.makedirs(folder, exist_ok=True)
    compiled = [
        write(os.path.join(folder, members[0].name() + ".cpp"), text_of(members)) if len(members) > 1 else members[0].path
        for members in units_of([Source(path) for path in paths], lines)
    ]
    write(os.path.join(folder, "sources.txt"), "\n".join([*compiled, ""]))


def main():
    arguments = sys.argv[1:]
    starts = [i for i, a in enumerate(arguments) if a == "--"]
    for start, end in zip(starts, [*starts[1:], len(arguments)]):
        write_units(arguments[start + 1], arguments[start + 2:end], int(arguments[0]))


if __name__ == "__main__":
    main()
