#include "rlx/ops/elementwise/broadcast.h"

#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/expand.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::ops {

std::vector<int64_t> broadcast_positions(const Dims& operand, const Dims& result) {
  const size_t rank = result.size(), skip = rank - operand.size();
  std::vector<int64_t> stride(rank, 0);
  int64_t step = 1;
  for (size_t i = operand.size(); i-- > 0;) {
    if (operand[i] != Dim(1)) stride[skip + i] = step;
    step *= operand[i].value();
  }
  int64_t total = 1;
  for (const Dim d : result) total *= d.value();
  std::vector<int64_t> positions(static_cast<size_t>(total));
  std::vector<int64_t> index(rank, 0);
  int64_t at = 0;
  for (int64_t& p : positions) {
    p = at;
    for (size_t axis = rank; axis-- > 0;) {  // the next index, like an odometer
      at += stride[axis];
      if (++index[axis] < result[axis].value()) break;
      at -= stride[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return positions;
}

Expr unbroadcast(Expr t, const Dims& to) {
  const Dims& from = t.shape().dims();
  if (from == to) return t;
  const int extra = t.rank() - int(to.size());
  std::vector<int> axes;
  for (int i = 0; i < t.rank(); ++i) {
    const bool added = i < extra;
    if (added || (to[size_t(i - extra)] == Dim(1) && from[size_t(i)] != Dim(1))) axes.push_back(i);
  }
  if (!axes.empty()) t = reduce_sum(t, axes, true);
  return reshape(t, to);
}

Exprs align_batched(const Vmap& c) {
  int rank = 0;  // of the result, without the batch
  for (int i = 0; i < c.count(); ++i) rank = std::max(rank, c.in(i).rank() - int(c.batched(i)));
  Exprs out;
  for (int i = 0; i < c.count(); ++i) {
    Expr x = c.in(i);
    if (c.batched(i) && x.rank() - 1 < rank) {
      Dims dims = x.shape().dims();
      dims.insert(dims.begin() + 1, size_t(rank - (x.rank() - 1)), Dim(1));
      x = reshape(x, dims);
    }
    out.push_back(x);
  }
  return out;
}

Expr lifted(const Vmap& c, int i) {
  if (c.batched(i)) return c.in(i);
  Dims dims = c.in(i).shape().dims();
  dims.insert(dims.begin(), c.size);
  return expand(c.in(i), dims);
}

Expr joined(const Vmap& c, int i) {
  const Expr t = lifted(c, i);
  Dims dims(t.shape().dims().begin() + 1, t.shape().dims().end());
  dims[0] = c.size * dims[0];
  return reshape(t, dims);
}

}  // namespace rlx::ops
