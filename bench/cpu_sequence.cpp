// Kernels along a sequence: rope against copy bandwidth; selective scan and gated delta-net against plain
// loops of their recurrences, compiled as the rest of the program (-O3), on the same number of threads.
#include <algorithm>
#include <cmath>
#include <vector>

#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/copy.h"
#include "rlx/backend/cpu/kernels/gated_delta_net.h"
#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/kernels/rope.h"
#include "rlx/backend/cpu/kernels/selective_scan.h"

namespace rlx::bench {
namespace {

using namespace cpu;

// As the library keeps its tensors: aligned, large ones in huge pages.
class Floats {
 public:
  explicit Floats(int64_t n) : memory_(allocate_aligned(size_t(n) * 4)), n_(n) {}
  Floats(const Floats& other) : Floats(other.n_) { std::copy_n(other.data(), n_, data()); }

  float* data() { return reinterpret_cast<float*>(memory_.get()); }
  const float* data() const { return reinterpret_cast<const float*>(memory_.get()); }
  size_t size() const { return size_t(n_); }

 private:
  AlignedBytes memory_;
  int64_t n_;
};

Floats numbers(int64_t n, float low, float high) {
  Floats v(n);
  for (int64_t i = 0; i < n; ++i) v.data()[i] = low + (high - low) * float(i * 7919 % 1000) * 0.001f;
  return v;
}

void rope_lines(bool interleaved_pairs, const std::string& name) {
  const int64_t heads = 32, length = 2048, dim = 128;
  const Floats x = numbers(heads * length * dim, -1, 1), table = numbers(length * dim / 2, -1, 1);
  Floats y = x;
  const Team team(default_pool());
  const Rope p{.heads = heads,
               .length = length,
               .head_dim = dim,
               .rotated = dim,
               .interleaved = interleaved_pairs,
               .x = x.data(),
               .x_strides = {0, dim, heads * dim},
               .y = y.data(),
               .y_strides = {0, dim, heads * dim},
               .cos = table.data(),
               .sin = table.data(),
               .table_rows = length,
               .table_stride = dim / 2};
  const auto t = interleaved({[&] { rope(team, p); },
                              [&] {
                                strided_copy(team, {.rank = 1,
                                                    .size = {int64_t(x.size())},
                                                    .from_stride = {1},
                                                    .to_stride = {1},
                                                    .from = x.data(),
                                                    .to = y.data()});
                              }});
  const double moved = 8e-9 * double(x.size());
  report({.name = name,
          .value = moved / t[0],
          .unit = "GB/s",
          .limit = limits().copy_gbs,
          .peer = moved / t[1],
          .peer_name = "copy in turn",
          .goal = ">= 85 % of copy"});
}

struct ScanProblem {
  static constexpr int64_t length = 2048, channels = 1024, states = 16;
  Floats x = numbers(length * channels, -1, 1), delta = numbers(length * channels, 0, 0.1f);
  Floats a = numbers(channels * states, -2, 0), b = numbers(length * states, -1, 1), c = b;
  Floats y = x, dx = x, ddelta = x, da = a, db = b, dc = b;

