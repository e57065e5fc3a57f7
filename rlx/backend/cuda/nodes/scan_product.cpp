// Loops whose step is one product with a square matrix and elementwise operators behind it (kernels/scan_product.h), in front of it or on both sides
// (kernels/scan_between.h): recurrent nets and their gradients.
#include <algorithm>

#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/kernels/cluster_blocks.h"
#include "rlx/backend/cuda/kernels/scan_between.h"
#include "rlx/backend/cuda/kernels/scan_cluster.h"
#include "rlx/backend/cuda/kernels/scan_product.h"
#include "rlx/backend/cuda/nodes/loop_elements.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/ops/shape/transpose.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kMostColumns = 256, kMostRows = 1024;

/// The body of such a loop: state -> elements in front -> product -> elements behind; one kind of elements may be missing.
struct Reading {
  const ir::Node *front = nullptr, *product = nullptr, *behind = nullptr;
  std::optional<region::Region> front_region, behind_region;
  ir::Value state;
  size_t weights = 0;  // operand of the loop
  bool turned = false;
  std::string problem;
};

bool is_elements(const ir::Node& n) {
  return n.op->traits.elementwise || (n.is<ops::Fused>() && !reduces(n));
}

bool is_turn(const ir::Node& n) {
  return n.is<ops::Transpose>() && n.as<ops::Transpose>().perm == std::vector<int>{1, 0};
}

// Which node is what; false where there are others.
bool find_nodes(const ir::Graph& body, Reading& out) {
  for (const ir::Node* n : body.nodes()) {
    if (n->op->traits.leaf || (is_turn(*n) && body.node(n->inputs[0]).op->traits.leaf)) continue;
    const ir::Node*& place = n->is<ops::Matmul>() ? out.product : out.product ? out.behind : out.front;
    if (place || (&place != &out.product && !is_elements(*n))) return false;
    place = n;
  }
  return out.product != nullptr;
}

Reading read(const ops::Scan::Attrs& a) {
  Reading out;
  const ir::Graph& body = *a.body;
  const auto fail = [&](std::string why) {
    out.problem = std::move(why);
    return out;
  };
  if (!find_nodes(body, out)) return fail("a step of other operators");
  if (a.length.value() < 1) return fail("no steps");
  if ((!out.front && !out.behind) || a.gate != ops::ScanGate::none || a.carries != 1)
    return fail("no product with a state");
  const auto leaves = body.leaves();
  const Shape &state = body.node(leaves[0]).shapes[0], &w = body.shape(out.product->inputs[1]);
  if (state.rank() != 2 || state.dtype() != DType::f32 || w.dtype() != DType::f32 || w.rank() != 2 ||
      w.dim(0) != w.dim(1) || w.dim(0) != state.dim(1))
    return fail("no square matrix of f32");
  out.state = body.node(leaves[0]).result();
  const ir::Node& right = body.node(out.product->inputs[1]);
  out.turned = is_turn(right);
  const ir::NodeId matrix = out.turned ? right.inputs[0].node : right.id;
  out.weights = size_t(std::find(leaves.begin(), leaves.end(), matrix) - leaves.begin());
  const ir::Value left = out.product->inputs[0];
  const bool from_front = out.front && left.node == out.front->id && body.shape(left) == state;
  if ((!from_front && left != out.state) || out.weights < 1 || out.weights > size_t(a.consts))
    return fail("the product is not of the state with a constant");
  if (state.dim(1).value() > kMostColumns || state.dim(0).value() > kMostRows || state.elements() == 0)
    return fail("a large state");
  const ir::Node& last = out.behind ? *out.behind : *out.product;
  for (const ir::Value v : body.outputs()) {
    const bool made = v.node == last.id || v.node == out.product->id || v == out.state ||
                      (out.front && v.node == out.front->id);
    if (!made || body.shape(v) != state) return fail("a result of other operators");
  }
  if (body.outputs()[0].node != last.id) return fail("the state is not what the last operator makes");
  std::vector<ir::Value> made{out.state};
  for (const ir::Node* n : {out.front, out.product, out.behind}) {
    if (!n) continue;
    if (n != out.product) {
      LoopRegion found = loop_region(body, *n, state, made);
      if (!found.region) return fail(found.problem);
      (n == out.front ? out.front_region : out.behind_region) = std::move(found.region);
    }
    for (uint32_t i = 0; i < n->shapes.size(); ++i) made.push_back(n->result(i));
  }
  // Other operands of elements are leaves: a turned matrix is for the product alone.
  for (const ir::Node* n : {out.front, out.behind}) {
    for (size_t i = 0; n && i < n->inputs.size(); ++i) {
      const ir::Value v = n->inputs[i];
      if (!body.node(v).op->traits.leaf && std::count(made.begin(), made.end(), v) == 0)
        return fail("elements of a turned operand");
    }
  }
  return out;
}

Support accepts(const Request& r) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  const Reading reading = read(r.node.as<ops::Scan>());
  if (!reading.problem.empty()) return Support::no(reading.problem);
  return Support::yes();
}

/// Values that a kernel holds in registers, as its text calls them.
using Names = std::vector<std::pair<ir::Value, std::string>>;

std::vector<std::string> results_of(const ir::Node& n, const std::string& prefix, Names& names) {
  std::vector<std::string> out;
  for (uint32_t i = 0; i < n.shapes.size(); ++i) {
    out.push_back(cat(prefix, i));
    names.emplace_back(n.result(i), out.back());
  }
  return out;
}

