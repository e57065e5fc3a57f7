"""Reads the public declarations of a header of this tree: what it declares, with the comment above it.

No C++ parser: it relies on the house style (one declaration after another, `///` above what it explains)."""
import re


def closing(text, i, pair="{}"):
    """The place behind the bracket that closes the one at text[i]."""
    depth = 0
    while i < len(text):
        if text[i] in "\"'":
            quote, i = text[i], i + 1
            while text[i] != quote:
                i += 2 if text[i] == "\\" else 1
        elif text.startswith("//", i):
            i = text.find("\n", i)
            continue
        elif text[i] == pair[0]:
            depth += 1
        elif text[i] == pair[1]:
            depth -= 1
            if depth == 0:
                return i + 1
        i += 1
    raise ValueError("a bracket is not closed")


def sentence(comment):
    """The first sentence of a comment, without its final period."""
    text = " ".join(comment).strip()
    match = re.match(r"(.*?[^.\d])(?:\.|;|:)(?:\s|$)", text)
    first = match.group(1) if match and text[match.end(1)] == "." else text
    return first.rstrip(".;: ")


def tidy(signature):
    """One line, without the parameters that every builder has last."""
    text = re.sub(r"\s*//[^\n]*", "", signature)
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r",? ?const Declared& (?:shape|output_shape) = \{\}(?=[,)])", "", text)
    text = re.sub(r",? ?const Loc& (?:loc|where) = Loc::current\(\)", "", text)
    text = text.replace("(, ", "(")
    text = re.sub(r"\[\[nodiscard\]\] |\binline |\bconstexpr ", "", text)
    return re.sub(r"(\)(?: const)?(?: noexcept)?) :(?!:) .*$", r"\1", text)  # constructors: no initialisers


def without_template(signature):
    """What stands behind `template <...> requires ...`."""
    text = signature
    if text.startswith("template "):
        text = text[closing(text, text.index("<"), "<>"):].lstrip()
    if text.startswith("requires"):
        text = text[len("requires"):].lstrip()
        end = closing(text, text.index("("), "()") if text.startswith("(") else closing(text, text.index("<"), "<>")
        text = text[end:].lstrip()
    return text


def name_of(signature):
    """The name that a declaration introduces."""
    text = without_template(signature)
    if match := re.match(r"(?:using|class|struct|enum class|enum|concept) ([\w:]+)(?: =| :| \{|$)", text):
        return match.group(1).split("::")[-1]
    if match := re.match(r"using (?:\w+::)*(\w+)$", text):
        return match.group(1)
    if match := re.search(r"(operator\s*(?:[^\s\w(]+|\(\)|\w[\w:<>]*(?: \w+)*))\(", text):
        return match.group(1)
    if match := re.search(r"\(\*(\w+)\)\(", text):  # a pointer to a function
        return match.group(1)
    while "<" in text and text != (less := re.sub(r"<[^<>]*>", "", text)):
        text = less  # types of templates hold brackets of their own
    if match := re.match(r"[^=]*?(~?\w+)\(", text):
        return match.group(1)
    match = re.search(r"(\w+)(?:\{.*|\[.*)?$", text.split(" = ")[0])  # a member
    return match.group(1) if match else text


def is_function(signature):
    """Whether it declares a function, or a member that points to one."""
    return bool(re.search(re.escape(name_of(signature)) + r"\)?\(", signature))


class Reader:
    def __init__(self, text):
        self.text = re.sub(r"^#(?:.*\\\n)*.*$", "", text, flags=re.M)  # no macros, no includes
        self.out = []

    def read(self):
        self.scope(0, len(self.text), "", True)
        return self.out

    def scope(self, i, end, owner, public):
        """Declarations between two places; `owner` is the class they are members of."""
        text, doc, group, after_comment = self.text, [], [], False
        while i < end:
            if text[i] in " \t;":
                i += 1
                continue
            if text[i] == "\n":
                blank = re.match(r"\n[ \t]*\n", text[i:])
                if blank:
                    doc, group = [], []
                i += 1
                continue
            line_end = text.find("\n", i)
            if text.startswith("//", i):
                comment = text[i:line_end]
                if comment.startswith("///"):
                    doc.append(comment[3:].strip())
                elif "clang-format" not in comment:
                    group = [*(group if after_comment else []), comment[2:].strip()]
                    after_comment = True
                i = line_end
                continue
            if access := re.match(r"(public|private|protected):", text[i:]):
                public = access.group(1) == "public"
                i += access.end()
                continue
            i = self.declaration(i, owner, public, doc, group)
            doc, after_comment = [], False
        return i

    def declaration(self, i, owner, public, own, group):
        """Reads one declaration; `own` is the comment right above it, `group` that of the lines it stands among."""
        text, start, doc = self.text, i, own
        while text[i] not in ";{":
            if text[i] in "(\"":
                i = closing(text, i, "()") if text[i] == "(" else text.index("\"", i + 1) + 1
            else:
                i = text.find("\n", i) if text.startswith("//", i) else i + 1
        head = text[start:i]
        if match := re.match(r"(?:inline )?namespace\s*([\w:]*)", head):
            end = closing(text, i)
            if match.group(1) and "detail" not in match.group(1):
                self.scope(i + 1, end - 1, owner, public)
            return end
        kind = re.match(r"(?:template <.*?>\s*)?(class|struct|enum class|enum|union) (\w+)", head, re.S)
        if kind and text[i] == "{":
            end = closing(text, i)
            if public and not re.match(r"template <.*?>\s*(?:requires\s[^{]*\s)?struct \w+<", head, re.S):  # a special case
                if kind.group(1).startswith("enum"):
                    body = re.sub(r"//[^\n]*", "", text[i:end])
                    self.out.append((owner, tidy(head) + " " + re.sub(r",? \}", " }", re.sub(r"\s+", " ", body)),
                                     sentence(doc), ""))
                else:
                    inner = f"{owner}::{kind.group(2)}" if owner else kind.group(2)
                    self.out.append((owner, tidy(head), sentence(doc), ""))
                    self.scope(i + 1, end - 1, inner, kind.group(1) != "class")
            return end
        if text[i] == "{" and (")" in head or "=" not in head):  # the body of a function, or a member's {}
            i = closing(text, i)
        elif text[i] == "{":  # the value of a member
            i = text.index(";", closing(text, i))
            head = text[start:i]
        signature = tidy(head)
        trailing = re.match(r";?[ \t]*// ?([^\n]*)", text[i:])
        if trailing:
            i += trailing.end()
            if not own and "NOLINT" not in trailing.group(1):
                doc = [trailing.group(1)]
        elif text[i] == ";":
            i += 1
        signature = re.sub(r"^friend (?=\S+ operator)", "", signature)
        hidden = re.match(r"(static_assert|friend|class |struct |extern|template class|template <>)", signature) or \
            re.match(r"using (\w+)::\1$", signature) or re.search(r"\w+<\w+>::\w+\(", signature)
        if public and signature and not hidden and "= delete" not in signature and not name_of(signature).startswith("~"):
            self.out.append((owner, re.sub(r" = default$", "", signature), sentence(doc), sentence(group)))
        return i


def declarations(text):
    """(owner, signature, first sentence of its comment, and of its group's) of every public declaration, in order."""
    return Reader(text).read()
