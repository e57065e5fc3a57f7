// Fused regions against loops written by hand over the same vector functions, on one thread at the levels AVX2 and AVX-512:
// in the second-level cache (65,536 elements) and in memory (16 M). Time is the thread's own processor time, so
// that the ratio holds on a machine that others use; the lower quartile of the rounds, in turn.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/loops/region_loops.h"
#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/vm/program.h"
#include "rlx/base/aligned.h"
#include "rlx/base/error.h"
#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "rlx/region/from_graph.h"

namespace rlx::bench {
namespace {

struct Workload {
  std::string name, body;  // R and C stand for the sizes
  Loop loop;
  bool rows;     // a row program; else one line
  bool square;   // R = C
  int in_place;  // results that take the memory of the inputs of the same number
  double goal;   // at most so many times the loop's time
};

std::vector<Workload> workloads(const Loops& l) {
  return {
      {"bias + gelu", "(x: f32[R,C], b: f32[C]) { return gelu(add(x, b)) }", l.bias_gelu, true, false, 0,
       1.25},
      {"swiglu", "(x: f32[C], g: f32[C]) { return mul(silu(x), g) }", l.swiglu, false, false, 0, 1.25},
      {"adamw in place",
       "(p: f32[C], m: f32[C], v: f32[C], g: f32[C]) {"
       " m1 = add(mul(m, full(shape=f32[], value=0.9)), mul(g, full(shape=f32[], value=0.1)))"
       " v1 = add(mul(v, full(shape=f32[], value=0.999)), mul(mul(g, g), full(shape=f32[], value=0.001)))"
       " d = add(sqrt(mul(v1, full(shape=f32[], value=1.5))), full(shape=f32[], value=1e-8))"
       " p1 = add(mul(p, full(shape=f32[], value=0.99999)), mul(div(m1, d), full(shape=f32[], value=-0.001)))"
       " return p1, m1, v1 }",
       l.adamw, false, false, 3, 1.25},
      {"layer norm",
       "(x: f32[R,C], w: f32[C], b: f32[C]) {"
       " d = sub(x, reduce(x, kind=mean, axes=[1], keep_dim=true))"
       " v = reduce(mul(d, d), kind=mean, axes=[1], keep_dim=true)"
       " r = rsqrt(add(v, full(shape=f32[], value=1e-5)))"
       " return add(mul(mul(d, r), w), b) }",
       l.layer_norm, true, false, 0, 1.4},
      {"softmax + mask",
       "(x: f32[R,C], k: f32[C]) {"
       " v = add(x, k)"
       " e = exp(sub(v, reduce(v, kind=max, axes=[1], keep_dim=true)))"
       " return div(e, reduce(e, kind=sum, axes=[1], keep_dim=true)) }",
       l.softmax, true, false, 0, 1.4},
      {"chain of 24",
       "(x: f32[C], y: f32[C]) {"
       " t0 = add(x, y) t1 = mul(x, full(shape=f32[], value=0.7)) t2 = max(t0, t1) t3 = mul(t2, t0) t4 = sub(t3, y)"
       " t5 = mul(t4, full(shape=f32[], value=0.3)) t6 = min(t5, x) t7 = add(t6, t2) t8 = mul(t7, t7) t9 = sub(t8, t5)"
       " z = full(shape=f32[], value=0.0) t10 = where(compare(t9, z, kind=gt), t7, t4)"
       " t11 = mul(t10, full(shape=f32[], value=1.1)) t12 = add(t11, full(shape=f32[], value=0.25)) t13 = max(t12, t0)"
       " t14 = mul(t13, y) t15 = sub(t14, t8) t16 = abs(t15) t17 = add(t16, x)"
       " t18 = mul(t17, full(shape=f32[], value=0.9)) t19 = min(t18, t13) t20 = sub(t19, t11)"
       " t21 = where(compare(t20, z, kind=gt), t18, t16) t22 = add(t21, t7)"
       " return mul(t22, full(shape=f32[], value=0.5)) }",
       l.chain, false, false, 0, 1.25},
      {"bf16 residual + rms",
       "(x: bf16[R,C], e: bf16[R,C], w: f32[C]) {"
       " v = add(cast(x, to=f32), cast(e, to=f32))"
       " s = reduce(mul(v, v), kind=mean, axes=[1], keep_dim=true)"
       " r = rsqrt(add(s, full(shape=f32[], value=1e-5)))"
       " return cast(v, to=bf16), cast(mul(mul(v, r), w), to=bf16) }",
       l.bf16_rms, true, false, 0, 1.4},
      {"transpose + scale + bias",
       "(x: f32[R,C], b: f32[C]) { return add(mul(x, full(shape=f32[], value=0.5)), b) }", l.transpose, true,
       true, 0, 1.25},
      {"gelu' of 12 operators",
       "(x: f32[C], d: f32[C]) {"
       " q = mul(x, x)"
       " t = tanh(mul(add(mul(q, full(shape=f32[], value=0.035677408)), full(shape=f32[], value=0.7978845608)), x))"
       " i = add(mul(q, full(shape=f32[], value=0.10703222)), full(shape=f32[], value=0.7978845608))"
       " a = mul(mul(mul(x, sub(full(shape=f32[], value=1.0), mul(t, t))), i), full(shape=f32[], value=0.5))"
       " g = add(a, add(mul(t, full(shape=f32[], value=0.5)), full(shape=f32[], value=0.5)))"
       " return mul(g, d) }",
       l.gelu_gradient, false, false, 0, 1.25}};
}

std::string replaced(std::string text, int64_t rows, int64_t columns) {
  for (size_t at; (at = text.find_first_of("RC")) != std::string::npos;)
    text.replace(at, 1, std::to_string(text[at] == 'R' ? rows : columns));
  return text;
}

double processor_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

double lower_quartile(std::vector<double> t) {
  std::sort(t.begin(), t.end());
  return t[t.size() / 4];
}

std::string name_of(const Workload& w, bool large) {
  return cat(w.name, large ? ", memory, " : ", cache, ", cpu::isa_name(cpu::current_isa()));
}

void measure(const Workload& w, int64_t rows, int64_t columns, bool large) {
  const ir::Graph body = ir::parse_graph("graph @b" + replaced(w.body, rows, columns), ops::table());
  const region::Layout transposed{{1, rows}};
  const auto layouts = w.square ? std::vector<region::Layout>{transposed, {}} : std::vector<region::Layout>{};
  const region::Built built = region::from_graph(body, layouts);
  if (!built) throw invalid("bench: ", w.name, ": ", built.refusal);
  const cpu::RegionProgram program(*built.region);
  std::vector<AlignedBytes> owned;
  std::vector<std::byte*> memory;
  const auto add = [&](const Shape& s) {
    owned.push_back(allocate_aligned(size_t(s.size_bytes())));
    memory.push_back(owned.back().get());
    for (int64_t i = 0; i < s.elements(); ++i) {
      const float v = float(i % 97) * 0.02f + 0.05f;
      if (s.dtype() == DType::f32) reinterpret_cast<float*>(memory.back())[i] = v;
      if (s.dtype() == DType::bf16) reinterpret_cast<uint16_t*>(memory.back())[i] = uint16_t(0x3f80 + i % 97);
    }
  };
  for (const ir::NodeId leaf : body.leaves()) add(body.node(leaf).shapes[0]);
  for (size_t i = 0; i < body.outputs().size(); ++i) {
    if (int(i) < w.in_place) {
      memory.push_back(memory[i]);
    } else {
      add(body.shape(body.outputs()[i]));
    }
  }
  const AlignedBytes workspace = allocate_aligned(program.workspace(1));
  Pool pool(1);
  const int repeat = large ? 1 : 50, rounds = large ? 9 : 15;
  const bool stream = large && w.in_place == 0;
  std::vector<double> vm, loop;
  for (int round = 0; round <= rounds; ++round) {
    double t = processor_seconds();
    for (int i = 0; i < repeat; ++i) program.run(pool, memory, workspace.get());
    if (round > 0) vm.push_back((processor_seconds() - t) / repeat);
    t = processor_seconds();
    for (int i = 0; i < repeat; ++i)
      w.loop(reinterpret_cast<char* const*>(memory.data()), rows, columns, stream);
    if (round > 0) loop.push_back((processor_seconds() - t) / repeat);
  }
  const double elements = double(rows * columns) * 1e-9;
  report({.name = name_of(w, large),
          .value = elements / lower_quartile(vm),
          .unit = "G elements/s",
          .peer = elements / lower_quartile(loop),
          .peer_name = "loop by hand",
          .goal = ">= " + std::to_string(1 / w.goal).substr(0, 4) + " of the loop"});
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx;
  using namespace rlx::bench;
  for (const cpu::Isa level : cpu::available_isas()) {
    if (level != cpu::Isa::avx2 && level != cpu::Isa::avx512) continue;
    cpu::use_isa(level);
    for (const Workload& w :
         workloads(level == cpu::Isa::avx2 ? region_loops_avx2() : region_loops_avx512())) {
      for (const bool large : {false, true}) {
        if (!wanted(argc, argv, name_of(w, large))) continue;
        if (w.square) {
          measure(w, large ? 4096 : 256, large ? 4096 : 256, large);
        } else if (w.rows) {
          measure(w, large ? 16384 : 64, 1024, large);
        } else {
          measure(w, 1, large ? 16384 * 1024 : 65536, large);
        }
      }
    }
  }
}
