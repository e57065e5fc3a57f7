// Loops whose step is one product with a square matrix and elementwise operators behind it (kernels/scan_product.h).
#include <algorithm>
#include <map>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/kernels/scan_product.h"
#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/control/scan.h"
#include "rlx/ops/linalg/matmul.h"
#include "rlx/region/of_node.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kMostColumns = 256, kMostRows = 1024;

/// The body of such a loop: state -> product -> elements.
struct Reading {
  const ir::Node *product = nullptr, *elements = nullptr;
  std::optional<region::Region> region;
  std::string problem;
};

Reading read(const ops::Scan::Attrs& a) {
  Reading out;
  const ir::Graph& body = *a.body;
  const auto fail = [&](std::string why) {
    out.problem = std::move(why);
    return out;
  };
  for (const ir::Node* n : body.nodes()) {
    if (n->op->traits.leaf) continue;
    if (n->is<ops::Matmul>() && !out.product) {
      out.product = n;
    } else if (out.product && !out.elements && n->shapes.size() >= 1 &&
               (n->op->traits.elementwise || (n->is<ops::Fused>() && !reduces(*n)))) {
      out.elements = n;
    } else {
      return fail("a step of other operators");
    }
  }
  if (a.length.value() < 1) return fail("no steps");
  if (!out.elements || a.gate != ops::ScanGate::none || a.carries != 1)
    return fail("no product with a state");
  const auto leaves = body.leaves();
  const Shape &state = body.node(leaves[0]).shapes[0], &w = body.shape(out.product->inputs[1]);
  if (state.rank() != 2 || state.dtype() != DType::f32 || w.dtype() != DType::f32 || w.rank() != 2 ||
      w.dim(0) != w.dim(1) || w.dim(0) != state.dim(1))
    return fail("no square matrix of f32");
  const auto constant = std::find(leaves.begin(), leaves.end(), out.product->inputs[1].node) - leaves.begin();
  if (out.product->inputs[0].node != leaves[0] || constant < 1 || constant > a.consts)
    return fail("the product is not of the state with a constant");
  if (state.dim(1).value() > kMostColumns || state.dim(0).value() > kMostRows || state.elements() == 0)
    return fail("a large state");
  for (const ir::Value v : body.outputs()) {
    if (v.node != out.elements->id || body.shape(v) != state)
      return fail("a result of other than the last operator");
  }
  if (body.outputs()[0].index != 0) return fail("the state is not the first result");
  std::vector<Shape> types;
  for (const ir::Value v : out.elements->inputs) types.push_back(body.shape(v));
  region::Built built = region::of_node(*out.elements, types, {}, {});
  if (!built) return fail(built.refusal);
  out.region = std::move(built.region);
  const region::Region& r = *out.region;
  if (r.has_reduction() || r.rows() * r.columns() != state.elements() || r.width() != 4)
    return fail("elements of another shape");
  for (size_t i = 0; i < r.arguments.size(); ++i) {
    const bool made = i >= types.size() || out.elements->inputs[i].node == out.product->id;
    if (made && !is_dense(r, r.arguments[i])) return fail("elements in another order");
  }
  return out;
}

Support accepts(const Request& r) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  const Reading reading = read(r.node.as<ops::Scan>());
  return reading.problem.empty() ? Support::yes() : Support::no(reading.problem);
}

