#include "rlx/ops/quant/encode_blocks.h"

#include "rlx/ops/quant/dequantize_blocks.h"
#include "rlx/quant/format.h"

namespace rlx::ops {

Shapes EncodeBlocks::infer(Infer& c, Attrs& a) {
  const quant::Scheme s = require_scheme(c, a.scheme);
  if (!s.is_gguf() || s.format->encode == nullptr) c.fail("numbers cannot be encoded as ", a.scheme);
  c.require_float(0);
  c.require_min_rank(0, 1);
  Dims dims = c.in(0).dims();
  if (!dims.back().is_static() || dims.back().value() % s.block != 0)
    c.fail("x: ", c.in(0), " has rows of ", dims.back(), "; a multiple of ", s.block, ", the block of ",
           a.scheme, ", expected");
  dims.back() = quant::encoded_bytes(*s.format, dims.back().value());
  return {Shape(DType::u8, dims)};
}

Literals EncodeBlocks::reference(const Eval& c, const Attrs& a) {
  const Literal x = c.in(0).cast(DType::f32);
  Literal y = Literal::zeros(c.out());
  const auto out = y.mutable_data<uint8_t>();
  quant::encode(*quant::scheme_from_text(a.scheme)->format, x.data<float>(), std::as_writable_bytes(out));
  return {y};
}

Exprs EncodeBlocks::vmap(const Vmap& c, const Attrs& a) {
  return {make<EncodeBlocks>(c.graph, a, {c.in(0)})};
}

std::vector<OpSample<EncodeBlocks::Attrs>> EncodeBlocks::samples() {
  return {{{"gguf_q8_0"}, {"f32[2,64]"}},
          {{"gguf_q8_0"}, {"f32[32]"}},
          {{"gguf_q4_0"}, {"f32[3,32]"}},
          {{"gguf_q8_0"}, {"f32[0,32]"}},
          {{"gguf_q5_1"}, {"f32[1,2,32]"}}};
}

}  // namespace rlx::ops
