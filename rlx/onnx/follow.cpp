#include "rlx/onnx/follow.h"

#include <algorithm>
#include <limits>

#include "rlx/onnx/bounds.h"

namespace rlx::onnx {
namespace {

constexpr int64_t kMostSizes = 64;

int64_t count_of(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

// Extents of a broadcast of small tensors, and where element i of the result comes from.
std::optional<std::vector<int64_t>> broadcast(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> out(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

const Size& at_broadcast(const Sizes& s, const std::vector<int64_t>& dims, int64_t i) {
  int64_t place = 0, stride = 1;
  for (size_t k = 0; k < s.dims.size(); ++k) {
    const size_t axis = dims.size() - 1 - k;
    const int64_t index = i % dims[axis];
    i /= dims[axis];
    const int64_t extent = s.dims[s.dims.size() - 1 - k];
    place += (extent == 1 ? 0 : index) * stride;
    stride *= extent;
  }
  return s.values[size_t(place)];
}

std::optional<std::vector<int64_t>> constant_ints(const Call& c, int i) {
  const auto l = c.constant(i);
  if (!l || is_float(l->dtype()) || is_complex(l->dtype())) return std::nullopt;
  return l->to_integers();
}

std::optional<Sizes> vector_of(const Item& it) {
  auto s = sizes_of(it);
  if (!s || s->dims.size() > 1) return std::nullopt;
  return s;
}

}  // namespace

std::optional<Sizes> sizes_of(const Item& it) {
  if (!it.is_tensor()) return std::nullopt;
  if (it.sizes) return it.sizes;
  if (!it.constant || it.constant->elements() > kMostSizes) return std::nullopt;
  const DType t = it.constant->dtype();
  if (t != DType::i64 && t != DType::i32) return std::nullopt;
  Sizes out;
  out.dtype = t;
  for (const Dim d : it.constant->shape().dims()) out.dims.push_back(d.value());
  for (const int64_t v : it.constant->to_integers()) out.values.emplace_back(v);
  return out;
}

bool any_symbolic(const Call& c) {
  return std::any_of(c.items().begin(), c.items().end(), [](const Item& it) { return it.sizes.has_value(); });
}

std::optional<Item> follow_elementwise(const Call& c, SizeFunction f) {
  if (!any_symbolic(c)) return std::nullopt;
  std::optional<Sizes> out = sizes_of(c.item(0));
  for (int i = 1; i < c.count() && out; ++i) {
    const auto next = sizes_of(c.item(i));
    if (!next) return std::nullopt;
    const auto dims = broadcast(out->dims, next->dims);
    if (!dims) return std::nullopt;
    Sizes combined{*dims, {}, out->dtype};
    for (int64_t k = 0; k < count_of(*dims); ++k) {
      const auto v = f(at_broadcast(*out, *dims, k), at_broadcast(*next, *dims, k));
      if (!v) return std::nullopt;
      combined.values.push_back(*v);
    }
    out = std::move(combined);
  }
  if (!out) return std::nullopt;
  return Item(std::move(*out));
}

std::optional<Item> follow_test(const Call& c, SizeTest test) {
  if (!any_symbolic(c)) return std::nullopt;
  const auto a = sizes_of(c.item(0)), b = sizes_of(c.item(1));
  if (!a || !b) return std::nullopt;
  const auto dims = broadcast(a->dims, b->dims);
  if (!dims) return std::nullopt;
  std::vector<int64_t> out;
  for (int64_t k = 0; k < count_of(*dims); ++k) {
    const auto v = test(at_broadcast(*a, *dims, k), at_broadcast(*b, *dims, k));
    if (!v) return std::nullopt;
    out.push_back(*v);
  }
  return Item(Literal::integers(Shape(DType::bool_, Dims(dims->begin(), dims->end())), out));
}

std::optional<Item> follow_same(const Call& c) {
  if (!any_symbolic(c)) return std::nullopt;
  return c.item(0);
}

std::optional<Item> follow_where(const Call& c) {
  if (!any_symbolic(c)) return std::nullopt;
  const auto cond = constant_ints(c, 0);
  const auto a = sizes_of(c.item(1)), b = sizes_of(c.item(2));
  if (!cond || !a || !b) return std::nullopt;
  Sizes flags;
  const Shape cond_type = c.shape(0);
  for (const Dim d : cond_type.dims()) flags.dims.push_back(d.value());
  for (const int64_t v : *cond) flags.values.emplace_back(v);
  auto dims = broadcast(a->dims, b->dims);
  if (dims) dims = broadcast(*dims, flags.dims);
  if (!dims) return std::nullopt;
  Sizes out{*dims, {}, a->dtype};
  for (int64_t k = 0; k < count_of(*dims); ++k) {
    const bool yes = *at_broadcast(flags, *dims, k).number() != 0;
    out.values.push_back(at_broadcast(yes ? *a : *b, *dims, k));
  }
  return Item(std::move(out));
}

namespace {

Size size_of_axis(const Item& it, const Dims& dims, int axis) {
  const Bound* b = bound_at(it, axis);
  return b == nullptr ? Size(dims[size_t(axis)]) : Size::counted(dims[size_t(axis)], b->count);
}

}  // namespace

std::optional<Item> follow_shape(const Call& c) {
  const Dims dims = c.shape(0).dims();
  const int64_t rank = int64_t(dims.size());
  const auto place = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  const int64_t start = place(c.integer("start", 0)), end = place(c.integer("end", rank));
  Sizes out;
  for (int64_t i = start; i < end; ++i) out.values.push_back(size_of_axis(c.item(0), dims, int(i)));
  out.dims = {int64_t(out.values.size())};
  return Item(std::move(out));
}

std::optional<Item> follow_size(const Call& c) {
  const Dims dims = c.shape(0).dims();
  if (c.item(0).bounds.empty()) return Item(Sizes{{}, {Size(product(dims))}});
  std::optional<Size> out = Size(1);
  for (int i = 0; i < int(dims.size()) && out; ++i) out = times(*out, size_of_axis(c.item(0), dims, i));
  if (!out) return std::nullopt;
  return Item(Sizes{{}, {*out}});
}

std::optional<Item> follow_gather(const Call& c) {
  if (!c.item(0).sizes || c.integer("axis", 0) != 0) return std::nullopt;
  const auto from = vector_of(c.item(0));
  const auto indices = constant_ints(c, 1);
  if (!from || !indices || from->dims.size() != 1) return std::nullopt;
  Sizes out;
  out.dtype = from->dtype;
  const Shape index_type = c.shape(1);
  for (const Dim d : index_type.dims()) out.dims.push_back(d.value());
  for (int64_t i : *indices) {
    if (i < 0) i += from->dims[0];
    if (i < 0 || i >= from->dims[0]) return std::nullopt;
    out.values.push_back(from->values[size_t(i)]);
  }
  return Item(std::move(out));
}

std::optional<Item> follow_concat(const Call& c) {
  if (!any_symbolic(c)) return std::nullopt;
  Sizes out;
  for (const Item& it : c.items()) {
    const auto part = sizes_of(it);
    if (!part || part->dims.size() != 1) return std::nullopt;
    out.dtype = part->dtype;
    out.values.insert(out.values.end(), part->values.begin(), part->values.end());
  }
  out.dims = {int64_t(out.values.size())};
  return Item(std::move(out));
}

std::optional<Item> follow_slice(const Call& c) {
  if (!c.item(0).sizes) return std::nullopt;
  const auto from = vector_of(c.item(0));
  if (!from || from->dims.size() != 1) return std::nullopt;
  const bool old = c.opset() < 10;
  const auto part = [&](std::string_view name, int i) -> std::optional<std::vector<int64_t>> {
    if (old) return c.integers(name);
    if (!c.has(i)) return std::vector<int64_t>{};
    return constant_ints(c, i);
  };
  const auto starts = part("starts", 1), ends = part("ends", 2),
             steps = old ? std::vector<int64_t>{} : part("steps", 4);
  if (!starts || !ends || !steps || starts->size() != 1 || ends->size() != 1) return std::nullopt;
  const int64_t n = from->dims[0], most = std::max<int64_t>(n, 1);
  if (steps->size() > 1 || (!steps->empty() && (*steps)[0] == 0)) return std::nullopt;
  const int64_t step = steps->empty() ? 1 : std::clamp((*steps)[0], -most, most);
  // The largest numbers mean the end in the direction of the slice.
  const bool is_far = step < 0 && (*ends)[0] >= std::numeric_limits<int32_t>::max();
  const auto place = [&](int64_t v, int64_t least) {
    return std::clamp<int64_t>(v < 0 ? v + n : v, least, step > 0 ? n : n - 1);
  };
  Sizes out;
  out.dtype = from->dtype;
  if (n > 0) {
    const int64_t end = is_far ? -1 : place((*ends)[0], step > 0 ? 0 : -1);
    for (int64_t i = place((*starts)[0], 0); step > 0 ? i < end : i > end; i += step)
      out.values.push_back(from->values[size_t(i)]);
  }
  out.dims = {int64_t(out.values.size())};
  return Item(std::move(out));
}

std::optional<Item> follow_reshape(const Call& c) {
  if (!c.item(0).sizes) return std::nullopt;
  Sizes out = *c.item(0).sizes;
  const auto shape = c.opset() < 5 ? c.integers("shape") : constant_ints(c, 1);
  if (!shape) return std::nullopt;
  std::vector<int64_t> dims = *shape;
  int64_t known = 1;
  for (const int64_t d : dims) known *= d == -1 ? 1 : d;
  for (int64_t& d : dims) {
    if (d == 0 || known == 0) return std::nullopt;
    if (d == -1) d = int64_t(out.values.size()) / known;
  }
  if (count_of(dims) != int64_t(out.values.size())) return std::nullopt;
  out.dims = dims;
  return Item(std::move(out));
}

std::optional<Item> follow_squeeze(const Call& c) {
  if (!c.item(0).sizes) return std::nullopt;
  Sizes out = *c.item(0).sizes;
  if (out.values.size() != 1) return std::nullopt;
  if (c.has(1) && !c.constant(1)) return std::nullopt;
  const auto given = c.ints_of("axes", 1);
  if (!given) {
    out.dims.clear();
  } else {
    out.dims.resize(out.dims.size() - c.axes(*given, int(out.dims.size())).size());  // all of them are 1
  }
  return Item(std::move(out));
}

std::optional<Item> follow_unsqueeze(const Call& c) {
  if (!c.item(0).sizes || c.item(0).sizes->dims.size() != 0) return std::nullopt;
  const auto axes = c.opset() < 13 ? c.integers("axes") : constant_ints(c, 1);
  if (!axes) return std::nullopt;
  Sizes out = *c.item(0).sizes;
  out.dims.assign(axes->size(), 1);
  return Item(std::move(out));
}

std::optional<Item> follow_cast(const Call& c) {
  if (!c.item(0).sizes) return std::nullopt;
  const auto to = file::ElementType(c.integer("to", 0));
  if (to != file::ElementType::i64 && to != file::ElementType::i32) return std::nullopt;
  Sizes out = *c.item(0).sizes;
  out.dtype = to == file::ElementType::i64 ? DType::i64 : DType::i32;
  return Item(std::move(out));
}

std::optional<Item> follow_scatter(const Call& c) {
  if (!any_symbolic(c) || c.text("reduction", "none") != "none" || c.integer("axis", 0) != 0)
    return std::nullopt;
  const auto base = vector_of(c.item(0));
  const auto indices = constant_ints(c, 1);
  const auto updates = sizes_of(c.item(2));
  if (!base || base->dims.size() != 1 || !indices || !updates || updates->values.size() != indices->size())
    return std::nullopt;
  Sizes out = *base;
  for (size_t k = 0; k < indices->size(); ++k) {
    const int64_t i = (*indices)[k] + ((*indices)[k] < 0 ? base->dims[0] : 0);
    if (i < 0 || i >= base->dims[0]) return std::nullopt;
    out.values[size_t(i)] = updates->values[k];
  }
  return Item(std::move(out));
}

std::optional<Item> follow_reduction(const Call& c, SizeFunction f) {
  if (!c.item(0).sizes) return std::nullopt;
  const auto from = vector_of(c.item(0));
  if (!from || from->dims.size() != 1 || from->values.empty()) return std::nullopt;
  if (c.has(1) && !(c.constant(1) && c.constant(1)->elements() == 1)) return std::nullopt;
  std::optional<Size> out = from->values[0];
  for (size_t i = 1; i < from->values.size(); ++i) {
    out = f(*out, from->values[i]);
    if (!out) return std::nullopt;
  }
  Sizes result{{}, {*out}, from->dtype};
  if (c.flag("keepdims", true)) result.dims = {1};
  return Item(std::move(result));
}

}  // namespace rlx::onnx
