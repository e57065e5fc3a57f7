// Operators on codes that quantisers of ONNX Runtime emit.
#include <algorithm>
#include <numeric>

#include "rlx/lang/operators.h"
#include "rlx/onnx/codes.h"
#include "rlx/onnx/product.h"
#include "rlx/onnx/table.h"
#include "rlx/onnx/window.h"

namespace rlx::onnx {
namespace {

using E = file::ElementType;

// ---- MatMulNBits: weights stay packed.

// Codes of 2, 4 or 8 bits in rows of bytes, the low bits first.
struct PackedRows {
  std::span<const std::byte> bytes;
  int64_t row_bytes = 0;
  int bits = 4;
  int64_t at(int64_t row, int64_t i) const {
    const auto byte = uint8_t(bytes[size_t(row * row_bytes + i * bits / 8)]);
    return byte >> (i * bits % 8) & ((1 << bits) - 1);
  }
};

// Weights [n, k] as the scheme int4/B stores them: two codes of flat place k N + n to a byte. Tiles stay in the cache.
Literal packed_nibbles(const PackedRows& from, int64_t k, int64_t n) {
  Literal out = Literal::zeros(Shape(DType::u8, {(k * n + 1) / 2}));
  const auto to = out.mutable_bytes();
  constexpr int64_t kTile = 64;
  for (int64_t n0 = 0; n0 < n; n0 += kTile) {
    for (int64_t k0 = 0; k0 < k; k0 += kTile) {
      for (int64_t p = k0; p < std::min(k, k0 + kTile); ++p) {
        for (int64_t j = n0; j < std::min(n, n0 + kTile); ++j) {
          const int64_t flat = p * n + j;
          to[size_t(flat / 2)] |= std::byte(from.at(j, p) << (flat % 2 * 4));
        }
      }
    }
  }
  return out;
}

// As int8a/B stores them: i8 [k, n], moved by 128.
Literal moved_bytes(const PackedRows& from, int64_t k, int64_t n) {
  Literal out = Literal::zeros(Shape(DType::i8, {k, n}));
  const auto to = out.mutable_data<int8_t>();
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t p = 0; p < k; ++p) to[size_t(p * n + j)] = int8_t(from.at(j, p) - 128);
  }
  return out;
}

// The operand in another form, as a weight when it is one.
Tensor repacked(const Call& c, int operand, std::string_view form, Literal value) {
  Item it(std::move(value));
  it.is_weight = c.item(operand).is_weight;
  it.name = cat(c.item(operand).name, ".", form);
  return c.tensor_of(it);
}

// Zero points of the blocks, f32 [blocks, n]; packed like the weights, or numbers.
Tensor zero_points(const Call& c, int64_t blocks, int64_t n, int bits) {
  if (!c.has(3)) return c.full({blocks, n}, DType::f32, double(1 << (bits - 1)));
  if (c.dtype(3) != DType::u8) return c.in(3).cast(DType::f32).reshape({n, blocks}).t();
  const Literal z = c.known(3, "the zero points");
  const PackedRows rows{z.bytes(), (blocks * bits + 7) / 8, bits};
  if (int64_t(z.bytes().size()) != n * rows.row_bytes)
    throw c.wrong("zero points of ", z.bytes().size(), " bytes; ", n * rows.row_bytes, " are needed");
  Literal out = Literal::zeros(Shape(DType::f32, {blocks, n}));
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t g = 0; g < blocks; ++g) out.mutable_data<float>()[size_t(g * n + j)] = float(rows.at(j, g));
  }
  return repacked(c, 3, cat("zero", bits), std::move(out));
}

