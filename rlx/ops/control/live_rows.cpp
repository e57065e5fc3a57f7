#include "rlx/ops/control/live_rows.h"

#include "rlx/ops/control/body.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/elementwise/select.h"
#include "rlx/ops/elementwise/stop_gradient.h"
#include "rlx/ops/index/gather.h"
#include "rlx/ops/reduce/any_all.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/iota.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {
namespace {

// live[B] so that it chooses rows of a tensor of this rank.
Expr as_rows(Expr live, int rank) {
  Dims dims(size_t(rank), Dim(1));
  dims[0] = live.dim(0);
  return reshape(live, dims);
}

}  // namespace

BatchedBody batch_body(const Vmap& c, const Graph& body, const std::vector<bool>& batched_leaves) {
  BatchedBody out{c.bodies.vmap(body, batched_leaves, c.size), {}};
  const Shapes before = output_shapes(body), after = output_shapes(*out.body);
  for (size_t i = 0; i < after.size(); ++i) out.batched.push_back(after[i].rank() > before[i].rank());
  return out;
}

GraphRef with_batched_outputs(const BatchedBody& body, const std::vector<bool>& wanted, Dim size) {
  if (body.batched == wanted) return body.body;
  auto g = std::make_shared<Graph>(*body.body);
  Values outputs = g->outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!wanted[i] || body.batched[i]) continue;
    const Expr shared{g.get(), outputs[i]};
    Dims dims = shared.shape().dims();
    dims.insert(dims.begin(), size);
    outputs[i] = expand(shared, dims);
  }
  g->set_outputs(outputs);
  return g;
}

Expr live_rows(Expr flags) {
  std::vector<int> axes;
  for (int i = 1; i < flags.rank(); ++i) axes.push_back(i);
  const Expr yes = cast(flags, DType::bool_);
  return axes.empty() ? yes : all(yes, axes);
}

Exprs choose_rows(Expr live, const Exprs& yes, const Exprs& no) {
  Exprs out;
  for (size_t i = 0; i < yes.size(); ++i) out.push_back(where(as_rows(live, yes[i].rank()), yes[i], no[i]));
  return out;
}

Exprs feed_dead_rows(Expr live, const Exprs& values, const std::vector<bool>& batched) {
  // The least index of a live row; a batch without rows, which never runs, may be built all the same.
  const Expr index = iota(*live.graph, Shape(DType::i64, {live.dim(0)}), 0);
  const Expr first = reduce(where(live, index, scalar_like(index, 0x7fffffff)), ReduceOp::min, {0}, false);
  Exprs out = values;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!batched[i]) continue;
    const Expr row = stop_gradient(gather(values[i], first, 0));
    out[i] = where(as_rows(live, values[i].rank()), values[i], row);
  }
  return out;
}

Exprs zeros_of(Graph& g, const Shapes& shapes) {
  Exprs out;
  for (const Shape& s : shapes) out.push_back(full(g, s, 0));
  return out;
}

}  // namespace rlx::ops
