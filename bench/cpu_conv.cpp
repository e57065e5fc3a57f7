// Convolutions against oneDNN, which chooses its own layouts and has its reorders done beforehand (same
// number of threads each, in turn). Ours reads and writes [N, C, H, W].
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/conv/conv.h"

#ifdef RLX_BENCH_DNNL
#include <omp.h>

#include "oneapi/dnnl/dnnl.hpp"
#endif

namespace rlx::bench {
namespace {

using namespace cpu;

#ifdef RLX_BENCH_DNNL
struct Peer {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;

  Peer(const ConvShape& s, ConvPass pass) {
    using M = dnnl::memory;
    const auto list = [](const Extents& e, int64_t add = 0) { return M::dims{e[1] + add, e[2] + add}; };
    const Extents out = s.out();
    const auto any = [](const M::dims& d) { return M::desc(d, M::data_type::f32, M::format_tag::any); };
    const M::desc x = any({s.batch, s.in_channels, s.size[1], s.size[2]});
    const M::desc y = any({s.batch, s.out_channels, out[1], out[2]});
    const int64_t in = s.in_channels / s.groups, per = s.out_channels / s.groups;
    const M::desc w = s.groups == 1 ? any({per, in, s.kernel[1], s.kernel[2]})
                                    : any({s.groups, per, in, s.kernel[1], s.kernel[2]});
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward_training, algorithm, x, w, y, list(s.stride), list(s.dilation, -1),
         list(s.low), list(s.high)},
        engine);
    if (pass == ConvPass::forward) {
      primitive = dnnl::convolution_forward(forward);
      add(DNNL_ARG_SRC, forward.src_desc()), add(DNNL_ARG_WEIGHTS, forward.weights_desc());
      add(DNNL_ARG_DST, forward.dst_desc());
    } else if (pass == ConvPass::backward_data) {
      const dnnl::convolution_backward_data::primitive_desc d(
          {algorithm, x, w, y, list(s.stride), list(s.dilation, -1), list(s.low), list(s.high)}, engine,
          forward);
      primitive = dnnl::convolution_backward_data(d);
      add(DNNL_ARG_DIFF_SRC, d.diff_src_desc()), add(DNNL_ARG_WEIGHTS, d.weights_desc());
      add(DNNL_ARG_DIFF_DST, d.diff_dst_desc());
    } else {
      const dnnl::convolution_backward_weights::primitive_desc d(
          {algorithm, x, w, y, list(s.stride), list(s.dilation, -1), list(s.low), list(s.high)}, engine,
          forward);
      primitive = dnnl::convolution_backward_weights(d);
      add(DNNL_ARG_SRC, d.src_desc()), add(DNNL_ARG_DIFF_WEIGHTS, d.diff_weights_desc());
      add(DNNL_ARG_DIFF_DST, d.diff_dst_desc());
    }
  }
  void add(int which, const dnnl::memory::desc& d) {
    dnnl::memory m(d, engine);
    auto* p = static_cast<float*>(m.get_data_handle());
    std::fill_n(p, d.get_size() / sizeof(float), 0.25f);
    arguments.insert({which, m});
  }
  void run() {
    primitive.execute(stream, arguments);
    stream.wait();
  }
};
#endif

void bench(int argc, char** argv, const std::string& what, const ConvShape& s, const std::string& goal) {
  const char* names[] = {"forward", "backward_data", "backward_weights"};
  for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights}) {
    const std::string name = "conv " + what + " " + names[int(pass)];
    if (!wanted(argc, argv, name)) continue;
    const Extents out = s.out();
    const int64_t places = s.size[0] * s.size[1] * s.size[2], results = out[0] * out[1] * out[2],
                  taps = s.kernel[0] * s.kernel[1] * s.kernel[2];
    const int64_t weights_count = s.out_channels * s.in_channels / s.groups * taps;
    std::vector<float> x(size_t(s.batch * s.in_channels * places), 0.5f), w(size_t(weights_count), 0.25f),
        y(size_t(s.batch * s.out_channels * results), 0.5f);
    const Team team(default_pool());
    const ConvPlan plan(s, pass);
    std::unique_ptr<PackedConvWeights> weights;
    if (pass != ConvPass::backward_weights) {
      weights = std::make_unique<PackedConvWeights>(plan);
      weights->pack(team, w.data());
    }
    float* into[] = {y.data(), x.data(), w.data()};
    const Conv p{
        .plan = &plan, .weights = weights.get(), .x = x.data(), .dy = y.data(), .out = into[int(pass)]};
    const AlignedBytes workspace = allocate_aligned(conv_workspace(p, team.threads()));
    std::vector<std::function<void()>> functions = {[&] { conv(team, p, workspace.get()); }};
#ifdef RLX_BENCH_DNNL
    omp_set_num_threads(threads());
    Peer peer(s, pass);
    functions.push_back([&] { peer.run(); });
#endif
    const std::vector<double> t = interleaved(functions);
    const double flops = 2e-9 * double(s.batch) * double(weights_count) * double(results);
    report({.name = name,
            .value = flops / t[0],
            .unit = "GFLOP/s",
            .limit = limits().fma_gflops,
            .peer = t.size() > 1 ? flops / t[1] : 0,
            .peer_name = "oneDNN, own layout",
            .goal = goal});
  }
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  // OpenMP's threads spin after their work and would take a core from ours in the next round: about 50 us
  // keeps them awake from call to call and no longer. The runtime reads the variable when it is loaded.
  if (setenv("GOMP_SPINCOUNT", "20000", 0) == 0 && std::getenv("RLX_BENCH_AGAIN") == nullptr) {
    setenv("RLX_BENCH_AGAIN", "1", 1);
    execv("/proc/self/exe", argv);
  }
  using rlx::bench::bench;
  const auto square = [](int64_t batch, int64_t in, int64_t size, int64_t out, int64_t k, int64_t stride,
                         int64_t groups = 1) {
    return rlx::cpu::ConvShape{.batch = batch,
                               .groups = groups,
                               .in_channels = in,
                               .out_channels = out,
                               .size = {1, size, size},
                               .kernel = {1, k, k},
                               .stride = {1, stride, stride},
                               .low = {0, k / 2, k / 2},
                               .high = {0, k / 2, k / 2}};
  };
  bench(argc, argv, "3x3 64-64 56", square(1, 64, 56, 64, 3, 1), ">= 1.0x");
  bench(argc, argv, "7x7 3-64 224 stride 2", square(1, 3, 224, 64, 7, 2), "");
  bench(argc, argv, "1x1 64-256 56", square(1, 64, 56, 256, 1, 1), "");
  bench(argc, argv, "3x3 512-512 7", square(1, 512, 7, 512, 3, 1), "");
  bench(argc, argv, "3x3 depthwise 128 56", square(1, 128, 56, 128, 3, 1, 128), "");
}
