#include "rlx/backend/cpu/kernels/index.h"

#include <cstring>

#include "rlx/base/error.h"
#include "rlx/base/float16.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;

uint32_t word(uint64_t seed, int64_t i) { return philox_block(seed, 1, uint64_t(i))[0]; }

/// i32 or i64 indices in [low, high).
struct TestIndices {
  TestIndices(int64_t n, uint64_t seed, int64_t low, int64_t high, bool wide) : narrow(n, 1), broad(n, 1) {
    for (int64_t i = 0; i < n; ++i) {
      broad[i] = low + int64_t(word(seed, i)) % (high - low);
      narrow[i] = int32_t(broad[i]);
    }
    view = wide ? Indices{broad.data(), DType::i64} : Indices{narrow.data(), DType::i32};
  }
  Array<int32_t> narrow;
  Array<int64_t> broad;
  Indices view;
};

Array<std::byte> random_bytes(int64_t n, uint64_t seed, int offset) {
  Array<std::byte> a(n, offset);
  for (int64_t i = 0; i < n; ++i) a[i] = std::byte(word(seed, i));
  return a;
}

int64_t clamped(int64_t i, int64_t size) { return std::clamp<int64_t>(i, 0, size - 1); }

TEST(Index, gather_copies_the_rows_named) {
  test::at_every_level([](Team team) {
    for (DType dtype : {DType::u8, DType::f16, DType::f32, DType::c64}) {
      const int64_t element = int64_t(dtype_size(dtype));
      for (int64_t inner : {0, 1, 2, 3, 100}) {
        for (int64_t count : {0, 1, 37}) {
          const int64_t batch = 2, outer = 3, size = 11;
          for (bool clamp : {false, true}) {
            TestIndices at(batch * count, 1, clamp ? -4 : 0, clamp ? 16 : size, clamp);
            at.view.mode = clamp ? IndexMode::clamp : IndexMode::error;
            const auto table = random_bytes(batch * outer * size * inner * element, 2, int(element));
            Array<std::byte> y(batch * outer * count * inner * element, int(element));
            gather(team, {.dtype = dtype,
                          .batch = batch,
                          .outer = outer,
                          .size = size,
                          .inner = inner,
                          .count = count,
                          .table = table.data(),
                          .indices = at.view,
                          .y = y.data()});
            const int64_t row = inner * element;
            for (int64_t line = 0; line < batch * outer * count; ++line) {
              const int64_t block = line / count, k = line % count;
              const int64_t from = block * size + clamped(at.broad[block / outer * count + k], size);
              ASSERT_EQ(std::memcmp(y.data() + line * row, table.data() + from * row, size_t(row)), 0);
            }
          }
        }
      }
    }
  });
}

TEST(Index, an_index_out_of_range_is_named_and_nothing_is_written) {
  Pool pool(2);
  const float table[] = {1, 2, 3};
  float y[] = {7, 7};
  for (int32_t bad : {-1, 3}) {
    const int32_t at[] = {1, bad};
    try {
      gather(Team(pool), {.size = 3, .count = 2, .table = table, .indices = {at}, .y = y});
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.message(),
                cat("gather: element 1 of indices is ", bad, "; it must be at least 0 and below 3"));
    }
    EXPECT_EQ(y[0], 7);
    Scatter p{.rows = 3, .count = 2, .indices = {at}, .updates = y, .y = y};
    EXPECT_THROW(scatter(Team(pool), p, nullptr), Error);
  }
  const int32_t at[] = {0};  // nothing to move an index to
  EXPECT_THROW(
      gather(Team(pool), {.count = 1, .table = table, .indices = {at, DType::i32, IndexMode::clamp}, .y = y}),
      Error);
  EXPECT_THROW(
      gather(Team(pool), {.size = 3, .count = 1, .table = table, .indices = {at, DType::u8}, .y = y}), Error);
}

TEST(Index, take_along_picks_element_by_element) {
  test::at_every_level([](Team team) {
    for (DType dtype : {DType::bool_, DType::bf16, DType::f32, DType::f64}) {
      const int64_t element = int64_t(dtype_size(dtype));
      for (int64_t inner : {1, 5, 64}) {
        const int64_t outer = 7, size = 9, count = 13;
        TestIndices at(outer * count * inner, 3, -3, 12, inner == 5);
        at.view.mode = IndexMode::clamp;
        const auto x = random_bytes(outer * size * inner * element, 4, int(element));
        Array<std::byte> y(outer * count * inner * element, int(element));
        take_along(team, {.dtype = dtype,
                          .outer = outer,
                          .size = size,
                          .inner = inner,
                          .count = count,
                          .x = x.data(),
                          .indices = at.view,
                          .y = y.data()});
        for (int64_t i = 0; i < outer * count * inner; ++i) {
          const int64_t from = (i / (count * inner) * size + clamped(at.broad[i], size)) * inner + i % inner;
          ASSERT_EQ(std::memcmp(y.data() + i * element, x.data() + from * element, size_t(element)), 0);
        }
      }
    }
  });
}