Items matmul_n_bits(Call& c) {
  const int64_t k = c.integer("K", 0), n = c.integer("N", 0), block = c.integer("block_size", 0);
  const int64_t bits = c.integer("bits", 4);
  c.ignore("accuracy_level");  // a lower bound; here products are exact
  if (k < 1 || n < 1 || block < 1) throw c.wrong("K = ", k, ", N = ", n, ", block_size = ", block);
  if (bits != 2 && bits != 4 && bits != 8) c.unsupported(cat("weights of ", bits, " bits"));
  if (c.integer("weight_prepacked", 0) != 0) c.unsupported("weights in the layout of one device");
  if (c.has(4)) c.unsupported("an order of groups (g_idx)");
  const Literal packed = c.known(1, "the packed weights");
  const int64_t blocks = (k + block - 1) / block;
  const PackedRows rows{packed.bytes(), blocks * block * bits / 8, int(bits)};
  if (packed.dtype() != DType::u8 || block * bits % 8 != 0 ||
      int64_t(packed.bytes().size()) != n * rows.row_bytes)
    throw c.wrong("weights of ", packed.shape(), "; u8[", n, ",", blocks, ",", block * bits / 8,
                  "] is needed");
  Tensor x = c.in(0).cast(DType::f32);
  const bool vector = x.rank() == 1;
  if (vector) x = x.unsqueeze(0);
  const Tensor scale = c.in(2).cast(DType::f32).reshape({n, blocks}).t();
  Tensor zero = zero_points(c, blocks, n, int(bits));
  Tensor y;
  if (bits == 8) {
    const Tensor w = repacked(c, 1, "int8", moved_bytes(rows, k, n));
    y = rlx::dequant_matmul(x, w, scale, zero - 128, {.scheme = cat("int8a/", block)});
  } else {
    const Tensor w = repacked(c, 1, "int4", packed_nibbles(rows, k, n));
    y = rlx::dequant_matmul(x, w, scale, zero, {.scheme = cat("int4/", block)});
  }
  if (vector) y = y.squeeze(0);
  if (c.has(5)) y = y + c.in(5).cast(DType::f32);
  return {y.cast(c.dtype(0))};
}

// ---- Products of codes with a real result.

Tensor scaled_product(const Call& c, const Tensor& sum, const Tensor& scale, int bias) {
  Tensor y = sum.cast(DType::f32) * scale;
  if (c.has(bias)) y = y + c.in(bias).cast(DType::f32);
  return y;
}

Items dynamic_quantize_matmul(Call& c) {
  const DynamicCodes a = dynamic_codes(c.in(0));
  const Tensor left = a.codes.cast(DType::f64) - a.zero.cast(DType::f64);
  const Tensor sum = product_of(left, centred(c, 1, 3, -1));
  return {scaled_product(c, sum, a.scale * along_axis(c.in(2), sum.rank(), -1), 4)};
}

Items matmul_integer_to_float(Call& c) {
  const Tensor sum = product_of(centred(c, 0, 4, -2), centred(c, 1, 5, -1));
  const auto scale = [&](int i, int axis) { return along_axis(c.in(i).cast(DType::f32), sum.rank(), axis); };
  return {scaled_product(c, sum, scale(2, -2) * scale(3, -1), 6).cast(c.dtype(2))};
}

// Codes when the result has a scale, else reals.
Items quantized_gemm(Call& c) {
  Tensor a = centred(c, 0, 2, -2), b = centred(c, 3, 5, c.flag("transB") ? 0 : 1);
  if (c.flag("transA")) a = a.t();
  if (c.flag("transB")) b = b.t();
  Tensor sum = product_of(a, b);
  if (c.has(6)) sum = sum + c.in(6).cast(DType::f64);
  const auto scale = [&](int i) { return along_axis(c.in(i).cast(DType::f64), 2, 1); };
  const Tensor y = sum * (scale(1) * scale(4) * c.real("alpha", 1));
  if (!c.has(7)) return {y.cast(DType::f32)};
  const E to = c.has(8) ? element_of_item(c.item(8)) : element_of_item(c.item(0));
  return {quantized(c, y, scale(7), c.has(8) ? c.in(8) : Tensor(), to)};
}

// ---- Functions of codes: to reals, computed, and back.

Items codes_of(const Call& c, const Tensor& y, int scale, int zero, int like) {
  const E to = element_of_item(c.item(c.has(zero) ? zero : like));
  return {quantized(c, y, c.in(scale).reshape({}), c.has(zero) ? c.in(zero).reshape({}) : Tensor(), to)};
}

