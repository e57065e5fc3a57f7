// Products of 32 rows with the weights of language models: the library beside every way to cut them for the copy engine (rlx/backend/cuda/nodes/copied_tiles.h). A recording goes through weights that no cache holds.
#include <algorithm>

#include "bench/gpu/program.h"
#include "rlx/backend/cuda/nodes/copied_tiles.h"
#include "rlx/backend/cuda/nodes/streamed_tiles.h"
#include "rlx/base/error.h"

namespace rlx::bench {
namespace {

using cuda::CopiedTiles;
using cuda::CopiedTiling;
using cuda::FewRows;

constexpr size_t kAllWeights = size_t(1) << 30;

/// Seconds of one of `count` pieces of work that are recorded together, the median of seven rounds.
double seconds_each(int count, const std::function<void(cuda::Stream_*, int)>& queue) {
  const cuda::Driver& d = cuda::device().gpu()->use();
  cuda::Stream_* stream = nullptr;
  cuda::check(d.StreamCreate(&stream, 1), "a stream");
  queue(stream, 0);  // compiled and loaded
  cuda::check(d.StreamSynchronize(stream), "the first run");
  cuda::Graph_* graph = nullptr;
  cuda::GraphExec_* recorded = nullptr;
  cuda::check(d.StreamBeginCapture(stream, 2), "recording");
  for (int i = 0; i < count; ++i) queue(stream, i);
  cuda::check(d.StreamEndCapture(stream, &graph), "recording");
  cuda::check(d.GraphInstantiate(&recorded, graph, 0), "recording");
  std::vector<double> rounds;
  for (int r = 0; r < 8; ++r) {
    const double from = now();
    cuda::check(d.GraphLaunch(recorded, stream), "a run");
    cuda::check(d.StreamSynchronize(stream), "a run");
    if (r > 0) rounds.push_back(now() - from);
  }
  d.GraphExecDestroy(recorded), d.GraphDestroy(graph), d.StreamDestroy(stream);
  std::nth_element(rounds.begin(), rounds.begin() + 3, rounds.end());
  return rounds[3] / count;
}

void rows_product(const std::string& name, int64_t n, int64_t k, int64_t sides) {
  const cuda::Device& device = cuda::device();
  const FewRows p{.dtype = DType::bf16,
                  .m = 32,
                  .n = n,
                  .k = k,
                  .a_row = k,
                  .c_row = n,
                  .b_row = 1,
                  .b_column = k,
                  .b_is_fixed = true};
  const size_t matrix = size_t(n * k * 2), each = matrix * size_t(sides);
  const int copies = int(std::clamp<size_t>(kAllWeights / each, 2, 200)), count = std::max(copies, 8);
  const backend::Block a(device.memory(), size_t(p.m * k * 2)), b(device.memory(), each * size_t(copies)),
      c(device.memory(), size_t(p.m * n * 2)), workspace(device.memory(), 64 << 20);
  const auto line = [&](const std::string& what, double seconds) {
    std::printf("%-10s %7.2f us %5.2f TB/s  %s\n", name.c_str(), seconds * 1e6, double(each) / seconds / 1e12,
                what.c_str());
  };
  const auto weights = [&](int i) { return b.get() + size_t(i % copies) * each; };
  const cuda::BlasProduct product{
      .dtype = p.dtype, .m = p.m, .n = n, .k = k, .a = {false, k, 0}, .b = {true, k, 0}, .c = {false, n, 0}};
  if (const auto library = cuda::BlasPlan::make(*device.gpu(), product)) {
    line("the library", seconds_each(count, [&](cuda::Stream_* s, int i) {
           for (int64_t side = 0; side < sides; ++side)
             library->run(s, a.get(), weights(i) + size_t(side) * matrix, c.get(), workspace.get());
         }));
  }
  if (const auto streamed = cuda::StreamedTiles::make(device, p); streamed && sides == 1) {
    line("rings of warps", seconds_each(count, [&](cuda::Stream_* s, int i) {
           streamed->run({*device.gpu(), s}, a.get(), weights(i), c.get());
         }));
  }
  std::vector<CopiedTiles> ways;
  for (const CopiedTiling& t : CopiedTiles::tilings(device, p, sides))
    ways.push_back(CopiedTiles::plain(device, p, sides, t));
  device.functions().compile_waiting();
  for (const CopiedTiles& way : ways) {
    line(way.tiling().text(), seconds_each(count, [&](cuda::Stream_* s, int i) {
           way.run(s, a.get(), {weights(i), weights(i) + size_t(sides - 1) * matrix}, c.get(),
                   workspace.get());
         }));
  }
}

}  // namespace

std::vector<Case> rows_cases() {
  std::vector<Case> out;
  const auto add = [&](const char* name, int64_t n, int64_t k, int64_t sides) {
    out.push_back({cat("rows_", name), [=] { rows_product(name, n, k, sides); }});
  };
  add("8b_gate_up", 14336, 4096, 2);
  add("8b_down", 4096, 14336, 1);
  add("8b_qkv", 6144, 4096, 1);
  add("8b_o", 4096, 4096, 1);
  add("1b_gate_up", 8192, 2048, 2);
  add("1b_down", 2048, 8192, 1);
  add("1b_qkv", 3072, 2048, 1);
  add("1b_o", 2048, 2048, 1);
  add("1b_head", 128256, 2048, 1);
  add("135m_gate_up", 1536, 576, 2);
  add("135m_down", 576, 1536, 1);
  add("135m_qkv", 960, 576, 1);
  add("135m_o", 576, 576, 1);
  return out;
}

}  // namespace rlx::bench
