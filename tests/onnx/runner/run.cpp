#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "rlx/io/onnx/read.h"
#include "rlx/onnx/import.h"
#include "rlx/runtime/compiled_graph.h"
#include "tests/onnx/runner/case.h"

namespace rlx::onnx_cases {
namespace {

// Tensors whose size depends on data come as large as they can be, with a count.
Literal cut(const Literal& x, int axis, int64_t count) {
  Dims dims = x.shape().dims();
  const AxisView v = axis_view(x.shape(), axis);
  dims[size_t(axis)] = count;
  Literal out = Literal::zeros(Shape(x.dtype(), dims));
  const size_t width = dtype_size(x.dtype()), inner = size_t(v.inner) * width;
  for (int64_t o = 0; o < v.outer; ++o) {
    const auto from = x.bytes().subspan(size_t(o * v.length) * inner, size_t(count) * inner);
    std::copy(from.begin(), from.end(), out.mutable_bytes().begin() + ptrdiff_t(size_t(o * count) * inner));
  }
  return out;
}

std::string values_text(const Literal& l) {
  std::string text = cat(l);
  return text.size() > 160 ? cat(text.substr(0, 160), "...") : text;
}

bool near(double got, double want, const Tolerance& t) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::fabs(got - want) <= t.absolute + t.relative * std::fabs(want);
}

// Expected numbers were computed in the type they have: what is below the last bit of the largest is noise of theirs.
Tolerance with_noise(const Literal& want, Tolerance t) {
  if (want.dtype() != DType::f32 && want.dtype() != DType::c64) return t;
  double largest = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const double v = std::abs(want.complex_at(i));
    if (std::isfinite(v)) largest = std::max(largest, v);
  }
  t.absolute = std::max(t.absolute, largest * 0x1p-23);
  return t;
}

std::string difference(const Literal& got, const Literal& want, const Tolerance& asked) {
  const Tolerance t = with_noise(want, asked);
  if (got.shape().dims() != want.shape().dims() || got.dtype() != want.dtype())
    return cat("got ", got.shape(), ", expected ", want.shape());
  const bool exact = !is_differentiable(want.dtype()) && !is_float(want.dtype());
  double error = 0, norm = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const auto g = got.complex_at(i), w = want.complex_at(i);
    error += std::norm(g - w);
    norm += std::norm(w);
    const bool same = exact ? got.integer_at(i) == want.integer_at(i)
                            : near(g.real(), w.real(), t) && near(g.imag(), w.imag(), t);
    if (!same && (exact || t.relative_l2 == 0))
      return cat("element ", i, " is ", g.real(), ", expected ", w.real(), "; got ", values_text(got),
                 ", expected ", values_text(want));
  }
  if (t.relative_l2 > 0 && !exact && std::sqrt(error) > t.relative_l2 * std::sqrt(norm))
    return cat("relative error ", std::sqrt(error / norm), ", allowed ", t.relative_l2);
  return "";
}

bool is_random(const io::onnx::Graph& g) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [](const io::onnx::Node& n) {
    return n.op.starts_with("Random") || n.op == "Bernoulli" || n.op == "Multinomial" ||
           (n.op == "Dropout" && n.inputs.size() == 3);
  });
}

// Which place of the model holds something that is no tensor; `otherwise` when none does.
std::string not_tensors(const io::onnx::Model& m, const std::string& otherwise) {
  using Kind = io::onnx::Type::Kind;
  for (const auto* list : {&m.graph.inputs, &m.graph.outputs}) {
    for (const io::onnx::ValueInfo& v : *list) {
      if (v.type.kind == Kind::tensor) continue;
      return cat(list == &m.graph.inputs ? "input '" : "output '", v.name, "' is ",
                 v.type.kind == Kind::optional ? "an optional" : "a sequence");
    }
  }
  return otherwise;
}

// Inputs that the graph still has.
NamedLiterals inputs_for(const ir::Graph& g, const NamedLiterals& given) {
  NamedLiterals out;
  for (const ir::NodeId id : g.inputs()) {
    const std::string& name = ir::leaf_name(g.node(id));
    if (const auto at = given.find(name); at != given.end()) out.emplace(name, at->second);
  }
  return out;
}

