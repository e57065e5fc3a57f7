#include "rlx/ops/shape/transpose.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace rlx::ops {

Shapes Transpose::infer(Infer& c, Attrs& a) {
  const Shape& x = c.in(0);
  if (a.perm.empty()) {
    a.perm.resize(size_t(x.rank()));
    for (int i = 0; i < x.rank(); ++i) a.perm[size_t(i)] = x.rank() - 1 - i;
  }
  if (int(a.perm.size()) != x.rank()) c.fail("perm ", a.perm, " has ", a.perm.size(), " entries for x: ", x);
  for (int& p : a.perm) p = c.axis(p, 0);
  c.axes(a.perm, 0);  // refuses repetition
  Dims dims;
  for (const int p : a.perm) dims.push_back(x.dim(p));
  return {x.with_dims(std::move(dims))};
}

Literals Transpose::reference(const Eval& c, const Attrs& a) {
  const Literal& x = c.in(0);
  Literal y = Literal::zeros(c.out());
  const size_t rank = a.perm.size(), size = dtype_size(x.dtype());
  const auto strides = row_major_strides(x.shape().dims());
  std::vector<int64_t> index(rank, 0);
  std::byte* to = y.mutable_bytes().data();
  for (int64_t i = 0; i < y.elements(); ++i) {
    int64_t at = 0;
    for (size_t k = 0; k < rank; ++k) at += index[k] * strides[size_t(a.perm[k])];
    std::memcpy(to + size_t(i) * size, x.bytes().data() + size_t(at) * size, size);
    for (size_t k = rank; k-- > 0;) {
      if (++index[k] < c.out().dims()[k].value()) break;
      index[k] = 0;
    }
  }
  return {y};
}

Exprs Transpose::vjp(const Vjp& c, const Attrs& a) {
  std::vector<int> inverse(a.perm.size());
  for (size_t i = 0; i < a.perm.size(); ++i) inverse[size_t(a.perm[i])] = int(i);
  return {transpose(c.dy(), inverse)};
}

Exprs Transpose::vmap(const Vmap& c, const Attrs& a) {
  std::vector<int> perm{0};
  for (const int p : a.perm) perm.push_back(p + 1);
  return {transpose(c.in(0), perm)};
}

std::optional<Layout> Transpose::view(const View& c, const Attrs& a) {
  Layout y{{}, c.layout.offset};
  for (const int axis : a.perm) y.strides.push_back(c.layout.strides[size_t(axis)]);
  return y;
}

std::vector<OpSample<Transpose::Attrs>> Transpose::samples() {
  return {{{{1, 0}}, {"f32[2,3]"}}, {{{2, 0, 1}}, {"f64[2,3,4]"}}, {{{}}, {"i32[3,1,2]"}},
          {{{0}}, {"f32[5]"}},      {{{-1, 0}}, {"f16[0,4]"}},     {{{}}, {"f32[]"}},
          {{{1, 0}}, {"c64[2,2]"}}};
}

Expr transpose(Expr x, std::vector<int> perm) { return make<Transpose>(*x.graph, {std::move(perm)}, {x}); }

Expr swap_last(Expr x) {
  std::vector<int> perm(size_t(x.rank()));
  std::iota(perm.begin(), perm.end(), 0);
  if (x.rank() < 2) throw invalid("transpose: ", x.shape(), " has fewer than two axes");
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(x, perm);
}

Expr move_axis(Expr x, int from, int to) {
  int source = from, target = to;
  if (!normalize_axis(source, x.rank()) || !normalize_axis(target, x.rank())) {
    throw invalid("move_axis: ", from, " to ", to, " is out of range for ", x.shape());
  }
  if (source == target) return x;
  std::vector<int> perm(size_t(x.rank()));
  std::iota(perm.begin(), perm.end(), 0);
  perm.erase(perm.begin() + source);
  perm.insert(perm.begin() + target, source);
  return transpose(x, perm);
}

}  // namespace rlx::ops
