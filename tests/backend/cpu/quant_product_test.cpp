#include "rlx/backend/cpu/kernels/quant/quant_product.h"

#include <cstring>
#include <map>

#include "rlx/backend/cpu/kernels/quant/quant_transposed.h"
#include "rlx/base/error.h"
#include "rlx/io/safetensors.h"
#include "rlx/quant/grid.h"
#include "tests/backend/cpu/support.h"
#include "tests/support/data.h"
#include "tests/support/errors.h"

namespace rlx::cpu {
namespace {

using test::Array;
using test::random_array;

constexpr const char* kFormats[] = {"q4_0",    "q4_1",   "q5_0",  "q5_1",    "q8_0",   "q2_k",
                                    "q3_k",    "q4_k",   "q5_k",  "q6_k",    "iq4_nl", "iq4_xs",
                                    "mxfp4",   "nvfp4",  "tq1_0", "tq2_0",   "iq1_s",  "iq1_m",
                                    "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s"};
constexpr const char* kCodebooks[] = {"iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s"};
constexpr const char* kSchemes[] = {"int8/32", "int8/16", "int8/40",  "int8a/64", "int8a/16",
                                    "int8a/5", "int4/32", "int4/16",  "int4/128", "int4/24",
                                    "fp8e4m3", "fp8e5m2", "nvfp4/16", "gguf_q5_1"};

// Weights [n, k] in some form, with their values in f32.
struct Weights {
  std::string name;
  int64_t n = 0, k = 0;
  const quant::BlockFormat* format = nullptr;
  std::vector<std::byte> rows;  // of the format
  quant::Scheme scheme{};
  quant::SchemeWeights operands;  // of the scheme
  std::vector<float> values;

  QuantMatrix pack(Team team) const {
    if (format) return QuantMatrix::pack(team, *format, rows.data(), n, k);
    return QuantMatrix::pack(team, scheme, operands.view(), k, n);
  }
  // Where the strip of x that holds a column begins: blocks of a scheme begin a strip of their own.
  int64_t strip_of(int64_t column) const {
    const bool aligned = format || scheme.block % 32 == 0 || scheme.block == 16;
    return aligned ? column / 32 * 32
                   : column / scheme.block * scheme.block + column % scheme.block / 32 * 32;
  }
  // Where the columns under one scale of x begin.
  int64_t run_of(int64_t column) const {
    return format && format->elements == 256 ? column / 256 * 256 : strip_of(column);
  }
};

Weights of_format(const std::string& name, int64_t n, int64_t k, uint64_t seed) {
  Weights w{name, n, k, quant::find_format(name)};
  const Array<float> source = random_array(n * k, seed);
  w.rows.resize(size_t(quant::encoded_bytes(*w.format, n * k)));
  w.values.resize(size_t(n * k));
  quant::encode(*w.format, {source.data(), size_t(n * k)}, w.rows);
  quant::decode(*w.format, w.rows, w.values);
  return w;
}

Weights of_scheme(const std::string& text, int64_t n, int64_t k, uint64_t seed) {
  Weights w{text, n, k};
  w.scheme = *quant::scheme_from_text(text);
  const Array<float> source = random_array(n * k, seed, -0.7f, 1.1f);
  w.operands = quant::encode_scheme(w.scheme, {source.data(), size_t(n * k)}, k, n);
  std::vector<float> transposed(static_cast<size_t>(n * k));
  quant::decode_scheme(w.scheme, w.operands.view(), k, n, transposed);
  w.values.resize(size_t(n * k));
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t p = 0; p < k; ++p) w.values[size_t(j * k + p)] = transposed[size_t(p * n + j)];
  }
  return w;
}

void multiply(Team team, const QuantProduct& p) {
  const size_t bytes = quant_product_workspace(p, team.threads());
  const Array<std::byte> workspace(int64_t(bytes), 0);
  quant_product(team, p, const_cast<std::byte*>(workspace.data()));
}

// x w' in double, and how far the two forms may be from it.
struct Expected {
  std::vector<double> y, rounded_bound, exact_bound;
};