  SelectiveScan parameters() {
    return {.length = length,
            .channels = channels,
            .states = states,
            .x = x.data(),
            .delta = delta.data(),
            .a = a.data(),
            .b = b.data(),
            .c = c.data(),
            .y = y.data()};
  }
};

void plain_scan(const SelectiveScan& p, int64_t h) {
  float s[ScanProblem::states] = {};
  for (int64_t t = 0; t < p.length; ++t) {
    const float delta = p.delta[t * p.channels + h], input = delta * p.x[t * p.channels + h];
    float sum = 0;
    for (int64_t i = 0; i < ScanProblem::states; ++i) {
      s[i] = std::exp(delta * p.a[h * ScanProblem::states + i]) * s[i] +
             input * p.b[t * ScanProblem::states + i];
      sum += p.c[t * ScanProblem::states + i] * s[i];
    }
    p.y[t * p.channels + h] = sum;
  }
}

void scan() {
  ScanProblem x;
  const Team team(default_pool());
  const SelectiveScan p = x.parameters();
  const AlignedBytes memory = allocate_aligned(selective_scan_workspace(p, team.threads()));
  const auto t = interleaved({[&] { selective_scan(team, p, memory.get()); },
                              [&] {
                                team.parallel_for(p.channels, 1, [&](int64_t begin, int64_t end) {
                                  for (int64_t h = begin; h < end; ++h) plain_scan(p, h);
                                });
                              }},
                             0.02, 5);
  const double steps = 1e-6 * double(p.length * p.channels * p.states);
  report({.name = "selective scan s2048 h1024 n16",
          .value = steps / t[0],
          .unit = "M/s",
          .peer = steps / t[1],
          .peer_name = "plain loops",
          .goal = ">= 4x plain loops"});
}

// The recurrence backwards with all states of a channel kept.
void plain_scan_backward(const SelectiveScanBackward& d, int64_t h, std::vector<float>& kept, float* db,
                         float* dc) {
  constexpr int64_t n = ScanProblem::states;
  const SelectiveScan& p = d.forward;
  kept.assign(size_t((p.length + 1) * n), 0);
  for (int64_t t = 0; t < p.length; ++t) {
    const float delta = p.delta[t * p.channels + h], input = delta * p.x[t * p.channels + h];
    for (int64_t i = 0; i < n; ++i) {
      kept[size_t((t + 1) * n + i)] =
          std::exp(delta * p.a[h * n + i]) * kept[size_t(t * n + i)] + input * p.b[t * n + i];
    }
  }
  float g[n] = {}, da[n] = {};
  for (int64_t t = p.length - 1; t >= 0; --t) {
    const int64_t at = t * p.channels + h;
    const float delta = p.delta[at], in = p.x[at], dy = d.dy[at];
    float dx = 0, ddelta = 0;
    for (int64_t i = 0; i < n; ++i) {
      const float e = std::exp(delta * p.a[h * n + i]), before = kept[size_t(t * n + i)];
      g[i] += p.c[t * n + i] * dy;
      dc[t * n + i] += dy * kept[size_t((t + 1) * n + i)];
      db[t * n + i] += g[i] * delta * in;
      dx += g[i] * delta * p.b[t * n + i];
      ddelta += g[i] * (p.a[h * n + i] * e * before + p.b[t * n + i] * in);
      da[i] += g[i] * delta * e * before;
      g[i] *= e;
    }
    d.dx[at] = dx;
    d.ddelta[at] = ddelta;
  }
  for (int64_t i = 0; i < n; ++i) d.da[h * n + i] = da[i];
}

void scan_backward() {
  ScanProblem x;
  const Team team(default_pool());
  const SelectiveScanBackward p{.forward = x.parameters(),
                                .dy = x.x.data(),
                                .dx = x.dx.data(),
                                .ddelta = x.ddelta.data(),
                                .da = x.da.data(),
                                .db = x.db.data(),
                                .dc = x.dc.data()};
  const AlignedBytes memory = allocate_aligned(selective_scan_backward_workspace(p, team.threads()));
  const auto t = interleaved({[&] { selective_scan_backward(team, p, memory.get()); },
                              [&] {
                                team.parallel_for(x.channels, 1, [&](int64_t begin, int64_t end) {
                                  std::vector<float> kept, db(x.b.size()), dc(x.b.size());
                                  for (int64_t h = begin; h < end; ++h)
                                    plain_scan_backward(p, h, kept, db.data(), dc.data());
                                });
                              }},
                             0.02, 3);
  const double steps = 1e-6 * double(x.length * x.channels * x.states);
  report({.name = "selective scan backward s2048 h1024",
          .value = steps / t[0],
          .unit = "M/s",
          .peer = steps / t[1],
          .peer_name = "plain loops",
          .goal = ">= 4x plain loops"});
}

struct DeltaProblem {
  int64_t length, heads = 16, size = 128;
  Floats q, k, v, g, beta, state, y, dq, dk, dv, dg, dbeta;

  explicit DeltaProblem(int64_t length)
      : length(length),
        q(numbers(length * heads * size, -0.1f, 0.1f)),
        k(q),
        v(q),
        g(numbers(length * heads, -0.2f, 0)),
        beta(numbers(length * heads, 0, 1)),
        state(numbers(heads * size * size, 0, 0)),
        y(q),
        dq(q),
        dk(q),
        dv(q),
        dg(g),
        dbeta(g) {}