/// The text in front of the kernel. Members of Params: operands of the scan, then its results.
std::string hooks_of(const Request& r, const Reading& reading) {
  const auto& a = r.node.as<ops::Scan>();
  const ir::Graph& body = *a.body;
  const ir::Node& n = *reading.elements;
  const region::Region& region = *reading.region;
  std::map<ir::NodeId, size_t> operand_of;
  const auto leaves = body.leaves();
  for (size_t i = 0; i < leaves.size(); ++i) operand_of[leaves[i]] = i;
  std::string fields, slice_fields, slice_loads, call;
  for (size_t i = 0; i < r.in.size(); ++i)
    fields += cat("  const ", memory_type(r.in[i].dtype()), "* x", i, ";\n");
  for (size_t i = 0; i < r.out.size(); ++i)
    fields += cat("  ", memory_type(r.out[i].dtype()), "* y", i, ";\n");
  const size_t first_slice = size_t(1 + a.consts);
  const int64_t elements = r.out[0].shape.elements();
  std::vector<bool> values(region.arguments.size(), false);
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const ir::Value v = n.inputs[i];
    if (v.node == reading.product->id) {
      values[i] = true;
      call += ", product";
      continue;
    }
    const size_t operand = operand_of.at(v.node);
    if (operand == 0) {
      values[i] = true;
      call += ", before";
    } else if (operand >= first_slice && is_dense(region, region.arguments[i])) {
      values[i] = true;  // read a step ahead
      slice_fields += cat("  ", memory_type(r.in[operand].dtype()), " s", operand, ";\n");
      slice_loads += cat("  out.s", operand, " = p.x", operand, "[i64(t) * ", elements, " + e];\n");
      call += cat(", slices.s", operand);
    } else if (operand >= first_slice) {
      call += cat(", p.x", operand, " + i64(t) * ", body.shape(v).elements());
    } else {
      call += cat(", p.x", operand);
    }
  }
  std::string results, writes;
  for (size_t i = 0; i < n.shapes.size(); ++i) {
    values[n.inputs.size() + i] = true;
    results += cat("  f32 r", i, ";\n");
    call += cat(", r", i);
  }
  for (size_t i = 1; i < body.outputs().size(); ++i)
    writes += cat("  if (write) p.y", i, "[i64(t) * ", elements, " + e] = r", body.outputs()[i].index, ";\n");
  const int64_t width = r.out[0].shape.dim(1).value();
  return cat(
      "constexpr int kWidth = ", width, ", kLength = ", a.length.value(),
      ";\nconstexpr bool kReverse = ", a.reverse ? "true" : "false", ";\nstruct Params {\n", fields,
      "};\nstruct Slices {\n", slice_fields, "};\ninline const f32* weights_of(const Params& p) { return p.x",
      operand_of.at(reading.product->inputs[1].node), "; }\n",
      "inline f32 start_of(const Params& p, i64 e) { return p.x0[e]; }\n",
      "inline void finish(const Params& p, i64 e, f32 h) { p.y0[e] = h; }\n",
      "inline Slices slices_at(const Params& p, int t, i64 e) {\n  Slices out;\n", slice_loads,
      "  return out;\n}\n", print_element_function(region, "elements_region", values),
      "inline f32 next_state(const Params& p, int t, i64 e, f32 product, f32 before, const Slices& slices, bool write) {\n",
      results, "  elements_region(int(e)", call, ");\n", writes, "  return r0;\n}\n");
}

std::unique_ptr<Step> prepare(const Request& r) {
  const Reading reading = read(r.node.as<ops::Scan>());
  const FunctionRef f =
      device_of(r).functions().get({"scan_product", cat(hooks_of(r, reading), kScanProduct)});
  const size_t in = r.in.size(), out = r.out.size();
  const int64_t rows = r.out[0].shape.dim(0).value(), length = r.node.as<ops::Scan>().length.value();
  return make_gpu_step(cat(length, " steps in one kernel, two blocks for each row"),
                       [=](Stream& s, const Launch& l) {
                         std::vector<std::byte*> params(l.in, l.in + in);
                         params.insert(params.end(), l.out, l.out + out);
                         void* parameters[] = {params.data(), nullptr};
                         f->launch(s.handle, {2 * rows}, {512}, 0, parameters);
                       });
}

}  // namespace

void add_scan_products(KernelTable& table, const std::string& architecture) {
  if (architecture >= "sm_90") table.add<ops::Scan>({"scan_product", accepts, prepare});
}

}  // namespace rlx::cuda