// Rounding activations to 8 bits moves each by half a step at most, and the step to f16 by 2^-11: the sum over runs under one
// scale of max |x| (1 / 254 + 2^-11) * sum |w|; sums of activations are kept as f16 where blocks have a least value, which no weight
// exceeds by more than the largest. In f32, a chain of c additions and roundings of terms of total magnitude t is off
// by c 2^-24 t: c is k for the exact form and a few per strip for the rounded one, whose terms are a scale
// times a code and a least value, neither larger than a few times the largest weight.
Expected expect(const Weights& w, const float* x, int64_t x_stride, int64_t m) {
  Expected e;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < w.n; ++j) {
      double want = 0, bound = 0, magnitude = 0, sum_x = 0, largest_w = 0;
      for (int64_t first = 0; first < w.k;) {
        double top = 0, weights = 0;
        const int64_t strip = w.run_of(first);
        double sum = 0;
        for (; first < w.k && w.run_of(first) == strip; ++first) {
          const double a = double(x[i * x_stride + first]), v = double(w.values[size_t(j * w.k + first)]);
          want += a * v;
          magnitude += std::abs(a * v);
          top = std::max(top, std::abs(a));
          weights += std::abs(v);
          sum_x += std::abs(a);
          sum += a;
          largest_w = std::max(largest_w, std::abs(v));
        }
        bound += top * (1.0001 / 254 + 0x1p-11) * weights;
        if (w.name == "q4_1" || w.name == "q5_1") bound += 0x1p-10 * (std::abs(sum) + top) * largest_w;
      }
      e.y.push_back(want);
      e.exact_bound.push_back(double(w.k + 2) * 0x1p-24 * magnitude);
      e.rounded_bound.push_back(bound + double(w.k / 8 + 8) * 0x1p-24 * 4 * largest_w * sum_x);
    }
  }
  return e;
}

// Rows of x one apart from aligned and with a gap between them, rows of y with a gap that must stay.
void check(Team team, const Weights& w, const Array<float>& x, int64_t m, const Expected& e) {
  const QuantMatrix packed = w.pack(team);
  const int64_t stride = w.n + 3;
  for (const bool exact : {false, true}) {
    SCOPED_TRACE(testing::Message() << w.name << " m " << m << " n " << w.n << " k " << w.k << " exact "
                                    << exact);
    Array<float> y(m * stride, 1);
    for (int64_t i = 0; i < y.size(); ++i) y[i] = 55;
    multiply(team, {.m = m,
                    .x = x.data(),
                    .x_stride = w.k + 1,
                    .w = &packed,
                    .y = y.data(),
                    .y_stride = stride,
                    .exact = exact});
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < w.n; ++j) {
        const size_t at = size_t(i * w.n + j);
        ASSERT_NEAR(y[i * stride + j], e.y[at], exact ? e.exact_bound[at] : e.rounded_bound[at])
            << "at " << i << ", " << j;
      }
      for (int64_t j = w.n; j < stride; ++j) ASSERT_EQ(y[i * stride + j], 55);
    }
  }
}

void check_at_every_level(const Weights& w, std::initializer_list<int64_t> ms) {
  for (const int64_t m : ms) {
    const Array<float> x = random_array(m * (w.k + 1), 2, -2, 2, 1);
    const Expected e = expect(w, x.data(), w.k + 1, m);
    test::at_every_level([&](Team team) { check(team, w, x, m, e); });
  }
}

class QuantFormat : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(QuantProduct, QuantFormat, testing::ValuesIn(kFormats),
                         [](const auto& info) { return std::string(info.param); });

// The blocks of the test data, whole and cut to an odd number of blocks, so that K is no multiple of 256
// where the format allows it.
TEST_P(QuantFormat, stored_blocks_multiply_within_the_stated_bound) {
  const std::string path = std::string("quant/") + GetParam() + ".safetensors";
  RLX_REQUIRE_DATA(path);
  const io::SafetensorsFile file = io::SafetensorsFile::open(rlx::test::data_path(path));
  const std::span<const std::byte> stored = file.tensor("packed").bytes;
  const std::vector<float> values = io::to_f32(file.tensor("expected"));
  const int64_t n = 12, columns = 512;
  Weights w{GetParam(), n, columns, quant::find_format(GetParam())};
  for (const int64_t k : {columns, int64_t(w.format->elements == 256 ? 256 : 3 * w.format->elements)}) {
    w.k = k;
    w.rows.clear(), w.values.clear();
    const int64_t row_bytes = int64_t(stored.size()) / n;
    for (int64_t j = 0; j < n; ++j) {
      const auto row = stored.begin() + j * row_bytes;
      w.rows.insert(w.rows.end(), row, row + quant::encoded_bytes(*w.format, k));
      w.values.insert(w.values.end(), values.begin() + j * columns, values.begin() + j * columns + k);
    }
    check_at_every_level(w, {1, 2, 7, 64});
  }
}

