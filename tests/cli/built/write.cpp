// built_cases FOLDER PARTS SAMPLES [MODEL...]: writes programs as `rlx build` does, for graphs of cases.h and so many samples of every operator, ONNX models in folders with inputs.safetensors, with inputs and what the
// compiled graph makes of them; main_K.cpp runs those of one part and compares bytes. run.py compiles them.
#include <cstdio>
#include <cstdlib>

#include "apps/rlx/build_files.h"
#include "apps/rlx/build_plan.h"
#include "rlx/base/output_file.h"
#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/ir/call.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/sample.h"
#include "rlx/ir/text.h"
#include "rlx/lang/module.h"
#include "rlx/ops/all.h"
#include "rlx/runtime/compiled_graph.h"
#include "tests/cli/built/cases.h"
#include "tests/support/samples.h"
#ifdef RLX_ONNX
#include "rlx/onnx/import.h"
#endif

namespace rlx::test {
namespace {

constexpr int kThreads[] = {2, 1};  // the number a program is built for, and another

void write_values(OutputFile& out, const std::vector<Literal>& values) {
  for (const Literal& v : values) {
    const uint64_t bytes = v.bytes().size();
    out.write(std::as_bytes(std::span(&bytes, 1)));
    out.write(v.bytes());
  }
}

struct Written {
  std::string name;
  size_t inputs = 0, outputs = 0;
};

// Inputs, then the results for each number of threads.
Written write_case(const std::string& folder, const std::string& name, const ir::Graph& g,
                   const NamedLiterals& weights, const NamedLiterals& inputs) {
  OutputFile values(cat(folder, "/", name, ".values"));
  Written out{name};
  for (const int threads : kThreads) {
    CompiledGraph f = compile(g, weights, {.threads = threads});
    if (threads == kThreads[0]) {
      cli::write_program(f, name, folder, {});
      std::vector<Literal> in;
      for (const Port& p : f.inputs()) in.push_back(inputs.at(p.name));
      write_values(values, in);
      out.inputs = in.size();
    }
    const NamedLiterals results = f.run(inputs);
    std::vector<Literal> list;
    for (const Port& p : f.outputs()) list.push_back(results.at(p.name));
    write_values(values, list);
    out.outputs = list.size();
  }
  values.finish();
  return out;
}

// Params are weights, inputs what each run is given.
Written write_text(const std::string& folder, const BuiltCase& c) {
  const ir::Graph g = ir::parse_graph(c.text, ops::table());
  NamedLiterals weights, inputs;
  for (const ir::NodeId id : g.leaves()) {
    const ir::Node& n = g.node(id);
    const bool whole = is_integer(n.shapes[0].dtype()) && !n.is<ir::Param>();
    const std::string fill = n.shapes[0].dtype() == DType::u8 ? " bytes" : whole ? " <2" : "";
    (n.is<ir::Param>() ? weights : inputs)
        .emplace(ir::leaf_name(n), ir::sample_literal(cat(n.shapes[0], fill), 5 + id));
  }
  return write_case(folder, std::string(c.name), g, weights, inputs);
}

struct Sampled {
  ir::Graph graph;
  NamedLiterals weights, inputs;
};

// All operands but the first are weights.
Sampled sampled(const ir::OpDef& op, size_t index) {
  const SampleCase c = make_case(op, index);
  Sampled out{ir::Graph(cat("op_", op.name, "_", index)), {}, {}};
  ir::Values operands;
  for (size_t i = 0; i < c.leaves.size(); ++i) {
    const std::string name = cat("x", i);
    operands.push_back(i == 0 ? out.graph.input(name, c.leaves[i].shape())
                              : out.graph.param(name, c.leaves[i].shape()));
    (i == 0 ? out.inputs : out.weights).emplace(name, c.leaves[i]);
  }
  const ir::NodeId id = out.graph.append(op, op.samples()[index].attrs, operands);
  ir::Values outputs;
  for (uint32_t r = 0; r < out.graph.node(id).shapes.size(); ++r) outputs.push_back(out.graph.value(id, r));
  out.graph.set_outputs(outputs);
  if (op.traits.block) out.graph = lower(out.graph);
  return out;
}

#ifdef RLX_ONNX
Written write_model(const std::string& folder, const std::string& model) {
  const auto file = io::SafetensorsFile::open(model + "/inputs.safetensors");
  NamedLiterals inputs;
  for (const io::TensorView& t : file.tensors()) inputs.emplace(t.name, io::to_literal(t));
  const Program program = onnx::import_model(model + "/model.onnx", {.values = inputs}).program;
  std::vector<Shape> shapes;
  for (const ir::NodeId id : program.graph.leaves()) {
    const auto given = inputs.find(ir::leaf_name(program.graph.node(id)));
    shapes.push_back(given == inputs.end() ? program.graph.node(id).shapes[0] : given->second.shape());
  }
  std::erase_if(inputs, [&](const auto& in) { return !program.graph.find_leaf(in.first); });
  const std::string name = model.substr(model.find_last_of('/') + 1);
  return write_case(folder, "onnx_" + name, program.graph.bind(ir::solve_sizes(program.graph, shapes)),
                    program.weights, inputs);
}
#else
Written write_model(const std::string&, const std::string& model) {
  throw invalid(model, ": this build has no room for ONNX");
}
#endif

constexpr std::string_view kMain = R"(#include <atomic>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Program {
  const char* name;
  size_t inputs, outputs;
  void* (*create)(int threads);
  int (*run)(void*, const void* const*, void* const*);
  void (*free)(void*);
  const char* (*error)();
};

using Values = std::vector<std::string>;

bool runs_as_told(const Program& p, void* object, const Values& inputs, const Values& results) {
  std::vector<const void*> in;
  for (const std::string& v : inputs) in.push_back(v.data());
  Values got;
  for (const std::string& v : results) got.emplace_back(v.size(), '\x55');
  std::vector<void*> out;
  for (std::string& v : got) out.push_back(v.data());
  if (p.run(object, in.data(), out.data()) != 0) {
    std::printf("%s: %s\n", p.name, p.error());
    return false;
  }
  return got == results;
}

bool check(const Program& p) {
  std::ifstream file(std::string(FOLDER) + p.name + ".values", std::ios::binary);
  const auto next = [&](size_t count) {
    Values out(count);
    for (std::string& v : out) {
      uint64_t bytes = 0;
      file.read(reinterpret_cast<char*>(&bytes), sizeof bytes);
      v.resize(bytes);
      file.read(v.data(), std::streamsize(bytes));
    }
    return out;
  };
  const Values inputs = next(p.inputs);
  bool right = true;
  for (const int threads : {2, 1}) {
    const Values results = next(p.outputs);
    void* const objects[] = {p.create(threads), p.create(threads)};
    if (objects[0] == nullptr || objects[1] == nullptr) {
      std::printf("%s on %d threads: %s\n", p.name, threads, p.error());
      return false;
    }
    std::atomic<int> good{0};
    std::vector<std::thread> users;
    for (void* object : objects) {
      users.emplace_back([&, object] {
        for (int i = 0; i < 2; ++i) good += runs_as_told(p, object, inputs, results);
      });
    }
    for (std::thread& user : users) user.join();
    for (void* object : objects) p.free(object);
    if (good != 4) std::printf("%s on %d threads: %d of 4 runs gave the bytes of the compiled graph\n", p.name, threads, good.load());
    right = right && good == 4;
  }
  return right;
}

template <auto Create, auto Run, auto Free, auto Error>
Program program(const char* name, size_t inputs, size_t outputs) {
  using Object = decltype(Create(0));
  return {name, inputs, outputs, [](int threads) -> void* { return Create(threads); },
          [](void* p, const void* const* in, void* const* out) { return Run(static_cast<Object>(p), in, out); },
          [](void* p) { Free(static_cast<Object>(p)); }, Error};
}

}  // namespace

