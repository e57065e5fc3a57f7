// The decoders of weights with scales beside them are text for the GPU's compiler, and C++: here they run on the host and give the bits that rlx/quant gives,
// as numbers of f32 and as pairs of f16 and bf16, at whole addresses and column by column.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "rlx/base/float16.h"
#include "rlx/quant/scheme.h"
#include "tests/backend/cuda/host_prelude.h"

// What kernels give to these decoders.
namespace rlx::cuda {
namespace {

template <class T>
f32 low_of(u32 x) {
  return T::value(u16(x));
}
template <class T>
f32 high_of(u32 x) {
  return T::value(u16(x >> 16));
}
template <class T>
u32 pair(f32 low, f32 high, T) {
  return T::of(low) | u32(T::of(high)) << 16;
}
template <class T>
u32 pair_sum(u32 a, u32 b, T t) {
  return pair(low_of<T>(a) + low_of<T>(b), high_of<T>(a) + high_of<T>(b), t);
}
template <class T>
u32 pair_product(u32 a, u32 b, T t) {
  return pair(low_of<T>(a) * low_of<T>(b), high_of<T>(a) * high_of<T>(b), t);
}
// Of the product under test.
int kFeatures, kColumns, kGroup;
bool kHasZero, kWide;

}  // namespace
}  // namespace rlx::cuda

#define RLX_DEVICE_TEXT(name, ...) \
  namespace {                      \
  __VA_ARGS__                      \
  }
#include "rlx/backend/cuda/kernels/scheme_decoders.h"
#undef RLX_DEVICE_TEXT

namespace rlx::cuda {
namespace {

bool same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

struct Case {
  const char* scheme;
  bool has_zero = false;
  float unit = 1;  // what codes are held as parts of
};

// Codes are any bytes; scales of E4M3 too.
quant::SchemeWeights random_weights(const quant::Scheme& s, const Case& c, int64_t k, int64_t n,
                                    std::mt19937& random) {
  std::uniform_real_distribution<float> real(0.5f, 2.0f);
  quant::SchemeWeights w;
  w.codes.resize(size_t(quant::code_bytes(s, k, n)));
  for (std::byte& b : w.codes) b = std::byte(random());
  const auto count = size_t(quant::scale_count(s, k, n));
  if (s.scale_is_fp8()) {
    w.fp8_scale.resize(count);
    for (uint8_t& b : w.fp8_scale) b = uint8_t(random());
    w.global_scale = real(random);
  } else {
    for (size_t i = 0; i < count; ++i) w.scale.push_back(real(random));
  }
  if (s.has_zero_point()) {
    for (size_t i = 0; i < count; ++i) w.zero_point.push_back(c.has_zero ? real(random) * 6 : 8.0f);
  }
  return w;
}

template <template <int> class Codes, class Factors, int Columns>
void expect_patches(const Case& c, int k, int n) {
  SCOPED_TRACE(testing::Message() << c.scheme << " " << k << " x " << n << ", " << Columns << " columns");
  const quant::Scheme s = *quant::scheme_from_text(c.scheme);
  std::mt19937 random(uint32_t(k * n + Columns));
  const quant::SchemeWeights w = random_weights(s, c, k, n, random);
  std::vector<float> want(size_t(k * n));
  quant::decode_scheme(s, w.view(), k, n, want);
  kFeatures = k, kColumns = n, kGroup = s.block, kHasZero = c.has_zero, kWide = n % Columns == 0;
  const Weights all{reinterpret_cast<const u8*>(w.codes.data()),
                    s.scale_is_fp8() ? static_cast<const void*>(w.fp8_scale.data()) : w.scale.data(),
                    w.zero_point.data()};
  for (int k0 = 0; k0 < k; k0 += 4) {
    for (int c0 = 0; c0 < n; c0 += Columns) {
      Codes<Columns> patch;
      patch.fetch(all.codes, k0, c0);
      for (int r = 0; r < 4; ++r) {
        for (int j = 0; j < Columns && c0 + j < n; ++j) {
          const float code = patch.code(r, j);
          const u32 half = patch.codes(r / 2, j, f16{}), brain = patch.codes(r / 2, j, bf16{});
          ASSERT_TRUE(same(r % 2 ? high_of<f16>(half) : low_of<f16>(half), code)) << k0 + r << ", " << c0 + j;
          ASSERT_TRUE(same(r % 2 ? high_of<bf16>(brain) : low_of<bf16>(brain), code))
              << k0 + r << ", " << c0 + j;
          if (k0 + r >= k) {
            ASSERT_TRUE(std::isfinite(code));
            continue;
          }
          Factors f;
          f.fetch(all, k0 + r, c0);
          float weight = weight_of(code, f, j);
          if (s.block == 0) weight = weight * (w.scale[size_t(c0 + j)] * c.unit);
          if (s.scale_is_fp8()) weight = weight * (w.global_scale * c.unit);
          ASSERT_TRUE(same(weight, want[size_t((k0 + r) * n + c0 + j)]))
              << weight << " at " << k0 + r << ", " << c0 + j << ", not "
              << want[size_t((k0 + r) * n + c0 + j)];
        }
      }
    }
  }
}

template <template <int> class Codes, template <int> class Factors>
void expect_bits(const Case& c) {
  for (const auto& [k, n] : {std::pair(64, 64), {19, 17}, {6, 5}, {33, 48}}) {
    expect_patches<Codes, Factors<4>, 4>(c, k, n);
    expect_patches<Codes, Factors<8>, 8>(c, k, n);
    expect_patches<Codes, Factors<16>, 16>(c, k, n);
  }
}

template <int>
struct None : NoScales {};

TEST(SchemeDecoders, give_the_bits_of_the_schemes) {
  expect_bits<Int8, Scales>({"int8/32"});
  expect_bits<Int8, Scales>({"int8/6"});
  expect_bits<Int8, Scales>({"int8a/4", true});
  expect_bits<Int4, Scales>({"int4/32"});
  expect_bits<Int4, Scales>({"int4/2", true});
  expect_bits<E4M3, None>({"fp8e4m3", false, 256});
  expect_bits<E5M2, None>({"fp8e5m2"});
  expect_bits<E2M1, E4M3Scales>({"nvfp4/16", false, 16384});
}

}  // namespace
}  // namespace rlx::cuda
