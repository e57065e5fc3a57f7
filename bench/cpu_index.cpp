// Indexing, ordering and random fills. Figures count the bytes of the results (and of rows read by index),
// the limit is that of a streaming copy or of reading.
#include <algorithm>
#include <numeric>
#include <vector>

#include "bench/bench.h"
#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/backend/cpu/kernels/index.h"
#include "rlx/backend/cpu/kernels/order.h"
#include "rlx/backend/cpu/kernels/random.h"
#include "rlx/base/philox.h"

namespace rlx::bench {
namespace {

using namespace cpu;

template <class T>
struct Buffer {
  explicit Buffer(int64_t n) : memory(allocate_aligned(size_t(n) * sizeof(T))) {
    data = reinterpret_cast<T*>(memory.get());
  }
  AlignedBytes memory;
  T* data;
};

struct Line {
  std::string name;
  double amount;  // of `unit` seconds in one run
  std::string unit;
  double limit;
  std::string goal, peer_name;
};

void bench(int argc, char** argv, const Line& line, std::vector<std::function<void()>> runs) {
  if (!wanted(argc, argv, line.name)) return;
  const auto t = interleaved(runs);
  report({.name = line.name,
          .value = line.amount / t[0],
          .unit = line.unit,
          .limit = line.limit,
          .peer = t.size() > 1 ? line.amount / t[1] : 0,
          .peer_name = line.peer_name,
          .goal = line.goal});
}

}  // namespace
}  // namespace rlx::bench

int main(int argc, char** argv) {
  using namespace rlx;
  using namespace rlx::bench;
  using namespace rlx::cpu;
  const Team team(default_pool(), threads());
  const double read = limits().read_gbs, copy = limits().copy_gbs;
  const int64_t big = int64_t(1) << 24;
  Buffer<float> x(big), y(big);
  Buffer<uint32_t> words(big);
  Buffer<int32_t> places(big);
  const uint64_t key = 3, counter = 0;
  const auto fill = [&](RandomKind kind, DType dtype, void* to) {
    random_fill(team,
                {.kind = kind, .dtype = dtype, .count = big, .keys = &key, .counters = &counter, .y = to});
  };
  // A copy writes half of what it moves; a fill writes all of it.
  bench::bench(argc, argv, {"random_bits 16M", 4e-9 * double(big), "GB/s", copy / 2, "near the limit"},
               {[&] { fill(RandomKind::bits, DType::u32, words.data); }});
  bench::bench(argc, argv, {"random_uniform 16M", 4e-9 * double(big), "GB/s", copy / 2, "near the limit"},
               {[&] { fill(RandomKind::uniform, DType::f32, y.data); }});
  fill(RandomKind::normal, DType::f32, x.data);
  fill(RandomKind::bits, DType::u32, words.data);
  bench::bench(argc, argv, {"random_normal 16M", 4e-9 * double(big), "GB/s", copy / 2, ""},
               {[&] { fill(RandomKind::normal, DType::f32, y.data); }});
  bench::bench(argc, argv, {"dropout 16M", 8e-9 * double(big), "GB/s", copy, ""},
               {[&] { dropout(team, {.count = big, .rate = 0.1, .x = x.data, .y = y.data}); }});

  const int64_t rows = 16384, n = 1024, count = 8192;
  for (int64_t i = 0; i < count; ++i) places.data[i] = int32_t(words.data[i] % uint32_t(rows));
  const double moved = 8e-9 * double(count * n);
  bench::bench(argc, argv, {"gather 8192 of 16384 x 1024", moved, "GB/s", copy, ""}, {[&] {
                 gather(team, {.size = rows,
                               .inner = n,
                               .count = count,
                               .table = x.data,
                               .indices = {places.data},
                               .y = y.data});
               }});
  bench::bench(argc, argv,
               {"embedding bf16 8192 of 16384 x 1024", 6e-9 * double(count * n), "GB/s", copy, ""}, {[&] {
                 embedding(team, {.dtype = DType::bf16,
                                  .size = rows,
                                  .n = n,
                                  .stride = n,
                                  .count = count,
                                  .table = x.data,
                                  .indices = {places.data},
                                  .y = y.data});
               }});
  const Scatter add{.kind = ScatterKind::add,
                    .rows = rows / 2,
                    .inner = n,
                    .count = count / 2,
                    .indices = {places.data, DType::i32, IndexMode::clamp},
                    .updates = x.data,
                    .y = y.data};
  // Zeros are written, then rows read twice and written once.
  bench::bench(argc, argv,
               {"scatter_add 4096 into 8192 x 1024", 4e-9 * double(n) * double(add.rows + 3 * add.count),
                "GB/s", copy, ""},
               {[&] { scatter(team, add, nullptr); }});

  const int64_t vocabulary = 131072, lines = 64;
  const TopK top{
      .outer = lines, .n = vocabulary, .k = 50, .x = x.data, .values = y.data, .indices = places.data};
  Buffer<std::byte> top_work(int64_t(top_k_workspace(top, team.threads())));
  std::vector<int32_t> order(static_cast<size_t>(vocabulary));
  bench::bench(argc, argv,
               {"top_k 50 of 131072, 64 rows", 4e-9 * double(lines * vocabulary), "GB/s", read, "",
                "std::partial_sort"},
               {[&] { top_k(team, top, top_work.data); },
                [&] {
                  for (int64_t r = 0; r < lines; ++r) {
                    const float* row = x.data + r * vocabulary;
                    std::iota(order.begin(), order.end(), 0);
                    std::partial_sort(order.begin(), order.begin() + 50, order.end(),
                                      [&](int32_t a, int32_t b) { return row[a] > row[b]; });
                  }
                }});
  const SampleTokens draw{.rows = lines,
                          .n = vocabulary,
                          .stride = vocabulary,
                          .logits = x.data,
                          .top_k = 50,
                          .top_p = 0.9,
                          .temperature = 0.8,
                          .tokens = places.data};
  Buffer<std::byte> draw_work(int64_t(sample_tokens_workspace(draw, team.threads())));
  bench::bench(argc, argv,
               {"sample top_k 50 top_p 0.9 of 131072", 4e-9 * double(lines * vocabulary), "GB/s", read, ""},
               {[&] { sample_tokens(team, draw, draw_work.data); }});
  for (const auto& [outer, length] : {std::pair<int64_t, int64_t>{1024, 1000}, {1, 1 << 20}}) {
    const Sort p{.outer = outer, .n = length, .x = x.data, .values = y.data, .indices = places.data};
    Buffer<std::byte> work(int64_t(sort_workspace(p, team.threads())));
    std::vector<int32_t> at(static_cast<size_t>(length));
    const int64_t outer_rows = outer, row_length = length;
    bench::bench(argc, argv,
                 {"sort " + std::to_string(outer) + " x " + std::to_string(length),
                  1e-6 * double(outer * length), "M/s", 0, "", "std::stable_sort of places"},
                 {[&] { sort(team, p, work.data); },
                  [&] {
                    for (int64_t r = 0; r < outer_rows; ++r) {
                      const float* row = x.data + r * row_length;
                      std::iota(at.begin(), at.end(), 0);
                      std::stable_sort(at.begin(), at.end(),
                                       [&](int32_t a, int32_t b) { return row[a] < row[b]; });
                    }
                  }});
  }
}
