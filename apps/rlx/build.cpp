// rlx build: a compiled graph as C++ sources with a C interface.
#include <dlfcn.h>

#include <algorithm>
#include <cctype>

#include "apps/rlx/bound_graph.h"
#include "apps/rlx/build_files.h"
#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/ir/clone.h"
#include "rlx/ir/leaves.h"

namespace rlx::cli {
namespace {

struct BuildArguments {
  GraphArguments graph;
  std::string folder, name;
  int threads = 0;
};

// Words that name something else in C or C++, or in the sources themselves.
constexpr std::string_view kTaken =
    " EOF NULL assert errno i386 int16_t int32_t int64_t int8_t intptr_t linux offsetof ptrdiff_t size_t uint16_t "
    "uint32_t uint64_t uint8_t uintptr_t unix "
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
    "char32_t char8_t class co_await co_return co_yield compl concept const const_cast consteval "
    "constexpr constinit continue decltype default delete do double dynamic_cast else enum "
    "explicit export extern false float for friend goto if inline int long main mutable namespace "
    "new noexcept not not_eq nullptr operator or or_eq private protected public register "
    "reinterpret_cast requires restrict return rlx short signed sizeof static static_assert "
    "static_cast std struct switch template this thread_local throw true try typedef typeid "
    "typename typeof typeof_unqual union unsigned using virtual void volatile wchar_t while xor "
    "xor_eq ";

// A function or an object of the C library, which comes with headers: exp, time, stdin.
bool in_c_library(const std::string& name) { return dlsym(RTLD_DEFAULT, name.c_str()) != nullptr; }

std::string program_name(const BuildArguments& a, const ir::Graph& g) {
  const std::string name = a.name.empty() ? g.name() : a.name;
  bool plain = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  for (const char c : name) plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
  if (!plain) throw invalid("build: '", name, "' cannot be a name in C; give one with --name");
  const bool reserved =
      name.find("__") != std::string::npos ||
      (name[0] == '_' && name.size() > 1 && std::isupper(static_cast<unsigned char>(name[1])));
  if (reserved || in_c_library(name) || kTaken.find(cat(' ', name, ' ')) != std::string_view::npos)
    throw invalid("build: '", name, "' means something else in C or C++; give another with --name");
  return name;
}

// Params that the file has no value for become inputs: a compiled program's weights are fixed.
ir::Graph with_open_params_as_inputs(const ir::Graph& g, const NamedLiterals& weights,
                                     std::vector<std::string>& opened) {
  ir::Graph out(g.name());
  out.assume_sizes_of(g);
  ir::Cloner copy(out);
  for (const ir::Node* n : g.nodes()) {
    if (n->is<ir::Param>() && !weights.contains(ir::leaf_name(*n))) {
      opened.push_back(ir::leaf_name(*n));
      copy.set(n->result(), out.input(opened.back(), n->shapes[0]));
    } else {
      copy.copy(*n);
    }
  }
  copy.copy_outputs(g);
  return out;
}

void run(const BuildArguments& a) {
  const BoundGraph bound = read_graph_only(a.graph, "build");
  if (const auto symbols = bound.graph.dynamic_symbols(); !symbols.empty())
    throw invalid("build: sizes of ", join(symbols), " are not known; give them with --bind SYMBOL=N");
  const std::string name = program_name(a, bound.graph);
  std::vector<std::string> opened;
  const ir::Graph graph = with_open_params_as_inputs(bound.graph, bound.weights, opened);
  CompiledGraph f = compile(graph, bound.weights, {.threads = a.threads});
  write_program(f, name, a.folder, opened);
  if (!opened.empty()) print(cat("inputs, since the graph has no values for them: ", join(opened), "\n"));
  print(cat(a.folder, ": ", name, ".h, ", name, ".cpp, ", name, ".weights, CMakeLists.txt\n"));
}

}  // namespace

void add_build(Command app) {
  Command command = app.add_subcommand("build", "write a compiled graph as C++ sources with a C interface");
  auto a = std::make_shared<BuildArguments>();
  add_graph_file(command, a->graph);
  command.add_option("--output-dir,-o", a->folder, "the folder to write to").required();
  command.add_option("--name", a->name,
                     "what functions and files are called; default: the name of the graph");
  command
      .add_option("--threads", a->threads,
                  "threads it is compiled for, which NAME_create takes; 0: all cores")
      .not_negative();
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
