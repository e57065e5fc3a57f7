// Convolutions of the layers of ResNet-18 and ResNet-50 with 32 images, and both gradients, beside what the processor could do: the larger of operations over the
// peak of its units and bytes over the speed of its memory.
#include <algorithm>

#include "bench/gpu/program.h"
#include "rlx/ops/all.h"

namespace rlx::bench {
namespace {

using ir::Expr;

struct Layer {
  const char* name;
  int64_t inputs, outputs, size, kernel, stride = 1, groups = 1;
};

constexpr Layer kLayers[] = {{"3x3_64_64_56", 64, 64, 56, 3},
                             {"3x3_128_128_28", 128, 128, 28, 3},
                             {"3x3_256_256_14", 256, 256, 14, 3},
                             {"3x3_512_512_7", 512, 512, 7, 3},
                             {"3x3_64_128_56_stride2", 64, 128, 56, 3, 2},
                             {"1x1_64_256_56", 64, 256, 56, 1},
                             {"1x1_256_64_56", 256, 64, 56, 1},
                             {"1x1_1024_256_14", 1024, 256, 14, 1},
                             {"7x7_3_64_224_stride2", 3, 64, 224, 7, 2},
                             {"3x3_depthwise_256_28", 256, 256, 28, 3, 1, 256}};

enum class Pass { forward, input, weight };

// An H200: bf16 on groups of warps, FMA units in f32, memory.
constexpr double kPeakBf16 = 790e12, kPeakF32 = 60e12, kBytesEachSecond = 4.3e12;

std::string name_of(const Layer& l, DType t, Pass pass) {
  constexpr const char* kNames[] = {"", "_dx", "_dw"};
  return cat("conv_", l.name, kNames[size_t(pass)], "_", t);
}

void conv_layer(const Layer& l, DType t, Pass pass) {
  constexpr int64_t kBatch = 32;
  const int64_t padding = l.kernel / 2, out = (l.size + 2 * padding - l.kernel) / l.stride + 1;
  const Shape x(t, {kBatch, l.inputs, l.size, l.size}), y(t, {kBatch, l.outputs, out, out}),
      w(t, {l.outputs, l.inputs / l.groups, l.kernel, l.kernel});
  ir::Graph g("conv");
  const auto input = [&](const char* name, const Shape& s) { return Expr{&g, g.input(name, s)}; };
  const ops::Steps kernel{l.kernel, l.kernel}, stride{l.stride, l.stride}, pad{padding, padding};
  Expr made;
  if (pass == Pass::forward) {
    made = ops::conv2d(input("x", x), input("w", w), kernel, stride, pad, {}, l.groups);
  } else if (pass == Pass::input) {
    made = ops::conv2d_backward_input(input("dy", y), input("w", w), x.dims(), kernel, stride, pad, {},
                                      l.groups);
  } else {
    made = ops::conv2d_backward_weight(input("x", x), input("dy", y), w.dims(), kernel, stride, pad, {},
                                       l.groups);
  }
  g.set_outputs({made}, {"made"});
  Program p(g);
  const double flops = 2.0 * double(y.elements()) * double(w.elements()) / double(l.outputs);
  const double bytes = double(x.size_bytes() + y.size_bytes() + w.size_bytes());
  const double limit = std::max(flops / (t == DType::f32 ? kPeakF32 : kPeakBf16), bytes / kBytesEachSecond);
  const double seconds = seconds_of(p);
  report(name_of(l, t, pass),
         cat(rounded(flops / seconds / 1e12, "TFLOP/s"), ", ", rounded(seconds * 1e6, "us"), ", ",
             rounded(limit / seconds * 100, "% of"), " ", rounded(limit * 1e6, "us")),
         p);
  if (show_steps) p.print_steps();
}

}  // namespace

std::vector<Case> conv_cases() {
  std::vector<Case> out;
  for (const DType t : {DType::f32, DType::bf16}) {
    for (const Layer& l : kLayers) {
      for (const Pass pass : {Pass::forward, Pass::input, Pass::weight})
        out.push_back({name_of(l, t, pass), [&l, t, pass] { conv_layer(l, t, pass); }});
    }
  }
  return out;
}

}  // namespace rlx::bench