TEST_P(QuantFormat, any_number_of_rows_multiplies_within_the_stated_bound) {
  const int64_t unit = quant::find_format(GetParam())->elements;
  check_at_every_level(of_format(GetParam(), 37, unit == 256 ? 512 : 11 * unit, 1), {0, 1, 3, 13});
  check_at_every_level(of_format(GetParam(), 1, unit, 3), {1, 9});
  check_at_every_level(of_format(GetParam(), 0, unit, 4), {2});
}

// Activations that are whole numbers with 127 as the largest of each strip are kept exactly, so the product
// differs from decode-then-multiply by f32 rounding only: a wrong code or scale cannot hide in the bound.
void check_eight_bits(const Weights& w) {
  Array<float> x(w.k), y(w.n);
  for (int64_t i = 0; i < w.k; ++i) {
    x[i] = w.strip_of(i) == i ? 127.0f : float(int(philox_block(4, 0, uint64_t(i))[0] % 255) - 127);
  }
  test::at_every_level([&](Team team) {
    const QuantMatrix packed = w.pack(team);
    multiply(team, {.m = 1, .x = x.data(), .x_stride = w.k, .w = &packed, .y = y.data(), .y_stride = w.n});
    for (int64_t j = 0; j < w.n; ++j) {
      double want = 0, magnitude = 0;
      for (int64_t i = 0; i < w.k; ++i) {
        want += double(x[i]) * double(w.values[size_t(j * w.k + i)]);
        magnitude += std::abs(double(x[i]) * double(w.values[size_t(j * w.k + i)]));
      }
      // The sum of a strip is kept in f16.
      const double sums = w.name == "q4_1" || w.name == "q5_1" ? 0x1p-11 : 0;
      ASSERT_NEAR(y[j], want, magnitude * (4e-6 + sums)) << w.name << " row " << j;
    }
  });
}

TEST_P(QuantFormat, product_is_exact_for_activations_of_eight_bits) {
  check_eight_bits(of_format(GetParam(), 35, 512, 3));
}

// Batches rely on it: whatever else is multiplied, a row gets the same sums.
void check_rows_alone(const Weights& w, bool exact) {
  SCOPED_TRACE(testing::Message() << w.name << " exact " << exact);
  const int64_t m = 13;
  const Array<float> x = random_array(m * w.k, 5, -2, 2);
  test::at_every_level([&](Team team) {
    const QuantMatrix packed = w.pack(team);
    Array<float> together(m * w.n), alone(w.n);
    QuantProduct p{
        .m = m, .x = x.data(), .x_stride = w.k, .w = &packed, .y = together.data(), .y_stride = w.n};
    p.exact = exact;
    multiply(team, p);
    p.m = 1, p.y = alone.data();
    for (int64_t i = 0; i < m; ++i) {
      p.x = x.data() + i * w.k;
      multiply(team, p);
      ASSERT_TRUE(std::equal(alone.data(), alone.data() + w.n, together.data() + i * w.n)) << "row " << i;
    }
  });
}

TEST_P(QuantFormat, a_row_has_the_bits_it_has_alone) {
  for (const bool exact : {false, true}) check_rows_alone(of_format(GetParam(), 45, 512, 6), exact);
}

void check_decoded(const Weights& w) {
  test::at_every_level([&](Team team) {
    const QuantMatrix packed = w.pack(team);
    std::vector<float> got(static_cast<size_t>(w.n * w.k));
    quant_decode(team, packed, got.data(), w.k);
    for (size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(got[i]) && std::isnan(w.values[i])) continue;
      ASSERT_EQ(std::memcmp(&got[i], &w.values[i], 4), 0)
          << w.name << " element " << i << ": " << got[i] << " and " << w.values[i];
    }
  });
}

