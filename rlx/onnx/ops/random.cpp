// Random numbers. A node draws from a stream of its own; without a seed the stream is number 0 of the node's place, so
// that a graph gives the same numbers each time it runs.
#include "rlx/lang/operators.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

// A key from the seed, or from the name of what is made.
Tensor key_of(const Call& c) {
  uint32_t key = 0x811c9dc5u;
  if (c.has_attr("seed")) {
    const double seed = c.real("seed", 0);
    key = uint32_t(int64_t(seed));
  } else {
    for (const char ch : c.node().outputs.at(0)) key = (key ^ uint8_t(ch)) * 0x01000193u;
  }
  c.note("its random numbers are those of a fixed stream, other ones than elsewhere");
  return c.scalar(DType::u32, double(key));
}

Tensor counter(const Call& c) { return c.scalar(DType::u32, 0); }

DType float_type(const Call& c, DType otherwise) {
  const auto type = c.element("dtype", file::element_of(otherwise));
  const DType out = *file::info_of(type).dtype;
  if (!is_float(out)) c.unsupported("random numbers that are no floats");
  return out;
}

Dims shape_attr(const Call& c) {
  Dims out;
  for (const int64_t v : c.integers("shape")) out.push_back(v);
  return out;
}

Tensor normal(const Call& c, const Shape& s) {
  return rlx::random_normal(key_of(c), counter(c),
                            {.shape = s, .mean = c.real("mean", 0), .stddev = c.real("scale", 1)});
}

Tensor uniform(const Call& c, const Shape& s) {
  return rlx::random_uniform(key_of(c), counter(c),
                             {.shape = s, .low = c.real("low", 0), .high = c.real("high", 1)});
}

template <auto kDraw>
Items by_shape(Call& c) {
  const DType type = float_type(c, DType::f32);
  return {kDraw(c, Shape(type, shape_attr(c)))};
}

template <auto kDraw>
Items like(Call& c) {
  const DType own = is_float(c.dtype(0)) ? c.dtype(0) : DType::f32;
  const DType type = float_type(c, own);
  return {kDraw(c, Shape(type, c.shape(0).dims()))};
}

Items bernoulli(Call& c) {
  const Tensor p = c.in(0);
  const auto type = c.element("dtype", file::element_of(p.dtype()));
  const Tensor u = rlx::random_uniform(key_of(c), counter(c), {.shape = Shape(DType::f32, p.shape().dims())});
  return {(u < p.cast(DType::f32)).cast(*file::info_of(type).dtype)};
}

// Out of training, or with nothing dropped, it is the identity.
Items dropout(Call& c) {
  const Tensor x = c.in(0);
  double ratio = 0.5;
  bool training = false;
  if (c.opset() < 12) {
    ratio = c.real("ratio", 0.5);
    c.ignore("is_test"), c.ignore("consumed_inputs");
  } else {
    if (c.has(2)) training = c.known(2, "whether it is training").integer_at(0) != 0;
    if (c.has(1) && training) ratio = c.known_real(1, "the ratio");
  }
  c.ignore("seed");
  if (!training || ratio == 0) return {x, c.full(x.shape().dims(), DType::bool_, 1)};
  if (ratio < 0 || ratio >= 1) throw c.wrong("the ratio is ", ratio, "; it must be in 0 .. 1");
  const Tensor u = rlx::random_uniform(key_of(c), counter(c), {.shape = Shape(DType::f32, x.shape().dims())});
  const Tensor keep = u >= ratio;
  return {keep.where(x * (1 / (1 - ratio)), 0.0), keep};
}

// The first class whose running probability passes a uniform number.
Items multinomial(Call& c) {
  const Tensor x = c.in(0);
  const int64_t samples = c.integer("sample_size", 1);
  const auto type = c.element("dtype", file::ElementType::i32);
  const Tensor sums =
      rlx::softmax(x.cast(DType::f32), {.axis = -1}).cumsum(1).unsqueeze(1);  // [batch, 1, classes]
  const Tensor u =
      rlx::random_uniform(key_of(c), counter(c), {.shape = Shape(DType::f32, {x.dim(0), samples, 1})});
  const Tensor at = (sums <= u).cast(DType::i64).sum({2}).min(c.dim_value(x.dim(1) - Dim(1)));
  return {at.cast(*file::info_of(type).dtype)};
}

constexpr Entry drawn(std::string_view name, int since, ImportNode import) {
  return {name, since, import, BoundsRule::refuse, nullptr, false};
}

}  // namespace

std::span<const Entry> random_entries() {
  static const std::vector<Entry> kEntries{
      drawn("Bernoulli", 15, bernoulli),
      drawn("Dropout", 1, dropout),
      drawn("Multinomial", 7, multinomial),
      drawn("RandomNormal", 1, by_shape<normal>),
      drawn("RandomNormalLike", 1, like<normal>),
      drawn("RandomUniform", 1, by_shape<uniform>),
      drawn("RandomUniformLike", 1, like<uniform>),
  };
  return kEntries;
}

}  // namespace rlx::onnx
