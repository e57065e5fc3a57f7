// Products of rows with int8, int4, fp8 and nvfp4 weights of 4096 x 14336, decoded in the product. Few rows are bound by the packed bytes, many by the matrix units.
#include "bench/gpu/program.h"
#include "rlx/ops/all.h"
#include "rlx/quant/scheme.h"

namespace rlx::bench {
namespace {

using ir::Expr;

constexpr int64_t kDepth = 4096, kColumns = 14336;
// Of an H200: bytes and operations on 16 bits a second as measured, operations on f32 as its clock and lanes allow them.
constexpr double kMemoryLimit = 4.3e12, kMatrixLimit = 790e12, kWideLimit = 67e12;

// Several weights, so that none of them stays in the cache from one run to the next.
void scheme_product(const std::string& text, int64_t rows, DType t) {
  const quant::Scheme s = *quant::scheme_from_text(text);
  const int64_t count = rows <= 128 ? 8 : 1, groups = s.block > 0 ? kDepth / s.block : 1;
  const DType codes = s.kind == quant::SchemeKind::int8_block ? DType::i8 : DType::u8;
  Shape w(codes, {kDepth, kColumns}), scale(DType::f32, {groups, kColumns});
  if (s.kind == quant::SchemeKind::int4_block) w = Shape(codes, {quant::code_bytes(s, kDepth, kColumns)});
  if (s.block == 0) scale = Shape(DType::f32, {kColumns});
  if (s.scale_is_fp8())
    w = Shape(codes, {kDepth / 2, kColumns}), scale = Shape(DType::u8, {groups, kColumns});
  ir::Graph g("schemes");
  const Expr x{&g, g.input("x", Shape(t, {rows, kDepth}))};
  ir::Values results;
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) {
    const auto param = [&](const char* name, const Shape& shape) {
      return Expr{&g, g.param(cat(name, i), shape)};
    };
    const Expr zero = s.scale_is_fp8() ? param("z", Shape(DType::f32, {1})) : Expr{};
    results.push_back(ops::dequant_matmul(x, param("w", w), param("s", scale), zero, text));
    names.push_back(cat("y", i));
  }
  g.set_outputs(results, names);
  Program p(g);
  const double seconds = seconds_of(p) / double(count), bytes = double(w.size_bytes() + scale.size_bytes());
  const double flops = 2.0 * double(rows) * double(kDepth) * double(kColumns);
  // The limit is the longer of the two times.
  const double least = std::max(bytes / kMemoryLimit, flops / (t == DType::f32 ? kWideLimit : kMatrixLimit));
  const std::string rate =
      rows <= 32 ? rounded(bytes / seconds / 1e9, "GB/s") : rounded(flops / seconds / 1e12, "TFLOP/s");
  report(cat("scheme_", text, "_", rows, "_", t),
         cat(rate, ", ", rounded(100 * least / seconds, "% of the limit")), p);
  if (show_steps && !only_plans) p.print_steps();
}

}  // namespace

std::vector<Case> scheme_cases() {
  std::vector<Case> out;
  for (const char* scheme : {"int4/32", "int8/32", "fp8e4m3", "nvfp4/16"}) {
    for (const int64_t rows : {1, 8, 32, 128, 2048})
      out.push_back({"scheme", [=] { scheme_product(scheme, rows, DType::bf16); }});
    for (const int64_t rows : {1, 128})
      out.push_back({"scheme", [=] { scheme_product(scheme, rows, DType::f32); }});
  }
  return out;
}

}  // namespace rlx::bench
