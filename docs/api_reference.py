"""docs/api.md: every public name with its signature and one line, read from the headers."""
import pathlib
import re

import declarations
import operators

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What a program includes, from the first header it meets to the last. A folder stands for its headers.
CHAPTERS = [
    ("Graphs and tensors", ["rlx/lang/trace.h", "rlx/lang/tensor.h", "rlx/lang/operators.h", "rlx/lang/functions.h",
                            "rlx/lang/control.h", "rlx/lang/apply.h", "rlx/lang/graph.h", "rlx/lang/builders"]),
    ("Programs, modules and files", ["rlx/lang/program.h", "rlx/lang/module.h", "rlx/lang/plan.h",
                                     "rlx/lang/graph_file.h", "rlx/lang/inspect.h", "rlx/lang/picture.h"]),
    ("Compiling and running", ["rlx/runtime/compiled_graph.h", "rlx/runtime/options.h", "rlx/runtime/view.h", "rlx/runtime/devices.h",
                               "rlx/runtime/session.h", "rlx/runtime/attempt.h", "rlx/runtime/named_weights.h", "rlx/runtime/compile_cache.h",
                               "rlx/runtime/archive.h", "rlx/runtime/calibrate.h",
                               "rlx/runtime/dlpack.h", "rlx/runtime/stages.h", "rlx/runtime/report.h", "rlx/runtime/profile.h",
                               "rlx/runtime/page.h", "rlx/runtime/finite_check.h", "rlx/runtime/lockstep.h", "rlx/runtime/deviation.h",
                               "rlx/runtime/reduce.h"]),
    ("Training", ["rlx/train/trainer.h", "rlx/train/optimizer.h", "rlx/train/schedule.h", "rlx/train/gradients.h", "rlx/train/init.h",
                  "rlx/train/batches.h", "rlx/train/checkpoint.h", "rlx/train/settings.h", "rlx/train/catalogue.h"]),
    ("Models", ["rlx/models/model.h", "rlx/models/config.h", "rlx/models/architecture.h", "rlx/models/rope.h", "rlx/models/trainable.h"]),
    ("Text from models", ["rlx/llm/language_model.h", "rlx/llm/conversation.h", "rlx/llm/embedding.h", "rlx/llm/sampler.h",
                          "rlx/llm/batcher.h", "rlx/llm/decoder.h", "rlx/llm/adapter.h", "rlx/llm/guess.h", "rlx/llm/finetune.h",
                          "rlx/llm/finetune_data.h", "rlx/llm/quantize_model.h", "rlx/llm/imatrix.h", "rlx/llm/model_memory.h",
                          "rlx/llm/grammar/matcher.h", "rlx/llm/grammar/gbnf.h",
                          "rlx/llm/grammar/json_schema.h", "rlx/llm/grammar/regular_expression.h"]),
    ("ONNX", ["rlx/onnx/import.h", "rlx/onnx/export.h"]),
    ("Derivatives and batching", ["rlx/lang/derivatives.h", "rlx/transform/transform.h", "rlx/transform/partition.h",
                                  "rlx/transform/coverage.h"]),
    ("Sizes, types, values and errors", ["rlx/base/version.h", "rlx/base/error.h", "rlx/base/text.h", "rlx/base/dim.h", "rlx/base/dtype.h", "rlx/base/shape.h",
                                         "rlx/ir/literal.h", "rlx/ir/named_literals.h", "rlx/base/options.h", "rlx/base/json.h",
                                         "rlx/base/json_write.h"]),
    ("Inside a graph", ["rlx/ir/value.h", "rlx/ir/graph.h", "rlx/ir/module.h", "rlx/ir/bodies.h", "rlx/ir/clone.h",
                        "rlx/ir/rewrite.h", "rlx/ir/interpreter.h", "rlx/ir/text.h", "rlx/ir/json.h",
                        "rlx/ir/op_record.h", "rlx/ir/attr.h", "rlx/ir/build_def.h", "rlx/ir/op_def.h", "rlx/ir/leaves.h",
                        "rlx/ir/inline.h",
                        "rlx/ops/control/custom_op.h"]),
    ("Files of other systems", ["rlx/io"]),
    ("Quantised formats", ["rlx/quant/format.h", "rlx/quant/scheme.h"]),
    ("Tokenizers and chat templates", ["rlx/text/tokenizer.h", "rlx/text/encoding.h", "rlx/text/chat_template.h",
                                       "rlx/text/value.h", "rlx/text/vocab_spec.h"]),
]
# Parts of the readers of rlx/io that no program calls.
INTERNAL = {"byte_reader.h", "gguf_layout.h", "name_index.h", "zip.h"}


def headers(entry):
    path = ROOT / entry
    if path.is_dir():
        return [h for h in sorted(path.glob("*.h")) if h.name not in INTERNAL]
    return [path] if path.exists() else []


def meanings():
    """One line by name: of an operator from its record, of a function of operators from its comment."""
    out = {}
    for path in sorted(ROOT.glob("rlx/ops/**/*.h")):
        for owner, signature, line, _ in declarations.declarations(path.read_text()):
            if line and not owner and "(" in signature:
                out.setdefault(declarations.name_of(signature), line)
    out.update({name: op["summary"].rstrip(".") for name, op in operators.records().items()})
    return out


