#include "bench/bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>

#include "rlx/base/aligned.h"
#include "rlx/base/pool.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rlx::bench {
namespace {

// With one thread, the processor time of the process: a busy machine then changes little but the caches. With
// several, the wall clock.
double now() {
  if (threads() == 1) {
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + long(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// Work per call of `body` on all threads at once, best of several: a limit is what the machine can do.
template <class Body>
double best_rate(double work, Body body) {
  double best = 0;
  for (int round = 0; round < 7; ++round) {
    const double start = now();
    Team(default_pool()).run(threads(), [&](int part) { body(part); });
    best = std::max(best, work * threads() / (now() - start));
  }
  return best;
}

#if defined(__x86_64__)
// Twelve independent accumulators cover latency 4-5 at two instructions a cycle.
#define RLX_TWELVE(x) x(0) x(1) x(2) x(3) x(4) x(5) x(6) x(7) x(8) x(9) x(10) x(11)
#define RLX_FMA512(i) "vfmadd231ps %%zmm14, %%zmm15, %%zmm" #i "\n"
#define RLX_FMA256(i) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #i "\n"
#define RLX_DOT512(i) "vpdpbusd %%zmm14, %%zmm15, %%zmm" #i "\n"
#define RLX_CLOBBER                                                                                          \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm14", \
      "xmm15"
constexpr long kSteps = 3000000;

void spin_fma512() {
  asm volatile("vpxor %%xmm14, %%xmm14, %%xmm14\n vpxor %%xmm15, %%xmm15, %%xmm15\n" ::: RLX_CLOBBER);
  for (long i = 0; i < kSteps; ++i) asm volatile(RLX_TWELVE(RLX_FMA512)::: RLX_CLOBBER);
}
void spin_fma256() {
  asm volatile("vpxor %%xmm14, %%xmm14, %%xmm14\n vpxor %%xmm15, %%xmm15, %%xmm15\n" ::: RLX_CLOBBER);
  for (long i = 0; i < kSteps; ++i) asm volatile(RLX_TWELVE(RLX_FMA256)::: RLX_CLOBBER);
}
void spin_vnni() {
  for (long i = 0; i < kSteps; ++i) asm volatile(RLX_TWELVE(RLX_DOT512)::: RLX_CLOBBER);
}
#endif

Limits measure() {
  Limits l{};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    l.fma_gflops = best_rate(kSteps * 12 * 32e-9, [](int) { spin_fma512(); });
  } else if (__builtin_cpu_supports("fma")) {
    l.fma_gflops = best_rate(kSteps * 12 * 16e-9, [](int) { spin_fma256(); });
  }
  if (__builtin_cpu_supports("avx512vnni")) {
    l.vnni_gops = best_rate(kSteps * 12 * 128e-9, [](int) { spin_vnni(); });
  }
#endif
  const size_t bytes = size_t(256) << 20;
  const size_t share = bytes / size_t(threads()) / 64 * 64;
  const AlignedBytes memory[2] = {allocate_aligned(bytes), allocate_aligned(bytes)};
  auto* from = reinterpret_cast<uint64_t*>(memory[0].get());
  auto* to = reinterpret_cast<uint64_t*>(memory[1].get());
  std::memset(from, 1, bytes);
  std::memset(to, 1, bytes);
  for (int round = 0; round < 7; ++round) {
    const double start = now();
    read_once(from, bytes);
    l.read_gbs = std::max(l.read_gbs, double(bytes) * 1e-9 / (now() - start));
  }
  l.copy_gbs = best_rate(2 * double(share) * 1e-9, [&](int part) {
    const uint64_t* p = from + size_t(part) * share / 8;
    uint64_t* q = to + size_t(part) * share / 8;
#if defined(__x86_64__)
    for (size_t i = 0; i < share / 8; i += 2) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(q + i),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(p + i)));
    }
    _mm_sfence();
#else
    std::memcpy(q, p, share);
#endif
  });
  return l;
}

}  // namespace

int threads() { return default_pool().threads(); }

const Limits& limits() {
  static const Limits found = measure();
  return found;
}

void read_once(const void* data, size_t bytes) {
  const size_t share = bytes / size_t(threads()) / 64 * 64;
  std::vector<uint64_t> sinks(size_t(threads()) * 8);
  Team(default_pool()).run(threads(), [&](int part) {
    const uint64_t* p = static_cast<const uint64_t*>(data) + size_t(part) * share / 8;
    uint64_t s[8] = {};
    for (size_t i = 0; i < share / 8; i += 8) {
      for (int j = 0; j < 8; ++j) s[j] += p[i + size_t(j)];
    }
    for (int j = 0; j < 8; ++j) sinks[size_t(part) * 8] += s[j];
  });
  volatile uint64_t seen = sinks[0];  // keeps the sums
  (void)seen;
}

bool wanted(int argc, char** argv, const std::string& name) {
  bool all = true;
  for (int i = 1; i < argc; ++i) {
    all = false;
    if (name.find(argv[i]) != std::string::npos) return true;
  }
  return all;
}

std::vector<double> interleaved(const std::vector<std::function<void()>>& functions, double round_seconds,
                                int rounds) {
  std::vector<int> repeats;
  for (const auto& f : functions) {
    f();
    const double start = now();
    int done = 0;
    do f(), ++done;
    while (now() - start < round_seconds);
    repeats.push_back(done);
  }
  std::vector<std::vector<double>> times(functions.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < functions.size(); ++i) {
      // The threads of the one before may still spin (libgomp: some milliseconds) and would take our cores.
      if (functions.size() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(25));
      functions[i]();
      const double start = now();
      for (int r = 0; r < repeats[i]; ++r) functions[i]();
      times[i].push_back((now() - start) / repeats[i]);
    }
  }
  std::vector<double> medians;
  for (auto& t : times) medians.push_back(median(std::move(t)));
  return medians;
}

void report(const Result& r) {
  std::printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"", r.name.c_str(), r.value,
              r.unit.c_str());
  if (r.limit > 0) std::printf(", \"limit\": %.6g, \"share\": %.4g", r.limit, r.value / r.limit);
  if (r.peer > 0) {
    std::printf(", \"peer\": %.6g, \"peer_name\": \"%s\", \"ratio\": %.4g", r.peer, r.peer_name.c_str(),
                r.value / r.peer);
  }
  if (!r.goal.empty()) std::printf(", \"goal\": \"%s\"", r.goal.c_str());
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace rlx::bench
