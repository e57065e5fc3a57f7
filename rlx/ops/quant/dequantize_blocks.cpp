#include "rlx/ops/quant/dequantize_blocks.h"

#include <algorithm>

namespace rlx::ops {
namespace {

constexpr uint8_t kOneE4m3 = 0x38;

// One matrix W[k, n] without the scales that lie beside its codes: those are set to one.
void decode_codes(quant::Scheme s, std::span<const std::byte> codes, int64_t k, int64_t n,
                  std::span<float> out) {
  if (!s.is_gguf() && s.block > 0 && s.kind != quant::SchemeKind::nvfp4_block)
    s.block = int(std::max<int64_t>(k, 1));
  const auto count = size_t(s.has_scale() ? quant::scale_count(s, k, n) : 0);
  const std::vector<float> ones(s.scale_is_fp8() ? 0 : count, 1.0f),
      zeros(s.has_zero_point() ? count : 0, 0.0f);
  const std::vector<uint8_t> fp8_ones(s.scale_is_fp8() ? count : 0, kOneE4m3);
  quant::decode_scheme(
      s, {.codes = codes, .scale = ones, .fp8_scale = fp8_ones, .zero_point = zeros, .global_scale = 1}, k, n,
      out);
}

}  // namespace

quant::Scheme require_scheme(const Infer& c, std::string& text) {
  const auto scheme = quant::scheme_from_text(text);
  if (!scheme) {
    c.fail(
        "scheme '", text,
        "' is not known; int8/B, int8a/B, int4/B, fp8e4m3, fp8e5m2, nvfp4/16, or gguf_TYPE with TYPE one of ",
        quant::decodable_names());
  }
  text = cat(*scheme);
  return *scheme;
}

Shapes DequantizeBlocks::infer(Infer& c, Attrs& a) {
  const quant::Scheme s = require_scheme(c, a.scheme);
  if (c.in(0).dtype() != DType::u8)
    c.fail("packed: ", c.in(0), " has dtype ", c.in(0).dtype(), "; packed weights are bytes, u8");
  if (a.shape.size() < 2) c.fail("shape has ", a.shape.size(), " axes; it must end in k, n");
  const Dim k = a.shape[a.shape.size() - 2], n = a.shape.back();
  if (!k.is_static() || !n.is_static())
    c.fail("weights of ", k, " x ", n, " have no known number of blocks; bind the symbols first");
  if (s.is_gguf() && k.value() % s.block != 0)
    c.fail("k = ", k, " is no multiple of ", s.block, ", the block of ", a.scheme);
  const Dim matrices = product(Dims(a.shape.begin(), a.shape.end() - 2));
  const Dim have = c.in(0).num_elements(), want = matrices * Dim(quant::code_bytes(s, k.value(), n.value()));
  if (decide_equal(have, want) == false)
    c.fail("packed: ", c.in(0), " has ", have, " bytes; ", a.scheme, " weights ", Shape(DType::f32, a.shape),
           " take ", want);
  c.same(have, want, "bytes");
  return {Shape(DType::f32, a.shape)};
}

Literals DequantizeBlocks::reference(const Eval& c, const Attrs& a) {
  const auto s = quant::scheme_from_text(a.scheme);
  const int64_t k = c.out().dim(-2).value(), n = c.out().dim(-1).value();
  const auto bytes = size_t(quant::code_bytes(*s, k, n)), floats = size_t(k * n);
  Literal y = Literal::zeros(c.out());
  const auto out = y.mutable_data<float>();
  for (size_t i = 0; floats > 0 && i < out.size() / floats; ++i)
    decode_codes(*s, c.in(0).bytes().subspan(i * bytes, bytes), k, n, out.subspan(i * floats, floats));
  return {y};
}

Exprs DequantizeBlocks::vmap(const Vmap& c, const Attrs& a) {
  Dims shape = a.shape;
  shape.insert(shape.begin(), c.size);
  return {dequantize_blocks(c.in(0), a.scheme, shape)};
}

std::vector<OpSample<DequantizeBlocks::Attrs>> DequantizeBlocks::samples() {
  return {{{"gguf_q4_0", {32, 2}}, {"u8[36] <60"}},   {{"gguf_q8_0", {2, 64, 1}}, {"u8[2,68] <60"}},
          {{"gguf_q6_k", {256, 1}}, {"u8[210] <60"}}, {{"int4/32", {3, 3}}, {"u8[5] bytes"}},
          {{"nvfp4/16", {5, 2}}, {"u8[3,2] bytes"}},  {{"fp8e4m3", {2, 3}}, {"u8[2,3] <120"}},
          {{"fp8e5m2", {1, 1}}, {"u8[1] <120"}},      {{"gguf_q4k", {0, 3}}, {"u8[0]"}},
          {{"int8/4", {2, 2}}, {"u8[4] bytes"}}};
}

Expr dequantize_blocks(Expr packed, const std::string& scheme, Dims shape) {
  return make<DequantizeBlocks>(*packed.graph, {scheme, std::move(shape)}, {packed});
}

}  // namespace rlx::ops