def about(text):
    """The comment on top of a header, its first sentence."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("//") or not line[2:].strip():
            break
        lines.append(line[2:].strip())
    return declarations.sentence(lines)


def is_type(signature):
    return re.match(r"(template <.*> )?(class|struct|enum)", signature)


# Names that mean the same wherever they stand.
USUAL = {"operator==": "Whether both are equal", "operator<=>": "An order, for maps", "operator<<": "As its text",
         "operator bool": "Whether there is one", "operator()": "As a function", "append_text": "As messages write it",
         "begin": "For loops over ranges", "end": "For loops over ranges",
         "size": "How many there are", "len": "How many there are", "empty": "Whether there are none",
         "contains": "Whether it is there", "shape": "Extents and element type", "dtype": "The element type",
         "rank": "The number of axes", "elements": "How many elements it has",
         "Attrs": "Attributes with their defaults"}


def usual(owner, name):
    """What the name alone says."""
    if match := re.fullmatch(r"is_(\w+)", name):
        return f"Whether it is {match.group(1).replace('_', ' ')}"
    return "Makes one" if name == owner.split("::")[-1] else USUAL.get(name, "")


# What an operator's struct says of itself: rlx/ir/op_record.h lists these parts.
PARTS = {"infer", "reference", "decompose", "vjp", "jvp", "vmap", "samples", "fields"}


def is_told_elsewhere(owner, name, signature, line):
    """Copies and moves, steps of an iterator, rules of an operator, what a base class says of its functions, and
    deduction guides."""
    kind = owner.split("::")[-1]
    copied = name == kind and re.search(rf"\((?:const )?{kind}(?:&|&&)\w* ?\w*\)", signature)
    return (copied or name == "operator=" or kind == "Iterator" or name == "Iterator" or
            (signature.endswith(" override") and not line) or
            (name in PARTS and "static" in signature) or ") -> " in signature)


def macros(text):
    """The lines of macros that have a comment."""
    for comment, macro in re.findall(r"((?:^///.*\n)+)(?:#ifdef.*\n)?#define (RLX_\w+(?:\([^)]*\))?)", text, re.M):
        yield f"- `{macro}` " + declarations.sentence([part.removeprefix("///").strip() for part in comment.splitlines()]) + "."


class Lines:
    """Finds the line of each declaration of a header: its own, or where else it is told."""

    def __init__(self, path, text, meaning):
        self.path, self.text, self.meaning = path, text, meaning
        self.of_type = {}
        self.last = ("", "", "")

    def of(self, owner, name, signature, line, group, explained):
        if not line and self.last[:2] == (owner, name):
            line = self.last[2]  # another form of the same function
        if "(*" not in signature:
            line = line or self.of_operator(name, signature)
        line = line or group or (usual(owner, name) if explained else "")
        settings = re.search(r"\(const (\w+)& = \{\}\)$", signature)
        if not line and settings:
            line = self.of_type.get(settings.group(1), "")  # a thing made of its settings alone is told where they are
        if is_type(signature):
            if not line and name.lower() == self.path.stem.replace("_", ""):
                line = about(self.text)  # the type that the header is about
            self.of_type[name] = line
        self.last = (owner, name, line)
        return line

    def of_operator(self, name, signature):
        is_record = is_type(signature) and "std::string_view summary" in self.text
        return self.meaning.get(name.lower() if is_record else name.rstrip("_"), "")


def section(path, meaning):
    """The lines of one header, and its functions and types that have no line of their own."""
    text = path.read_text()
    out, bare = [f"### `{path.relative_to(ROOT)}`", "", about(text) + ".", ""], []
    lines = Lines(path, text, meaning)
    for owner, signature, own, group in declarations.declarations(text):
        name = declarations.name_of(signature)
        if re.match(r"using [\w:]+$", signature) or is_told_elsewhere(owner, name, signature, own):
            continue
        explained = is_type(signature) or declarations.is_function(signature)
        line = lines.of(owner, name, signature, own, group, explained)
        if explained and not line:
            bare.append(f"{owner}::{name}" if owner else name)
        if is_type(signature) and not signature.startswith("enum"):
            out += ["", f"**`{signature.split(' : ')[0]}`**" + (f" {line}." if line else ""), ""]
        else:
            out.append(f"- `{signature}`" + (f" {line}." if line else ""))
    return out + list(macros(text)) + [""], bare


def text():
    """The document, and the names in it that have no line yet."""
    meaning = meanings()
    out = ["# The public surface", "",
           "Every public name with its signature and a line of what it is. Builders and operators also take the caller's",
           "place last, and builders a declared shape before it, which is checked and never overrides; both are left out",
           "here, and so are copies and moves.", ""]
    bare = []
    for title, entries in CHAPTERS:
        out += [f"## {title}", ""]
        for entry in entries:
            for path in headers(entry):
                lines, without = section(path, meaning)
                out += lines
                bare += without
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)), bare