  GatedDeltaNet parameters(bool carried) {
    return {.length = length,
            .heads = heads,
            .size = size,
            .q = q.data(),
            .k = k.data(),
            .v = v.data(),
            .g = g.data(),
            .beta = beta.data(),
            .state = carried ? state.data() : nullptr,
            .y = y.data(),
            .final_state = state.data()};
  }
};

// The recurrence as it reads, each loop along the rows of the state.
void plain_delta(const GatedDeltaNet& p, int64_t head, bool carried) {
  const int64_t n = p.size;
  float* s = p.final_state + head * n * n;
  if (!carried) std::fill(s, s + n * n, 0.0f);
  std::vector<float> d(static_cast<size_t>(n));
  const float scale = 1 / std::sqrt(float(n));
  for (int64_t t = 0; t < p.length; ++t) {
    const int64_t at = t * p.heads + head;
    const float *q = p.q + at * n, *k = p.k + at * n, *v = p.v + at * n, gate = std::exp(p.g[at]);
    float* y = p.y + at * n;
    for (int64_t i = 0; i < n * n; ++i) s[i] *= gate;
    for (int64_t j = 0; j < n; ++j) d[size_t(j)] = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) d[size_t(j)] += s[i * n + j] * k[i];
    for (int64_t j = 0; j < n; ++j) d[size_t(j)] = p.beta[at] * (v[j] - d[size_t(j)]);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) s[i * n + j] += k[i] * d[size_t(j)];
    for (int64_t j = 0; j < n; ++j) y[j] = 0;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) y[j] += s[i * n + j] * q[i];
    for (int64_t j = 0; j < n; ++j) y[j] *= scale;
  }
}

void delta(int64_t length, const std::string& name, const std::string& goal) {
  DeltaProblem x(length);
  const bool carried = length == 1;
  const Team team(default_pool());
  const GatedDeltaNet p = x.parameters(carried);
  const AlignedBytes memory = allocate_aligned(gated_delta_net_workspace(p, team.threads()));
  const auto t = interleaved({[&] { gated_delta_net(team, p, memory.get()); },
                              [&] {
                                team.parallel_for(p.heads, 1, [&](int64_t begin, int64_t end) {
                                  for (int64_t h = begin; h < end; ++h) plain_delta(p, h, carried);
                                });
                              }},
                             0.02, 5);
  const double steps = 1e-3 * double(p.length * p.heads);
  report({.name = name,
          .value = steps / t[0],
          .unit = "k/s",
          .peer = steps / t[1],
          .peer_name = "plain loops",
          .goal = goal});
}

void delta_backward() {
  DeltaProblem x(1024);
  const Team team(default_pool());
  const GatedDeltaNetBackward p{.forward = x.parameters(false),
                                .dy = x.q.data(),
                                .dq = x.dq.data(),
                                .dk = x.dk.data(),
                                .dv = x.dv.data(),
                                .dg = x.dg.data(),
                                .dbeta = x.dbeta.data()};
  const AlignedBytes memory = allocate_aligned(gated_delta_net_backward_workspace(p, team.threads()));
  const auto t = interleaved({[&] { gated_delta_net_backward(team, p, memory.get()); }}, 0.02, 5);
  // Multiply-adds of the form used: ten products of chunk * size * size a chunk, at the rate of the machine.
  const double n = double(x.size), steps = double(x.length * x.heads);
  report({.name = "gated delta-net backward s1024 h16",
          .value = 20e-9 * steps * n * n / t[0],
          .unit = "GFLOP/s",
          .limit = limits().fma_gflops});
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx::bench;
  const auto line = [&](const std::string& name, auto run) {
    if (wanted(argc, argv, name)) run(name);
  };
  line("rope s2048 h32 d128", [](const std::string& name) { rope_lines(false, name); });
  line("rope interleaved s2048 h32 d128", [](const std::string& name) { rope_lines(true, name); });
  line("selective scan s2048 h1024 n16", [](const std::string&) { scan(); });
  line("selective scan backward s2048 h1024", [](const std::string&) { scan_backward(); });
  line("gated delta-net s1024 h16 n128",
       [](const std::string& name) { delta(1024, name, ">= 5x plain loops"); });
  line("gated delta-net step h16 n128", [](const std::string& name) { delta(1, name, ""); });
  line("gated delta-net backward s1024 h16", [](const std::string&) { delta_backward(); });
}