void check_unpacked(const Weights& w) {
  test::at_every_level([&](Team team) {
    const QuantMatrix packed = w.pack(team);
    const int64_t row_bytes = int64_t(w.rows.size()) / w.n;
    std::vector<std::byte> row(static_cast<size_t>(row_bytes));
    for (int64_t i = 0; i < w.n; ++i) {
      packed.unpack_row(i, row.data());
      ASSERT_TRUE(std::equal(row.begin(), row.end(), w.rows.begin() + row_bytes * i))
          << w.name << " row " << i;
    }
  });
}

TEST_P(QuantFormat, packed_weights_decode_and_unpack_bit_for_bit) {
  const Weights w = of_format(GetParam(), 19, 512, 5);
  check_decoded(w);
  check_unpacked(w);
}

// y[i, p] = sum over j of x[i, j] w[j, p], from the same packed form; f32 chains of n terms.
void check_transposed(const Weights& w, int64_t m) {
  const int64_t x_stride = w.n + 3, y_stride = w.k + 5;
  const Array<float> x = random_array(m * x_stride, 8);
  std::vector<double> want(static_cast<size_t>(m * w.k)), bound(want.size());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < w.n; ++j) {
      for (int64_t p = 0; p < w.k; ++p) {
        const double term = double(x[i * x_stride + j]) * double(w.values[size_t(j * w.k + p)]);
        want[size_t(i * w.k + p)] += term;
        bound[size_t(i * w.k + p)] += std::abs(term) * double(w.n + 2) * 0x1p-24;
      }
    }
  }
  std::map<Isa, std::vector<float>> first;
  test::at_every_level([&](Team team) {
    const QuantMatrix packed = w.pack(team);
    Array<float> y(m * y_stride);
    const QuantTransposed p{.m = m,
                            .n = w.n,
                            .k = w.k,
                            .x = x.data(),
                            .x_stride = x_stride,
                            .w = &packed,
                            .y = y.data(),
                            .y_stride = y_stride};
    Array<std::byte> workspace(int64_t(quant_transposed_workspace(p, team.threads())));
    quant_transposed(team, p, workspace.data());
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t p = 0; p < w.k; ++p)
        ASSERT_NEAR(y[i * y_stride + p], want[size_t(i * w.k + p)], bound[size_t(i * w.k + p)] + 1e-30)
            << w.name << " row " << i << " column " << p;
      for (int64_t p = w.k; p < y_stride && i + 1 < m; ++p)
        ASSERT_EQ(y[i * y_stride + p], 0) << "behind a row";
    }
    const auto [it, is_new] = first.try_emplace(current_isa(), y.data(), y.data() + m * y_stride);
    ASSERT_TRUE(is_new || std::equal(it->second.begin(), it->second.end(), y.data()))
        << "threads change bits";
  });
}

TEST_P(QuantFormat, transposed_product_is_that_of_the_decoded_weights) {
  const int64_t unit = quant::find_format(GetParam())->elements;
  check_transposed(of_format(GetParam(), 37, unit == 256 ? 512 : 3 * unit, 1), 13);
  check_transposed(of_format(GetParam(), 1, unit, 3), 1);
}

// Several parts, the last one short: 64 rows are decoded together where they are long, up to 1024 where they are short.
TEST(QuantProduct, transposed_product_gathers_parts) {
  check_transposed(of_format("q4_1", 150, 32768, 2), 3);
  check_transposed(of_format("q8_0", 1300, 32, 5), 9);
}

TEST(QuantProduct, every_byte_of_four_bit_floats_decodes_bit_for_bit) {
  // Byte b of block e: all exponents and scale codes, -0, and codes no encoder writes.
  for (const char* name : {"mxfp4", "nvfp4"}) {
    Weights w{name, 256, quant::find_format(name)->elements, quant::find_format(name)};
    const int bytes = w.format->bytes, heads = bytes % 2 ? 1 : 4;
    w.rows.resize(size_t(256 * bytes));
    for (int i = 0; i < 256 * bytes; ++i) {
      const int e = i / bytes, b = i % bytes;
      w.rows[size_t(i)] = std::byte(b < heads ? e + b : 16 * (e + b) + 37 * b + 8);
    }
    w.values.resize(size_t(w.n * w.k));
    quant::decode(*w.format, w.rows, w.values);
    check_decoded(w);
  }
}

