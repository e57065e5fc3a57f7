#include "tests/vectors/case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "rlx/base/json.h"
#include "rlx/base/json_write.h"
#include "rlx/io/literal.h"
#include "rlx/io/safetensors.h"
#include "rlx/runtime/compiled_graph.h"
#include "rlx/transform/transform.h"

namespace rlx::vectors {
namespace {

constexpr double kValueTolerance = 1e-5, kGradientTolerance = 1e-4;

// f32[..., 2] as c64[...]: the bytes are the same.
Literal paired(const Literal& l) {
  Dims dims = l.shape().dims();
  if (l.dtype() != DType::f32 || dims.empty() || dims.back() != Dim(2))
    throw invalid("vectors: a complex tensor is stored as f32[..., 2], not ", l.shape());
  dims.pop_back();
  return Literal::copy_of(Shape(DType::c64, dims), l.bytes());
}

// A recurrent network has no operator of its own: it is a scan over a body.
std::string rnn_text(const Case& c) {
  const Shape &init = c.in.at(0).shape(), &w = c.in.at(1).shape(), &xs = c.in.at(2).shape();
  const Shape step = xs.with_dims(Dims(xs.dims().begin() + 1, xs.dims().end()));
  return cat(
      "graph @rnn(in0: ", init, ", in1: ", w, ", in2: ", xs,
      ") {\n  out0 = scan(in0, in1, in2, length=", xs.dim(0), ", carries=1, consts=1, body=graph(c: ", init,
      ", w: ", w, ", x: ", step,
      ") {\n    h = matmul(c, w)\n    s = add(h, x)\n    y = tanh(s)\n    return y\n  })\n  return out0\n}");
}

std::string file_text(const Case& c) {
  std::string nodes, operands, outputs;
  for (const auto& [k, value] : c.in) {
    nodes += cat("{\"id\": ", k, ", \"op\": \"input\", \"attrs\": {\"name\": \"in", k, "\", \"shape\": \"",
                 value.shape(), "\"}}, ");
    operands += cat(operands.empty() ? "" : ", ", "[", k, ", 0]");
  }
  const size_t id = c.in.size();
  for (const auto& [k, value] : c.out)
    outputs += cat(outputs.empty() ? "" : ", ", "{\"value\": [", id, ", ", k, "], \"name\": \"out", k, "\"}");
  return cat(R"({"format": "rlx.graph", "version": 1, "graph": {"name": "case", "nodes": [)", nodes,
             "{\"id\": ", id, ", \"op\": ", json_quote(c.op), ", \"inputs\": [", operands,
             "], \"attrs\": ", c.attrs, "}], \"outputs\": [", outputs, "]}}");
}

void check(const Literal& got, const Literal& want, double tolerance, const std::string& what,
           std::string& out) {
  const double error = relative_error(got, want);
  if (error < tolerance) return;
  out += cat(what, ": relative error ", error, ", allowed ", tolerance, "; got ", got.shape(), ", expected ",
             want.shape(), "\n");
}

// Every failure of one case, a line each.
std::string run_case(const Case& c, const std::string& device, bool gradients) {
  std::string failures;
  const Graph g = build_graph(c);
  NamedLiterals leaves;
  for (const auto& [k, value] : c.in) leaves.emplace(cat("in", k), value);
  const NamedLiterals out = compile(g, {}, {.device = device}).run(leaves);
  const auto names = g.output_names();
  size_t i = 0;
  for (const auto& [k, want] : c.out)
    check(out.at(names[i++]), want, kValueTolerance, cat("out.", k), failures);
  if (!gradients || c.grad.empty()) return failures;

  std::vector<std::string> wrt;
  for (const auto& [k, value] : c.grad) wrt.push_back(cat("in", k));
  const ir::Graph derivative = transform::grad(g, wrt, {.cotangent_inputs = true});
  for (const auto& [k, value] : c.cot)
    leaves.emplace(c.out.size() == 1 ? std::string("d_output") : cat("d_out", k), value);
  const NamedLiterals got = compile(derivative, {}, {.device = device}).run(leaves);
  for (const auto& [k, want] : c.grad)
    check(got.at(cat("d_in", k)), want, kGradientTolerance, cat("grad.", k), failures);
  return failures;
}

}  // namespace

Case read_case(const std::string& path) {
  const auto file = io::SafetensorsFile::open(path);
  const auto metadata = [&](const char* key) {
    const std::string* value = file.find_metadata(key);
    if (value == nullptr) throw invalid(path, ": no '", key, "' in the metadata; not an operator vector");
    return *value;
  };
  Case c{metadata("op"), metadata("attrs"), {}, {}, {}, {}};
  const Json pairs = Json::parse(metadata("complex"), path);
  std::vector<std::string> complexes;
  for (const JsonView name : pairs.items()) complexes.emplace_back(name.string());
  for (const io::TensorView& t : file.tensors()) {
    const size_t dot = t.name.find('.');
    const std::string group = t.name.substr(0, dot);
    auto* to = group == "in"     ? &c.in
               : group == "out"  ? &c.out
               : group == "cot"  ? &c.cot
               : group == "grad" ? &c.grad
                                 : nullptr;
    if (to == nullptr || dot == std::string::npos) throw invalid(path, ": unknown tensor '", t.name, "'");
    Literal value = io::to_literal(t);
    if (std::find(complexes.begin(), complexes.end(), t.name) != complexes.end()) value = paired(value);
    to->emplace(std::stoi(t.name.substr(dot + 1)), std::move(value));
  }
  return c;
}

Graph build_graph(const Case& c) {
  return c.op == "scan_tanh_rnn" ? Graph::parse(rnn_text(c)) : Graph::from_json(file_text(c));
}

double relative_error(const Literal& got, const Literal& want) {
  constexpr double kWrong = std::numeric_limits<double>::infinity();
  const bool stored_bool = got.dtype() == DType::bool_ && want.dtype() == DType::u8;
  if (got.shape().dims() != want.shape().dims() || (got.dtype() != want.dtype() && !stored_bool))
    return kWrong;
  const bool exact = !is_differentiable(want.dtype());
  double difference = 0, norm = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    const std::complex<double> g = got.complex_at(i), w = want.complex_at(i);
    if (g == w) {
      norm += std::isfinite(std::abs(w)) ? std::norm(w) : 0;
      continue;
    }
    if (exact) return kWrong;
    difference += std::norm(g - w);
    norm += std::norm(w);
  }
  if (difference == 0) return 0;
  // Expected zeros are met by rounding errors: below 1e-3 an element counts as 1e-3.
  const double floor = 1e-3 * std::sqrt(double(want.elements()));
  const double error = std::sqrt(difference) / std::max(std::sqrt(norm), floor);
  return error == error ? error : kWrong;
}

Outcome run_folder(const std::string& folder, const std::string& device, bool gradients) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  Outcome out;
  for (const std::string& path : paths) {
    std::string failures;
    try {
      failures = run_case(read_case(path), device, gradients);
    } catch (const Error& e) {
      failures = cat(e.what(), "\n");
    }
    failures.empty() ? ++out.passed : ++out.failed;
    const std::string name = std::filesystem::path(path).filename().string();
    for (size_t at = 0, end; at < failures.size(); at = end + 1) {
      end = failures.find('\n', at);
      out.failures += cat(name, ": ", failures.substr(at, end - at), "\n");
    }
  }
  return out;
}

}  // namespace rlx::vectors