// Operand 0 with scale 1 and zero point 2; the result's are 3 and 4.
template <class Function>
Items unary(Call& c, Function function) {
  return codes_of(c, function(dequantized(c, 0, 1, 2)), 3, 4, 0);
}

template <class Function>
Items binary(Call& c, Function function) {
  return codes_of(c, function(dequantized(c, 0, 1, 2), dequantized(c, 3, 4, 5)), 6, 7, 0);
}

Items quantized_add(Call& c) {
  return binary(c, [](const Tensor& a, const Tensor& b) { return a + b; });
}
Items quantized_mul(Call& c) {
  return binary(c, [](const Tensor& a, const Tensor& b) { return a * b; });
}
Items quantized_sigmoid(Call& c) {
  return unary(c, [](const Tensor& x) { return rlx::sigmoid(x); });
}
Items quantized_leaky_relu(Call& c) {
  const double alpha = c.real("alpha", 0.01);
  return unary(c, [&](const Tensor& x) { return (x < 0).where(x * alpha, x); });
}

// Before version 13 all axes from `axis` on are one.
Items quantized_softmax(Call& c) {
  const int rank = c.rank(0), axis = c.axis(c.integer("axis", -1), rank);
  const bool joined = c.integer("opset", 13) < 13;
  return unary(c, [&](const Tensor& x) {
    if (!joined) return x.softmax(axis);
    Dims dims(x.shape().dims().begin(), x.shape().dims().begin() + axis);
    Dim rest = 1;
    for (int i = axis; i < rank; ++i) rest = rest * x.dim(i);
    dims.push_back(rest);
    return x.reshape(dims).softmax(-1).reshape(x.shape().dims());
  });
}

Items quantized_global_pool(Call& c) {
  const int first = c.flag("channels_last") ? 1 : 2, rank = c.rank(0);
  std::vector<int> axes(size_t(std::max(0, rank - 2)));
  std::iota(axes.begin(), axes.end(), first);
  return unary(c, [&](const Tensor& x) { return axes.empty() ? x : x.mean(axes, true); });
}

// With channels_last, [N, .., C]: pooled with the channels in second place.
Items quantized_average_pool(Call& c) {
  const bool channels_last = c.flag("channels_last");
  std::vector<int> in(size_t(c.rank(0))), out(in.size());
  std::iota(in.begin(), in.end(), 0);
  std::rotate(in.begin() + 1, in.end() - 1, in.end());
  for (size_t i = 0; i < in.size(); ++i) out[size_t(in[i])] = int(i);
  return unary(c, [&](const Tensor& x) {
    return channels_last ? average_pooled(c, x.transpose(in)).transpose(out) : average_pooled(c, x);
  });
}

Items quantized_mean(Call& c) {
  std::vector<int> axes = c.axes(c.integers("axes"), c.rank(0));
  const bool keep = c.flag("keepdims", true);
  return unary(c, [&](const Tensor& x) { return x.mean(axes, keep); });
}

Items quantized_where(Call& c) {
  const Tensor y = rlx::where(c.in(0), dequantized(c, 1, 2, 3), dequantized(c, 4, 5, 6));
  return codes_of(c, y, 7, 8, 1);
}

// The scale and zero point of the result come first, then three operands for each part.
Items quantized_concat(Call& c) {
  Tensors parts;
  for (int i = 2; i + 2 < c.count(); i += 3) parts.push_back(dequantized(c, i, i + 1, i + 2));
  if (parts.empty() || (c.count() - 2) % 3 != 0)
    throw c.wrong(c.count(), " operands; a scale and a zero point, then three for each part");
  const int axis = c.axis(c.integer("axis", 0), parts[0].rank());
  return codes_of(c, parts.size() == 1 ? parts[0] : rlx::concat(parts, {.axis = axis}), 0, 1, 1);
}

// ---- GatherBlockQuantized: rows of a table of codes.