// Every point, sign and scale of a codebook, also those no encoder picks; d is finite, so that products can
// be compared.
Weights of_random_blocks(const std::string& name, int64_t n, int64_t k) {
  Weights w{name, n, k, quant::find_format(name)};
  w.rows.resize(size_t(quant::encoded_bytes(*w.format, n * k)));
  for (size_t i = 0; i < w.rows.size(); ++i) w.rows[i] = std::byte(philox_block(8, 1, i)[0] & 255);
  const quant::GridFormat& grid = *quant::find_grid_format(name);
  for (auto block = w.rows.data(); block < w.rows.data() + w.rows.size(); block += w.format->bytes) {
    quant::GridCodes codes;
    grid.take_apart(block, codes);
    codes.d = quant::Half::of_bits(codes.d.bits() & 0xbbff);
    grid.put_together(codes, block);
  }
  w.values.resize(size_t(n * k));
  quant::decode(*w.format, w.rows, w.values);
  return w;
}

TEST(QuantProduct, every_point_of_a_codebook_multiplies_and_decodes) {
  for (const char* name : kCodebooks) {
    const Weights w = of_random_blocks(name, 83, 768);
    check_decoded(w);
    check_unpacked(w);
    check_eight_bits(w);
  }
}

// Indices stay indices: packing must not give up what these formats are for.
TEST(QuantProduct, packed_codebook_weights_are_hardly_larger_than_the_file) {
  for (const char* name : kCodebooks) {
    const Weights w = of_random_blocks(name, 64, 512);
    test::at_every_level(
        [&](Team team) { EXPECT_LE(double(w.pack(team).bytes()), 1.125 * double(w.rows.size())) << name; });
  }
}

TEST(QuantProduct, every_byte_of_eight_bit_floats_decodes_bit_for_bit) {
  for (const char* text : {"fp8e4m3", "fp8e5m2"}) {
    for (const bool finite : {false, true}) {  // strips without infinities and NaN are decoded in another way
      Weights w = of_scheme(text, 4, 64, 6);
      const int largest = text[4] == '4' ? 0x7e : 0x7b;
      for (int i = 0; i < 256; ++i)
        w.operands.codes[size_t(i)] = std::byte(finite ? (i & 0x80) | std::min(i & 0x7f, largest) : i);
      std::vector<float> values(256);
      quant::decode_scheme(w.scheme, w.operands.view(), w.k, w.n, values);
      for (size_t j = 0; j < 4; ++j) {
        for (size_t p = 0; p < 64; ++p) w.values[j * 64 + p] = values[p * 4 + j];
      }
      check_decoded(w);
    }
  }
}

class QuantScheme : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(QuantProduct, QuantScheme, testing::ValuesIn(kSchemes), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
});

int64_t scheme_columns(const std::string& text, int64_t k) {
  return text.starts_with("gguf") ? k / 32 * 32 : k;
}

TEST_P(QuantScheme, multiplies_within_the_stated_bound_for_any_k) {
  check_at_every_level(of_scheme(GetParam(), 21, scheme_columns(GetParam(), 205), 7), {1, 2, 7});
  check_at_every_level(of_scheme(GetParam(), 5, scheme_columns(GetParam(), 32), 8), {3});
  if (scheme_columns(GetParam(), 1)) check_at_every_level(of_scheme(GetParam(), 18, 1, 9), {2});
}

TEST_P(QuantScheme, product_is_exact_for_activations_of_eight_bits) {
  check_eight_bits(of_scheme(GetParam(), 35, scheme_columns(GetParam(), 301), 10));
}

TEST_P(QuantScheme, a_row_has_the_bits_it_has_alone) {
  for (const bool exact : {false, true})
    check_rows_alone(of_scheme(GetParam(), 45, scheme_columns(GetParam(), 333), 6), exact);
}

TEST_P(QuantScheme, packed_weights_decode_bit_for_bit) {
  check_decoded(of_scheme(GetParam(), 19, scheme_columns(GetParam(), 333), 11));
}