// Results of the step that have a name among `names`, from number `first` on.
std::string writes_of(const Request& r, const Names& names, size_t first) {
  std::string out;
  const ir::Values& outputs = r.node.as<ops::Scan>().body->outputs();
  for (size_t i = 1; i < outputs.size(); ++i) {
    for (size_t k = first; k < names.size(); ++k) {
      if (names[k].first == outputs[i])
        out += cat("  if (write) p.y", i, "[i64(t) * ", r.out[0].shape.elements(),
                   " + e] = ", names[k].second, ";\n");
    }
  }
  return out;
}

// Which result of its node the new state is.
size_t state_result(const Request& r) { return r.node.as<ops::Scan>().body->outputs()[0].index; }

std::string declared(const std::vector<std::string>& results) {
  std::string out;
  for (const std::string& name : results) out += cat("  f32 ", name, ";\n");
  return out;
}

// What both kernels need in front of them.
std::string common_text(const Request& r, const LoopSlices& slices) {
  const auto& a = r.node.as<ops::Scan>();
  return cat("constexpr int kWidth = ", r.out[0].shape.dim(1).value(), ", kLength = ", a.length.value(),
             ";\nconstexpr bool kReverse = ", a.reverse ? "true" : "false", ";\nstruct Params {\n",
             loop_params(r), "};\nstruct Slices {\n", slices.fields, "};\n",
             "inline f32 start_of(const Params& p, i64 e) { return p.x0[e]; }\n",
             "inline void finish(const Params& p, i64 e, f32 h) { p.y0[e] = h; }\n",
             "inline Slices slices_at(const Params& p, int t, i64 e) {\n  Slices out;\n", slices.loads,
             "  return out;\n}\n");
}

/// The text in front of kernels/scan_product.h.
std::string hooks_behind(const Request& r, const Reading& reading) {
  LoopSlices slices;
  Names names{{reading.state, "before"}, {reading.product->result(), "product"}};
  Names known = names;
  const auto results = results_of(*reading.behind, "r", names);
  const LoopCall call =
      loop_call(r, *reading.behind, *reading.behind_region, "elements_region", known, results, slices);
  return cat(common_text(r, slices), "inline const f32* weights_of(const Params& p) { return p.x",
             reading.weights, "; }\n", call.function,
             "inline f32 next_state(const Params& p, int t, i64 e, f32 product, f32 before, const Slices& "
             "slices, bool write) {\n",
             declared(results), "  elements_region(int(e)", call.arguments, ");\n", writes_of(r, names, 0),
             "  return ", results[state_result(r)], ";\n}\n");
}

/// The text in front of kernels/scan_between.h.
std::string hooks_between(const Request& r, const Reading& reading) {
  LoopSlices slices;
  Names names{{reading.state, "before"}};
  std::string made = "struct Made {};\n", front, behind, left = "before", returned = "product";
  if (reading.front) {
    const auto results = results_of(*reading.front, "made.f", names);
    const LoopCall call = loop_call(r, *reading.front, *reading.front_region, "front_region",
                                    {{reading.state, "before"}}, results, slices);
    made = "struct Made {\n";
    for (size_t i = 0; i < results.size(); ++i) made += cat("  f32 f", i, ";\n");
    made += cat("};\n", call.function);
    if (reading.product->inputs[0] != reading.state) left = results[reading.product->inputs[0].index];
    front = cat("  front_region(int(e)", call.arguments, ");\n");
  }
  const std::string front_writes = writes_of(r, names, 0);
  const size_t first_behind = names.size();
  names.emplace_back(reading.product->result(), "product");
  if (reading.behind) {
    const Names known = names;
    const auto results = results_of(*reading.behind, "r", names);
    const LoopCall call =
        loop_call(r, *reading.behind, *reading.behind_region, "behind_region", known, results, slices);
    made += call.function;
    behind = cat(declared(results), "  behind_region(int(e)", call.arguments, ");\n");
    returned = results[state_result(r)];
  }
  return cat(
      common_text(r, slices), "inline f32 weight_at(const Params& p, int k, int column) { return p.x",
      reading.weights, reading.turned ? "[i64(column) * kWidth + k]" : "[i64(k) * kWidth + column]", "; }\n",
      made,
      "inline f32 in_front(const Params& p, int t, i64 e, f32 before, Made& made, const Slices& slices, "
      "bool write) {\n",
      front, front_writes, "  return ", left, ";\n}\n",
      "inline f32 next_state(const Params& p, int t, i64 e, f32 product, f32 before, const Made& made, "
      "const Slices& slices, bool write) {\n",
      behind, writes_of(r, names, first_behind), "  return ", returned, ";\n}\n");
}

std::unique_ptr<Step> prepare(const Request& r) {
  const Reading reading = read(r.node.as<ops::Scan>());
  const bool plain = !reading.front && !reading.turned;
  Source source = plain ? Source{"scan_product",
                                 cat(hooks_behind(r, reading), kClusterBlocks, kScanCluster, kScanProduct)}
                        : Source{"scan_between",
                                 cat(hooks_between(r, reading), kClusterBlocks, kScanCluster, kScanBetween)};
  return loop_step(
      r, cat(r.node.as<ops::Scan>().length.value(), " steps in one kernel, two blocks for each row"),
      device_of(r).functions().get(std::move(source)));
}

}  // namespace

void add_scan_products(KernelTable& table, const std::string& architecture) {
  if (has_clusters(architecture)) table.add<ops::Scan>({"scan_product", accepts, prepare});
}

}  // namespace rlx::cuda
