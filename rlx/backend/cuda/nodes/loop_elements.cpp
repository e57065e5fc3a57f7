#include "rlx/backend/cuda/nodes/loop_elements.h"

#include <algorithm>

#include "rlx/backend/cuda/region/printer.h"
#include "rlx/region/of_node.h"

namespace rlx::cuda {

LoopRegion loop_region(const ir::Graph& body, const ir::Node& n, const Shape& state,
                       const std::vector<ir::Value>& made) {
  std::vector<Shape> types;
  for (const ir::Value v : n.inputs) types.push_back(body.shape(v));
  region::Built built = region::of_node(n, types, {}, {});
  if (!built) return {std::nullopt, built.refusal};
  const region::Region& r = *built.region;
  if (r.has_reduction() || r.rows() * r.columns() != state.elements() || r.width() != 4)
    return {std::nullopt, "elements of another shape"};
  for (size_t i = 0; i < r.arguments.size(); ++i) {
    const bool own = i >= types.size() || std::count(made.begin(), made.end(), n.inputs[i]) > 0;
    if (own && !is_dense(r, r.arguments[i])) return {std::nullopt, "elements in another order"};
  }
  return {std::move(*built.region), {}};
}

LoopCall loop_call(const Request& r, const ir::Node& n, const region::Region& region, const std::string& name,
                   const std::vector<std::pair<ir::Value, std::string>>& made,
                   const std::vector<std::string>& results, LoopSlices& slices) {
  const auto& a = r.node.as<ops::Scan>();
  const auto leaves = a.body->leaves();
  const size_t first_slice = size_t(a.carries + a.consts);
  const int64_t elements = r.out[0].shape.elements();
  std::vector<bool> values(region.arguments.size(), false);
  LoopCall out;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const ir::Value v = n.inputs[i];
    const auto own = std::find_if(made.begin(), made.end(), [&](const auto& m) { return m.first == v; });
    if (own != made.end()) {
      values[i] = true;
      out.arguments += cat(", ", own->second);
      continue;
    }
    const auto operand = size_t(std::find(leaves.begin(), leaves.end(), v.node) - leaves.begin());
    if (operand >= first_slice && is_dense(region, region.arguments[i])) {
      values[i] = true;  // read a step ahead
      if (slices.operands.insert(operand).second) {
        slices.fields += cat("  ", memory_type(r.in[operand].dtype()), " s", operand, ";\n");
        slices.loads += cat("  out.s", operand, " = p.x", operand, "[i64(t) * ", elements, " + e];\n");
      }
      out.arguments += cat(", slices.s", operand);
    } else if (operand >= first_slice) {
      out.arguments += cat(", p.x", operand, " + i64(t) * ", a.body->shape(v).elements());
    } else {
      out.arguments += cat(", p.x", operand);
    }
  }
  for (size_t i = 0; i < n.shapes.size(); ++i) {
    values[n.inputs.size() + i] = true;
    out.arguments += cat(", ", results[i]);
  }
  out.function = print_element_function(region, name, values);
  return out;
}

std::string loop_params(const Request& r) {
  std::string out;
  for (size_t i = 0; i < r.in.size(); ++i)
    out += cat("  const ", memory_type(r.in[i].dtype()), "* x", i, ";\n");
  for (size_t i = 0; i < r.out.size(); ++i) out += cat("  ", memory_type(r.out[i].dtype()), "* y", i, ";\n");
  return out;
}

std::unique_ptr<Step> loop_step(const Request& r, std::string note, FunctionRef f) {
  const size_t in = r.in.size(), out = r.out.size();
  const int64_t rows = r.out[0].shape.dim(0).value();
  return make_gpu_step(std::move(note), [=](Stream& s, const Launch& l) {
    std::vector<std::byte*> params(l.in, l.in + in);
    params.insert(params.end(), l.out, l.out + out);
    void* parameters[] = {params.data(), nullptr};
    f->launch(s.handle, {2 * rows}, {512}, 0, parameters);
  });
}

}  // namespace rlx::cuda