int main() {
  int right = 0, all = 0;
)";

void write_main(const std::string& folder, int part, const std::vector<Written>& programs) {
  std::string text;
  for (const Written& w : programs)
    text += cat("#define ", w.name, "_WEIGHTS \"", folder, "/", w.name, ".weights\"\n#include \"", w.name,
                ".cpp\"\n");
  text += cat("#define FOLDER \"", folder, "/\"\n", kMain);
  for (const Written& w : programs) {
    text += cat("  ++all, right += check(program<", w.name, "_create_threads, ", w.name, "_run, ", w.name,
                "_free, ", w.name, "_error>(\"", w.name, "\", ", w.inputs, ", ", w.outputs, "));\n");
  }
  text += "  std::printf(\"%d of %d programs\\n\", right, all);\n  return right == all ? 0 : 1;\n}\n";
  OutputFile out(cat(folder, "/main_", part, ".cpp"));
  out.write(std::string_view(text));
  out.finish();
}

int run(const std::string& folder, int parts, int samples, std::span<char*> models) {
  std::vector<std::vector<Written>> programs(static_cast<size_t>(parts));
  int written = 0, planned = 0, refused = 0;
  std::vector<std::string> wrong;
  const auto unless_refused = [&](const std::string& what, auto action) {
    try {
      action();
      return true;
    } catch (const Error& e) {
      // Some types have no kernel. Anything else is a mistake.
      if (e.message().find("runs by its reference rule") == std::string::npos)
        wrong.push_back(cat(what, ": ", e.message()));
      ++refused;
      return false;
    }
  };
  const auto keep = [&](Written w) { programs[size_t(written++ % parts)].push_back(std::move(w)); };
  for (const BuiltCase& c : kBuiltCases)
    unless_refused(std::string(c.name), [&] { keep(write_text(folder, c)); });
  for (const ir::OpDef* op : ops_of(ops::table())) {
    if (op->traits.leaf || op->samples == nullptr) continue;
    int left = samples;
    for (size_t i = 0; i < op->samples().size(); ++i) {
      const std::string name = cat("op_", op->name, "_", i);
      const bool done = unless_refused(cat(op->name, " ", i), [&] {
        const Sampled s = sampled(*op, i);
        if (left > 0) {
          keep(write_case(folder, name, s.graph, s.weights, s.inputs));
        } else {  // the rest is written to nowhere
          CompiledGraph f = compile(s.graph, s.weights, {.threads = kThreads[0]});
          cli::DataFile data("data");
          cli::built_plan(f, data);
          ++planned;
        }
      });
      if (done) --left;
    }
    if (left == samples) wrong.push_back(cat(op->name, ": no sample became a program"));
  }
  for (const char* model : models) unless_refused(model, [&] { keep(write_model(folder, model)); });
  for (int i = 0; i < parts; ++i) write_main(folder, i, programs[size_t(i)]);
  std::printf("%d programs written, %d planned, %d refused\n", written, planned, refused);
  for (const std::string& w : wrong) std::printf("wrong: %s\n", w.c_str());
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace rlx::test

int main(int argc, char** argv) {
  if (argc < 4) return std::printf("usage: built_cases FOLDER PARTS SAMPLES [MODEL...]\n"), 2;
  return rlx::test::run(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), {argv + 4, argv + argc});
}
