// rlx build: a compiled graph as C++ sources with a C interface.
#include <cctype>

#include "apps/rlx/bound_graph.h"
#include "apps/rlx/command.h"
#include "apps/rlx/output.h"
#include "rlx/base/file.h"
#include "rlx/runtime/archive.h"

namespace rlx::cli {
namespace {

struct BuildArguments {
  GraphArguments graph;
  std::string folder, name;
  int threads = 0;
};

// NAME stands for the name of the program, INPUTS and OUTPUTS for their numbers, PORTS for their types.
constexpr std::string_view kHeader = R"(/* NAME: a compiled graph. Made by `rlx build`. */
#ifndef NAME_H
#define NAME_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct NAME NAME;

enum { NAME_inputs = INPUTS, NAME_outputs = OUTPUTS };
PORTS
/* Null when it cannot be made; NAME_error says why. One object is for one thread at a time. */
NAME* NAME_create(void);
void NAME_free(NAME*);

/* Dense row-major tensors of the types above, in that order. 0 when done; otherwise NAME_error says why and
   the outputs are as they were. */
int NAME_run(NAME*, const void* const* inputs, void* const* outputs);

/* The last error of this thread. */
const char* NAME_error(void);

#ifdef __cplusplus
}
#endif
#endif
)";

constexpr std::string_view kSource = R"(#include "NAME.h"

#include <rlx/runtime/archive.h>

#include <string>
#include <vector>

// The program and its weights, as they lie in NAME.rlxp.
__asm__(
    ".section .rodata\n.balign 64\n.global NAME_program\nNAME_program:\n.incbin \"" NAME_PROGRAM "\"\n"
    ".global NAME_program_end\nNAME_program_end:\n.byte 0\n.previous\n");
extern "C" const std::byte NAME_program[], NAME_program_end[];

namespace {
thread_local std::string last_error;

template <class Action>
auto guarded(Action action, decltype(action()) failed) -> decltype(action()) {
  try {
    return action();
  } catch (const std::exception& e) {
    last_error = e.what();
    return failed;
  }
}
}  // namespace

struct NAME {
  rlx::CompiledGraph program;
  std::vector<rlx::TensorView> inputs, outputs;
};

static rlx::TensorView typed(const rlx::Port& port) {
  std::vector<int64_t> dims;
  for (const rlx::Dim d : port.shape.dims()) dims.push_back(d.value());
  return rlx::view_bytes(port.shape.dtype(), nullptr, dims);
}

NAME* NAME_create(void) {
  return guarded(
      []() -> NAME* {
        auto* made = new NAME{rlx::load_compiled({NAME_program, NAME_program_end}, nullptr, "NAME"), {}, {}};
        for (const rlx::Port& p : made->program.inputs()) made->inputs.push_back(typed(p));
        for (const rlx::Port& p : made->program.outputs()) made->outputs.push_back(typed(p));
        return made;
      },
      nullptr);
}

void NAME_free(NAME* p) { delete p; }

int NAME_run(NAME* p, const void* const* inputs, void* const* outputs) {
  return guarded(
      [&] {
        std::vector<rlx::Input> in;
        for (size_t i = 0; i < p->inputs.size(); ++i) {
          p->inputs[i].data = static_cast<std::byte*>(const_cast<void*>(inputs[i]));
          in.push_back({p->program.inputs()[i].name, p->inputs[i]});
        }
        for (size_t i = 0; i < p->outputs.size(); ++i) p->outputs[i].data = static_cast<std::byte*>(outputs[i]);
        p->program.run_into(in, p->outputs);
        return 0;
      },
      1);
}

const char* NAME_error(void) { return last_error.c_str(); }
)";

constexpr std::string_view kCMake = R"(cmake_minimum_required(VERSION 3.22)
project(NAME LANGUAGES C CXX)
find_package(rlx REQUIRED)
add_library(NAME STATIC NAME.cpp)
target_compile_features(NAME PUBLIC cxx_std_20)
target_include_directories(NAME PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(NAME PRIVATE NAME_PROGRAM="${CMAKE_CURRENT_SOURCE_DIR}/NAME.rlxp")
set_property(SOURCE NAME.cpp APPEND PROPERTY OBJECT_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/NAME.rlxp)
target_link_libraries(NAME PUBLIC rlx::rlx)
)";

std::string replaced(std::string_view text, std::string_view word, std::string_view by) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t found = text.find(word, at);
    out += text.substr(at, found == std::string_view::npos ? found : found - at);
    if (found == std::string_view::npos) return out;
    out += by;
    at = found + word.size();
  }
}

std::string program_name(const BuildArguments& a, const ir::Graph& g) {
  const std::string name = a.name.empty() ? g.name() : a.name;
  bool plain = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  for (const char c : name) plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
  if (!plain) throw invalid("build: '", name, "' cannot be a name in C; give one with --name");
  return name;
}

std::string ports_text(const CompiledGraph& f) {
  std::string out;
  const auto add = [&out](std::string_view list, const std::vector<Port>& ports) {
    for (size_t i = 0; i < ports.size(); ++i)
      out += cat("/* ", list, "[", i, "]: ", replaced(ports[i].name, "*/", "* /"), ", ", ports[i].shape,
                 " */\n");
  };
  add("inputs", f.inputs());
  add("outputs", f.outputs());
  return out;
}

void run(const BuildArguments& a) {
  const BoundGraph bound = read_graph_only(a.graph, "build");
  if (const auto symbols = bound.graph.dynamic_symbols(); !symbols.empty())
    throw invalid("build: sizes of ", join(symbols), " are not known; give them with --bind SYMBOL=N");
  const std::string name = program_name(a, bound.graph);
  CompiledGraph f = compile(bound.graph, bound.weights, {.threads = a.threads});
  f.plan();  // so that the file has the program
  make_folders(a.folder);
  save_compiled(f, cat(a.folder, "/", name, ".rlxp"));
  const auto write = [&](std::string_view file, std::string_view text) {
    std::string out =
        replaced(replaced(text, "INPUTS", cat(f.inputs().size())), "OUTPUTS", cat(f.outputs().size()));
    out = replaced(replaced(out, "NAME", name), "PORTS", ports_text(f));
    write_file(cat(a.folder, "/", file), std::string_view(out));
  };
  write(name + ".h", kHeader);
  write(name + ".cpp", kSource);
  write("CMakeLists.txt", kCMake);
  print(cat(a.folder, ": ", name, ".h, ", name, ".cpp, ", name, ".rlxp, CMakeLists.txt\n"));
}

}  // namespace

void add_build(Command app) {
  Command command = app.add_subcommand("build", "write a compiled graph as C++ sources with a C interface");
  auto a = std::make_shared<BuildArguments>();
  add_graph_file(command, a->graph);
  command.add_option("--output-dir,-o", a->folder, "the folder to write to").required();
  command.add_option("--name", a->name,
                     "what functions and files are called; default: the name of the graph");
  command.add_option("--threads", a->threads, "threads to compile for; 0: all cores").not_negative();
  command.callback([a] { run(*a); });
}

}  // namespace rlx::cli