// Bytes that hold several codes, the low bits first, with an element for each along the last axis.
Tensor spread_codes(const Call& c, const Tensor& bytes, int64_t bits) {
  const int64_t each = 8 / bits;
  Dims one = bytes.shape().dims(), all = one;
  one.push_back(1);
  all.back() = all.back() * Dim(each);
  const Tensor shifts = c.iota(Shape(DType::i32, {each}), 0) * double(bits);
  const Tensor wide = bytes.cast(DType::i32).reshape(one);
  return rlx::bitwise_and(rlx::shift_right(wide, shifts), double((1 << bits) - 1)).reshape(all);
}

Items gather_block_quantized(Call& c) {
  const int rank = c.rank(0);
  const int from = c.axis(c.integer("gather_axis", 0), rank),
            along = c.axis(c.integer("quantize_axis", 1), rank);
  const int64_t block = c.integer("block_size", 128), bits = c.integer("bits", 4);
  const E element = element_of_item(c.item(0));
  const bool packed = element == E::u8 && bits < 8;
  if (from == along) c.unsupported("codes gathered along the axis of their blocks");
  if (block < 1) c.unsupported(cat("blocks of ", block));
  if (bits != 2 && bits != 4 && bits != 8) c.unsupported(cat("codes of ", bits, " bits"));
  const Tensor at = c.in(1);
  const auto rows = [&](const Tensor& table) { return rlx::gather(table, at, {.axis = from}); };
  const auto numbers = [&](const Tensor& t) {
    return packed ? spread_codes(c, t, bits).cast(DType::f32) : t.cast(DType::f32);
  };
  const Tensor codes = numbers(rows(c.in(0)));
  const int axis = along > from ? along + at.rank() - 1 : along;
  const Dim size = codes.dim(axis);
  // One number of a block for each of its elements.
  const auto each = [&](const Tensor& t) {
    Dims one = t.shape().dims(), wide, joined = one;
    one.insert(one.begin() + axis + 1, 1);
    wide = one;
    wide[size_t(axis) + 1] = block;
    joined[size_t(axis)] = joined[size_t(axis)] * Dim(block);
    return t.reshape(one).expand(wide).reshape(joined).narrow(axis, 0, size);
  };
  const Tensor scale = each(rows(c.in(2)).cast(DType::f32));
  Tensor zero;
  if (c.has(3)) {
    Tensor z = numbers(rows(c.in(3)));
    zero = each(z.narrow(axis, 0, rows(c.in(2)).dim(axis)));
  } else if (element == E::u8) {
    zero = c.scalar(DType::f32, double(1 << (bits - 1)));
  }
  const Tensor y = (zero.is_empty() ? codes : codes - zero) * scale;
  return {y.cast(c.dtype(2))};
}

}  // namespace

std::span<const Entry> contrib_quantize_entries() {
  static const std::vector<Entry> kEntries{
      {"DequantizeLinear", 1, dequantize_linear},
      {"DynamicQuantizeMatMul", 1, dynamic_quantize_matmul},
      {"GatherBlockQuantized", 1, gather_block_quantized},
      {"MatMulIntegerToFloat", 1, matmul_integer_to_float},
      {"MatMulNBits", 1, matmul_n_bits},
      {"QGemm", 1, quantized_gemm},
      {"QLinearAdd", 1, quantized_add},
      {"QLinearConcat", 1, quantized_concat},
      {"QLinearAveragePool", 1, quantized_average_pool},
      {"QLinearGlobalAveragePool", 1, quantized_global_pool},
      {"QLinearLeakyRelu", 1, quantized_leaky_relu},
      {"QLinearMul", 1, quantized_mul},
      {"QLinearReduceMean", 1, quantized_mean},
      {"QLinearSigmoid", 1, quantized_sigmoid},
      {"QLinearSoftmax", 1, quantized_softmax},
      {"QLinearWhere", 1, quantized_where},
      {"QuantizeLinear", 1, quantize_linear},
  };
  return kEntries;
}

}  // namespace rlx::onnx
