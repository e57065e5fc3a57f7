// The emulated GPU itself: what threads do together gives what it should, and mistakes of kernels are seen and told.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "rlx/backend/cuda/device.h"
#include "tests/support/errors.h"

namespace rlx::cuda {
namespace {

class Emulated : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
    if (device().gpu()->name() != "an emulated GPU") GTEST_SKIP() << "a GPU of its own";
  }

  /// `name(const float* in, float* out)` in one block; `in` is 0, 1, 2, ..
  template <class T = float>
  std::vector<T> run(const std::string& body, int threads, size_t count, size_t shared_bytes = 0,
                     const std::string& before = "") {
    const auto f =
        device().functions().get({"tried", before + "extern \"C\" __global__ void tried(const float* in, " +
                                               std::string(std::is_same_v<T, float> ? "float" : "int") +
                                               "* out) {\n" + body + "\n}\n"});
    const backend::Memory& memory = device().memory();
    backend::Block in(memory, count * sizeof(float)), out(memory, count * sizeof(T));
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 0.0f);
    std::vector<T> results(count);
    memory.upload(in.get(), reinterpret_cast<const std::byte*>(values.data()), count * sizeof(float));
    (*f)(nullptr, Grid{}, Grid{threads}, shared_bytes, static_cast<const void*>(in.get()),
         static_cast<void*>(out.get()));
    memory.download(reinterpret_cast<std::byte*>(results.data()), out.get(), count * sizeof(T));
    return results;
  }
  std::string error_of(const std::string& body, int threads, size_t count = 64, size_t shared_bytes = 0) {
    try {
      run(body, threads, count, shared_bytes);
      return "no error";
    } catch (const Error& e) {
      return e.message();
    }
  }
};

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(Emulated, lanes_and_threads_meet) {
  const auto sums = run("const int i = threadIdx.x; out[i] = over_warp<Sum>(in[i]);", 64, 64);
  EXPECT_EQ(sums[5], 31 * 32 / 2);
  EXPECT_EQ(sums[40], 31 * 32 / 2 + 32 * 32);
  const auto votes = run<int>("out[threadIdx.x] = int(__ballot_sync(~0u, threadIdx.x % 4 == 0));", 32, 32);
  EXPECT_EQ(unsigned(votes[7]), 0x11111111u);
  const auto counts = run<int>("out[threadIdx.x] = __syncthreads_count(threadIdx.x % 3 == 0);", 96, 96);
  EXPECT_EQ(counts[95], 32);
  const auto up = run("out[threadIdx.x] = __shfl_up_sync(~0u, in[threadIdx.x], 3);", 32, 32);
  EXPECT_EQ(up[2], 2);
  EXPECT_EQ(up[31], 28);
  // Parts of a warp meet by themselves.
  const auto parts = run<int>(
      "const unsigned mask = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;\n"
      "if (threadIdx.x < 16) out[threadIdx.x] = __shfl_sync(mask, int(threadIdx.x), 3);\n"
      "else out[threadIdx.x] = __shfl_sync(mask, int(threadIdx.x), 20);",
      32, 32);
  EXPECT_EQ(parts[0], 3);
  EXPECT_EQ(parts[31], 20);
}

// The first warp that runs reads what no other has written yet.
constexpr char kNeighbour[] = "__shared__ float kept[256]; const int i = threadIdx.x; kept[i] = in[i]; ";
TEST_F(Emulated, a_missing_barrier_is_seen) {
  const auto nans = [](const std::vector<float>& x) {
    return std::count_if(x.begin(), x.end(), [](float v) { return std::isnan(v); });
  };
  EXPECT_EQ(nans(run(std::string(kNeighbour) + "__syncthreads(); out[i] = kept[(i + 128) % 256];", 256, 256)),
            0);
  EXPECT_GE(nans(run(std::string(kNeighbour) + "out[i] = kept[(i + 128) % 256];", 256, 256)), 32);
  EXPECT_EQ(nans(run(std::string(kNeighbour) + "__syncwarp(); out[i] = kept[i ^ 1];", 256, 256)), 0);
  EXPECT_EQ(nans(run(std::string(kNeighbour) + "out[i] = kept[i ^ 1];", 256, 256)), 128);
  EXPECT_EQ(nans(run("if (threadIdx.x > 3) out[threadIdx.x] = 1;", 32, 32)), 4) << "memory that nobody wrote";
}

TEST_F(Emulated, copies_on_their_way_are_waited_for) {
  const std::string copy =
      "__shared__ float kept[256]; const int i = threadIdx.x; kept[i] = -1;\n"
      "asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;\" :: \"r\"(u32(__cvta_generic_to_shared(kept + i))), \"l\"(in + i));\n"
      "asm volatile(\"cp.async.commit_group;\");\n";
  const auto came =
      run(copy + "asm volatile(\"cp.async.wait_group 0;\" ::: \"memory\"); out[i] = kept[i];", 256, 256);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(came[size_t(i)], i);
  const auto early =
      run(copy + "asm volatile(\"cp.async.wait_group 1;\" ::: \"memory\"); out[i] = kept[i];", 256, 256);
  EXPECT_GT(std::count(early.begin(), early.end(), -1.0f), 50);
}