TEST(Index, embedding_widens_the_rows_named) {
  test::at_every_level([](Team team) {
    for (int64_t n : {0, 1, 16, 35, 300}) {
      for (int64_t count : {0, 1, 50}) {
        const int64_t size = 20, stride = n + 3;
        const Array<float> table = test::random_array(size * stride, 5, -2, 2, 1);
        Array<uint16_t> half(size * stride, 1), brain(size * stride, 1);
        for (int64_t i = 0; i < table.size(); ++i)
          half[i] = f32_to_f16(table[i]), brain[i] = f32_to_bf16(table[i]);
        TestIndices at(count, 6, 0, size, false);
        for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
          const void* data = dtype == DType::f32   ? static_cast<const void*>(table.data())
                             : dtype == DType::f16 ? half.data()
                                                   : brain.data();
          Array<float> y(count * n, 1);
          embedding(team, {.dtype = dtype,
                           .size = size,
                           .n = n,
                           .stride = stride,
                           .count = count,
                           .table = data,
                           .indices = at.view,
                           .y = y.data()});
          for (int64_t i = 0; i < count * n; ++i) {
            const int64_t from = at.broad[i / n] * stride + i % n;
            ASSERT_EQ(y[i], dtype == DType::f32   ? table[from]
                            : dtype == DType::f16 ? f16_to_f32(half[from])
                                                  : bf16_to_f32(brain[from]));
          }
        }
      }
    }
  });
}

template <class T>
DType type_of() {
  if (std::is_same_v<T, float>) return DType::f32;
  if (std::is_same_v<T, double>) return DType::f64;
  if (std::is_same_v<T, uint8_t>) return DType::u8;
  if (std::is_same_v<T, int8_t>) return DType::i8;
  if (std::is_same_v<T, int16_t>) return DType::i16;
  if (std::is_same_v<T, int32_t>) return DType::i32;
  if (std::is_same_v<T, uint32_t>) return DType::u32;
  return DType::i64;
}

template <class T>
T combined(ScatterKind kind, T old, T update) {
  switch (kind) {
    case ScatterKind::set:
      return update;
    case ScatterKind::add:
      if constexpr (std::is_integral_v<T>) return T(uint64_t(old) + uint64_t(update));
      return T(old + update);
    case ScatterKind::max:
      return old != old ? old : update != update ? update : std::max(old, update);
    default:
      return old != old ? old : update != update ? update : std::min(old, update);
  }
}

template <class T>
Array<T> random_numbers(int64_t n, uint64_t seed) {
  Array<T> a(n, 1);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      a[i] = i % 23 == 5 ? T(NAN) : T(uniform_from_bits(word(seed, i)) - 0.5f);
    } else {
      a[i] = T(word(seed, i));
    }
  }
  return a;
}

template <class T>
void check_scatter(Team team, ScatterKind kind, int64_t batch, int64_t rows, int64_t count, int64_t inner) {
  if (rows == 0) count = 0;
  const Array<T> base = random_numbers<T>(batch * rows * inner, 7),
                 updates = random_numbers<T>(batch * count * inner, 8);
  TestIndices at(batch * count, 9, 0, std::max<int64_t>(1, rows), count % 2 == 0);
  Array<T> y(batch * rows * inner, 1), want = base;
  Scatter p{.kind = kind,
            .dtype = type_of<T>(),
            .batch = batch,
            .rows = rows,
            .inner = inner,
            .count = count,
            .base = base.data(),
            .indices = at.view,
            .updates = updates.data(),
            .y = y.data()};
  scatter(team, p, nullptr);
  for (int64_t u = 0; u < batch * count; ++u) {
    for (int64_t i = 0; i < inner; ++i) {
      T& old = want[(u / count * rows + at.broad[u]) * inner + i];
      old = combined(kind, old, updates[u * inner + i]);
    }
  }
  test::expect_near(y.data(), want.data(), y.size(), 0);  // the order of a row's updates is fixed: exact
}