TEST(QuantProduct, results_do_not_depend_on_the_number_of_threads) {
  const Weights w = of_format("q4_k", 150, 512, 12);
  const int64_t m = 37;
  const Array<float> x = random_array(m * w.k, 13);
  for (const bool exact : {false, true}) {
    std::vector<float> first;
    test::at_every_level([&](Team team) {
      const QuantMatrix packed = w.pack(team);
      std::vector<float> y(static_cast<size_t>(m * w.n));
      multiply(team, {.m = m,
                      .x = x.data(),
                      .x_stride = w.k,
                      .w = &packed,
                      .y = y.data(),
                      .y_stride = w.n,
                      .exact = exact});
      if (team.threads() == 1) first = y;
      ASSERT_EQ(std::memcmp(y.data(), first.data(), y.size() * sizeof(float)), 0);
    });
  }
}

// A row with an infinity or a NaN is NaN as a whole in the rounded form and as arithmetic has it in the exact
// one; the other rows are not touched. Activations too small to have a scale count as zero.
TEST(QuantProduct, activations_that_are_not_finite_or_tiny) {
  const Weights w = of_format("q6_k", 17, 256, 14);
  const int64_t m = 4;
  Array<float> x = random_array(m * w.k, 15);
  x[0 * w.k + 40] = INFINITY;
  x[1 * w.k + 3] = NAN;
  for (int64_t i = 0; i < w.k; ++i) x[2 * w.k + i] = 1e-42f;
  test::at_every_level([&](Team team) {
    const QuantMatrix packed = w.pack(team);
    Array<float> y(m * w.n), exact(m * w.n);
    QuantProduct p{.m = m, .x = x.data(), .x_stride = w.k, .w = &packed, .y = y.data(), .y_stride = w.n};
    multiply(team, p);
    p.y = exact.data(), p.exact = true;
    multiply(team, p);
    for (int64_t j = 0; j < w.n; ++j) {
      EXPECT_TRUE(std::isnan(y[j]) && std::isnan(y[w.n + j]) && std::isnan(exact[w.n + j]));
      EXPECT_FALSE(std::isfinite(exact[j]));
      EXPECT_EQ(y[2 * w.n + j], 0.0f);
      EXPECT_NEAR(y[3 * w.n + j], exact[3 * w.n + j], 0.3f);
      EXPECT_TRUE(std::isfinite(exact[2 * w.n + j]));
    }
  });
}

TEST(QuantProduct, no_columns_give_zeros) {
  const Weights w = of_format("q5_1", 5, 0, 16);
  test::at_every_level([&](Team team) {
    const QuantMatrix packed = w.pack(team);
    for (const bool exact : {false, true}) {
      float x = 1, y[10];
      std::fill(y, y + 10, 55.0f);
      multiply(team, {.m = 2, .x = &x, .x_stride = 0, .w = &packed, .y = y, .y_stride = 5, .exact = exact});
      for (const float v : y) EXPECT_EQ(v, 0.0f);
    }
  });
}

TEST(QuantProduct, refuses_what_it_cannot_pack) {
  Pool pool(1);
  std::vector<std::byte> data(4096);
  EXPECT_EQ(rlx::test::message_of(
                [&] { QuantMatrix::pack(pool, *quant::find_format("q4_k"), data.data(), 1, 128); }),
            "quant_product: 1 rows of 128 elements are not whole blocks of q4_k, which has 256 elements");
  EXPECT_EQ(
      rlx::test::message_of(
          [&] { QuantMatrix::pack(pool, *quant::find_format("q8_k"), data.data(), 1, 256); }),
      "quant_product: no packed product for format q8_k; it has q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, "
      "q4_k, q5_k, q6_k, iq4_nl, iq4_xs, mxfp4, nvfp4, tq1_0, tq2_0, iq1_s, iq1_m, iq2_xxs, "
      "iq2_xs, iq2_s, iq3_xxs, iq3_s");
  EXPECT_EQ(QuantMatrix::kind_of(*quant::find_format("q8_k")), nullptr);
  const Weights w = of_scheme("int8/32", 3, 40, 17);
  EXPECT_THROW(QuantMatrix::pack(pool, w.scheme, w.operands.view(), 41, 3), Error);
  const QuantMatrix packed = w.pack(pool);
  EXPECT_THROW(packed.unpack_row(0, data.data()), Error);
}

}  // namespace
}  // namespace rlx::cpu
