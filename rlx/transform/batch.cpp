#include "rlx/transform/batch.h"

#include "rlx/ops/control/scan.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/shape/expand.h"

namespace rlx::transform {
namespace {

class Batcher {
 public:
  Batcher(Graph& to, Dim size) : to_(to), size_(size) {}

  std::vector<BatchedValue> run(const Graph& from, const std::vector<BatchedValue>& leaves) {
    from.check_order();
    to_.assume_sizes_of(from);
    ValueMap<BatchedValue> map;
    size_t leaf = 0;
    for (const Node* n : from.nodes()) {
      if (n->op->traits.leaf) {
        map[n->result()] = leaves.at(leaf++);
        continue;
      }
      const RuleScope scope(to_, *n, "vmap");
      std::vector<BatchedValue> in;
      for (const Value v : n->inputs) in.push_back(map.at(v));
      auto out = scope.run([&] { return node(*n, in); });
      RLX_CHECK(out.size() == n->shapes.size(), "vmap of ", n->op->name, " returned ", out.size(),
                " results");
      for (uint32_t i = 0; i < out.size(); ++i) {
        out[i].tensor = as_promised(*n, i, out[i]);
        map[n->result(i)] = out[i];
      }
    }
    std::vector<BatchedValue> out;
    for (const Value v : from.outputs()) out.push_back(map.at(v));
    return out;
  }

 private:
  Expr as_promised(const Node& n, uint32_t i, const BatchedValue& got) const {
    Dims dims = n.shapes[i].dims();
    if (got.batched) dims.insert(dims.begin(), size_);
    return as_type(got.tensor, n.shapes[i].with_dims(std::move(dims)), cat("vmap of ", n.op->name));
  }

  std::vector<BatchedValue> node(const Node& n, const std::vector<BatchedValue>& in) {
    Values operands;
    std::vector<bool> batched;
    bool any = false;
    for (const BatchedValue& v : in) {
      operands.push_back(v.tensor);
      batched.push_back(v.batched);
      any = any || v.batched;
    }
    if (!any) return append(n, operands, false);
    const Vmap context{to_, operands, batched, size_, body_transforms()};
    if (n.op->vmap != nullptr) {
      std::vector<BatchedValue> out;
      for (const Expr& t : n.op->vmap(context, n.attrs.get())) {
        const bool shared = out.size() < n.shapes.size() && t.rank() == n.shapes[out.size()].rank();
        out.push_back({t, !shared});
      }
      return out;
    }
    if (n.op->traits.elementwise) {
      const Exprs aligned = ops::align_batched(context);
      return append(n, Values(aligned.begin(), aligned.end()), true);
    }
    if (n.op->is_composite()) return through_decomposition(n, in);
    return loop(n, in);
  }

  std::vector<BatchedValue> append(const Node& n, const Values& operands, bool batched) {
    const NodeId id = to_.append(*n.op, n.attrs, operands, batched ? std::string() : n.name);
    std::vector<BatchedValue> out;
    for (uint32_t i = 0; i < n.shapes.size(); ++i) out.push_back({{&to_, to_.value(id, i)}, batched});
    return out;
  }

  std::vector<BatchedValue> through_decomposition(const Node& n, const std::vector<BatchedValue>& in) {
    Graph inner(std::string(n.op->name));
    Values operands;
    for (size_t i = 0; i < n.inputs.size(); ++i)
      operands.push_back(inner.input(cat("x", i), example_shape(in[i])));
    Values outputs;
    for (const Expr& t : n.op->decompose(Lower{inner, operands, n.shapes}, n.attrs.get()))
      outputs.push_back(t);
    inner.set_outputs(outputs);
    return run(inner, in);
  }

  static Shape example_shape(const BatchedValue& v) {
    const Shape& s = v.tensor.shape();
    return v.batched ? s.with_dims(Dims(s.dims().begin() + 1, s.dims().end())) : s;
  }

  // One example after another: slow, right for everything.
  std::vector<BatchedValue> loop(const Node& n, const std::vector<BatchedValue>& in) {
    Graph body("example");
    Values operands(in.size());
    Exprs shared, sliced;
    for (const bool batched : {false, true}) {  // scan passes constants before slices
      for (size_t i = 0; i < in.size(); ++i) {
        if (in[i].batched != batched) continue;
        operands[i] = body.input(cat("x", i), example_shape(in[i]));
        (batched ? sliced : shared).push_back(in[i].tensor);
      }
    }
    const NodeId id = body.append(*n.op, n.attrs, operands);
    Values outputs;
    for (uint32_t i = 0; i < n.shapes.size(); ++i) outputs.push_back(body.value(id, i));
    body.set_outputs(outputs);
    std::vector<BatchedValue> out;
    for (const Expr& t : ops::scan_all(to_, {}, shared, sliced, std::move(body), size_))
      out.push_back({t, true});
    return out;
  }

  Graph& to_;
  Dim size_;
};

}  // namespace

Expr with_batch(const BatchedValue& v, Dim size) {
  if (v.batched) return v.tensor;
  Dims dims = v.tensor.shape().dims();
  dims.insert(dims.begin(), size);
  return ops::expand(v.tensor, dims);
}

std::vector<BatchedValue> batch_graph(Graph& to, const Graph& from, const std::vector<BatchedValue>& leaves,
                                      Dim size) {
  return Batcher(to, size).run(from, leaves);
}

}  // namespace rlx::transform