TEST(Index, scatter_applies_updates_in_order) {
  test::at_every_level([](Team team) {
    for (ScatterKind kind : {ScatterKind::set, ScatterKind::add, ScatterKind::max, ScatterKind::min}) {
      for (int64_t inner : {0, 1, 3, 70}) {
        check_scatter<float>(team, kind, 1, 6, 40, inner);
        check_scatter<double>(team, kind, 9, 4, 7, inner);
      }
      check_scatter<float>(team, kind, 1, 50, 40, 400);   // split by columns
      check_scatter<float>(team, kind, 1, 50, 20001, 1);  // split by rows
      check_scatter<float>(team, kind, 20, 5, 100, 10);   // split by batch
      check_scatter<float>(team, kind, 2, 0, 5, 3);
      check_scatter<float>(team, kind, 2, 5, 0, 3);
      check_scatter<uint8_t>(team, kind, 2, 5, 30, 17);
      check_scatter<int8_t>(team, kind, 2, 5, 30, 17);
      check_scatter<int16_t>(team, kind, 2, 5, 30, 17);
      check_scatter<int32_t>(team, kind, 2, 5, 30, 17);
      check_scatter<uint32_t>(team, kind, 2, 5, 30, 17);
      check_scatter<int64_t>(team, kind, 2, 5, 30, 17);
    }
  });
}

TEST(Index, scatter_of_narrow_floats_rounds_a_sum_once) {
  test::at_every_level([](Team team) {
    for (DType dtype : {DType::f16, DType::bf16}) {
      const auto wide = [&](uint16_t h) { return dtype == DType::f16 ? f16_to_f32(h) : bf16_to_f32(h); };
      const auto narrow = [&](float v) { return dtype == DType::f16 ? f32_to_f16(v) : f32_to_bf16(v); };
      for (int64_t inner : {1, 16, 75, 130}) {
        for (bool with_base : {false, true}) {
          const int64_t batch = 2, rows = 5, count = 60;
          const Array<float> b = test::random_array(batch * rows * inner, 10, 0, 1),
                             u = test::random_array(batch * count * inner, 11, 0, 1);
          Array<uint16_t> base(b.size(), 1), updates(u.size(), 1), y(b.size(), 1);
          for (int64_t i = 0; i < b.size(); ++i) base[i] = narrow(b[i]);
          for (int64_t i = 0; i < u.size(); ++i) updates[i] = narrow(u[i]);
          TestIndices at(batch * count, 12, 0, rows - 1, false);  // the last row gets none
          for (ScatterKind kind : {ScatterKind::add, ScatterKind::max, ScatterKind::min}) {
            Scatter p{.kind = kind,
                      .dtype = dtype,
                      .batch = batch,
                      .rows = rows,
                      .inner = inner,
                      .count = count,
                      .base = with_base ? base.data() : nullptr,
                      .indices = at.view,
                      .updates = updates.data(),
                      .y = y.data()};
            Array<std::byte> work(int64_t(scatter_workspace(p, team.threads())));
            scatter(team, p, work.data());
            std::vector<float> want(size_t(b.size()));
            for (size_t i = 0; i < want.size(); ++i) want[i] = with_base ? wide(base[int64_t(i)]) : 0;
            for (int64_t k = 0; k < batch * count; ++k) {
              for (int64_t i = 0; i < inner; ++i) {
                float& old = want[size_t((k / count * rows + at.broad[k]) * inner + i)];
                old = combined(kind, old, wide(updates[k * inner + i]));
              }
            }
            for (int64_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], narrow(want[size_t(i)])) << i;
          }
        }
      }
    }
  });
}

TEST(Index, scatter_adds_complex_numbers_and_works_in_place) {
  test::at_every_level([](Team team) {
    const int64_t rows = 4, count = 9, inner = 3;
    const Array<float> updates = test::random_array(2 * count * inner, 13);
    TestIndices at(count, 14, 0, rows, false);
    Array<float> y = test::random_array(2 * rows * inner, 15), want = y;
    Scatter p{.kind = ScatterKind::add,
              .dtype = DType::c64,
              .rows = rows,
              .inner = inner,
              .count = count,
              .base = y.data(),
              .indices = at.view,
              .updates = updates.data(),
              .y = y.data()};
    scatter(team, p, nullptr);
    for (int64_t u = 0; u < count; ++u) {
      for (int64_t i = 0; i < 2 * inner; ++i) want[at.broad[u] * 2 * inner + i] += updates[u * 2 * inner + i];
    }
    test::expect_near(y.data(), want.data(), y.size(), 0);
    p.kind = ScatterKind::max;
    EXPECT_THROW(scatter(team, p, nullptr), Error);
  });
}

}  // namespace
}  // namespace rlx::cpu