std::string run_set(const onnx::Imported& m, const DataSet& set, const std::string& device,
                    const Tolerance& t) {
  auto compiled = compile(m.program.graph, m.program.weights, {.device = device});
  const NamedLiterals got = compiled.run(inputs_for(m.program.graph, set.inputs));
  for (const auto& [name, want] : set.outputs) {
    Literal value = got.at(name);
    for (const onnx::BoundedOutput& b : m.bounded) {
      if (b.output == name) value = cut(value, b.axis, got.at(b.count).integer_at(0));
    }
    if (const std::string d = difference(value, want, t); !d.empty())
      return cat(set.name, ": output '", name, "': ", d);
  }
  return "";
}

}  // namespace

std::string_view outcome_name(Outcome o) {
  switch (o) {
    case Outcome::passed:
      return "passed";
    case Outcome::unsupported:
      return "unsupported";
    case Outcome::import_error:
      return "import error";
    case Outcome::run_error:
      return "run error";
    case Outcome::wrong_value:
      return "wrong value";
    case Outcome::random:
      return "random numbers";
    case Outcome::crash:
      return "crash";
  }
  return "";
}

Result run_case(const Case& c, const std::string& device) {
  const io::onnx::Model model = io::onnx::read_model(c.model);
  const bool random = is_random(model.graph);
  std::optional<onnx::Imported> general;
  try {
    general = onnx::import_model(model);
  } catch (const Error& e) {
    if (c.expects_refusal && dynamic_cast<const onnx::Unsupported*>(&e) != nullptr) return {};
    // Perhaps it works for the values of a set.
  }
  if (c.expects_refusal) return {Outcome::wrong_value, "the model was to be refused"};
  if (!c.data_error.empty()) {
    try {
      onnx::import_model(model);
    } catch (const onnx::Unsupported& e) {
      return {Outcome::unsupported, e.what()};
    } catch (const Error&) {
      // What the data says is the better message.
    }
    return {Outcome::unsupported, not_tensors(model, c.data_error)};
  }
  for (const DataSet& set : c.sets) {
    std::optional<onnx::Imported> special;
    if (!general) {
      try {
        special = onnx::import_model(model, {.values = set.inputs});
      } catch (const onnx::Unsupported& e) {
        return {Outcome::unsupported, e.what()};
      } catch (const Error& e) {
        return {Outcome::import_error, e.what()};
      }
    }
    try {
      const std::string wrong = run_set(general ? *general : *special, set, device, c.tolerance);
      if (!wrong.empty() && random) return {Outcome::random, "the numbers are those of another stream"};
      if (!wrong.empty()) return {Outcome::wrong_value, wrong};
    } catch (const Error& e) {
      return {Outcome::run_error, e.what()};
    }
  }
  return {};
}

Result run_apart(const std::string& folder, const std::string& device, int seconds) {
  int ends[2];
  if (::pipe(ends) != 0) throw environment_error("onnx: no pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::alarm(unsigned(seconds));
    Result r;
    try {
      r = run_case(read_case(folder), device);
    } catch (const onnx::Unsupported& e) {
      r = {Outcome::unsupported, e.what()};
    } catch (const Error& e) {
      // Data that tensors cannot hold: strings and sequences.
      r = {e.kind() == ErrorKind::internal ? Outcome::crash : Outcome::import_error, e.what()};
    } catch (const std::exception& e) {
      r = {Outcome::crash, e.what()};
    }
    const std::string text = char('0' + int(r.outcome)) + r.message;
    (void)!::write(ends[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, size_t(n));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (text.empty() || !WIFEXITED(status))
    return {Outcome::crash,
            WIFSIGNALED(status) ? cat("ended by signal ", WTERMSIG(status)) : "ended without a word"};
  return {Outcome(text[0] - '0'), text.substr(1)};
}

}  // namespace rlx::onnx_cases