TEST_F(Emulated, wrong_addresses_are_told) {
  const std::string behind = error_of("out[threadIdx.x] = in[threadIdx.x * 100];", 32);
  expect_part(behind, "kernel tried, block (0, 0, 0), thread (");
  expect_part(behind, "bytes behind an allocation of 272");
  expect_part(error_of("extern __shared__ float kept[]; kept[threadIdx.x] = 1;", 32, 64, 100),
              "behind the 100 bytes of shared memory");
  expect_part(
      error_of("__shared__ float kept[8]; f32 x; asm volatile(\"ld.shared.f32 %0, [%1];\" : \"=f\"(x) : "
               "\"r\"(u32(__cvta_generic_to_shared(kept)) + 4 * threadIdx.x)); out[threadIdx.x] = x;",
               32),
      "shared memory has 32 bytes of the kernel; 4 at ");
  EXPECT_EQ(error_of("out[threadIdx.x] = 1;", 32), "no error") << "the device goes on";
}

TEST_F(Emulated, threads_that_wait_for_ever_are_told) {
  const std::string text =
      error_of("if (threadIdx.x % 2) { __syncwarp(); } else { out[0] = __shfl_sync(~0u, in[0], 0); }", 32);
  expect_part(text, "threads wait for each other for ever (32)");
  expect_part(text, "thread (1, 0, 0) waits at __syncwarp for 0xffffffff");
  const std::string early =
      "__shared__ u64 word; const u32 at = u32(__cvta_generic_to_shared(&word));\n"
      "asm volatile(\"mbarrier.arrive.shared::cta.b64 _, [%0];\" :: \"r\"(at) : \"memory\");";
  expect_part(error_of(early, 32), "used before mbarrier.init");
  expect_part(
      error_of(
          "__shared__ u64 word; if (threadIdx.x == 0) asm volatile(\"mbarrier.arrive.shared::cta.b64 _, [%0];\" :: "
          "\"r\"(u32(__cvta_generic_to_shared(&word))) : \"memory\"); out[0] = 1;",
          32),
      "used before mbarrier.init");
}

TEST_F(Emulated, what_does_not_compile_is_named) {
  const auto said = [](const std::string& body) -> std::string {
    try {
      compile({"tried", "extern \"C\" __global__ void tried(u32* out) { " + body + " }"}, "sm_90a");
      return "it compiled";
    } catch (const Error& e) {
      return e.message();
    }
  };
  expect_part(
      said("u32 x; asm(\"vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;\" : \"=r\"(x) : \"r\"(1), \"r\"(2), "
           "\"r\"(3)); out[0] = x;"),
      "the PTX instruction 'vabsdiff4.u32.u32.u32.add' is not emulated");
  expect_part(said("u32 x; asm(\"mov.u32 %0, %%smid;\" : \"=r\"(x)); out[0] = x;"),
              "the PTX register '%smid' is not emulated");
  expect_part(said("out[0] = nonsense;"), "nonsense");
}

TEST_F(Emulated, rounds_to_16_bits_as_it_should) {
  const auto halves = run(
      "const f32 x[] = {65519.0f, 65520.0f, 5.9604644775390625e-08f, 2.9802322387695312e-08f, 2.98023259404e-08f, 1.00048828125f, -3.0f, 1e-4f};\n"
      "out[threadIdx.x] = as_f32(to_f16(x[threadIdx.x]));",
      8, 8);
  EXPECT_EQ(halves, (std::vector<float>{65504.0f, INFINITY, 5.9604644775390625e-08f, 0.0f,
                                        5.9604644775390625e-08f, 1.0f, -3.0f, 1.00016593933e-4f}));
}

// c = a b with a[i][k] = i + k / 4, b[k][j] = j - k of tf32 and of bytes: depths of one register and of several.
constexpr char kTf32[] = R"cuda(
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  const auto a = [](int i, int k) { return u32(__float_as_int(i + k / 4.0f)); };
  const auto b = [](int k, int j) { return u32(__float_as_int(f32(j - k))); };
  f32 c[4] = {1, 1, 1, 1};
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a(g, t)), "r"(a(g + 8, t)), "r"(a(g, t + 4)), "r"(a(g + 8, t + 4)), "r"(b(t, g)), "r"(b(t + 4, g)));
  for (int e = 0; e < 4; ++e) out[(g + e / 2 * 8) * 8 + t * 2 + e % 2] = c[e];
)cuda";
TEST_F(Emulated, matrix_units_multiply) {
  const auto c = run(kTf32, 32, 128);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 8; ++j) {
      float want = 1;
      for (int k = 0; k < 8; ++k) want += (float(i) + float(k) / 4) * float(j - k);
      EXPECT_EQ(c[size_t(i * 8 + j)], want) << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace rlx::cuda
