#include "rlx/backend/cpu/kernels/copy.h"

#include <cstring>
#include <numeric>

#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

// Permutes an array of the given sizes and compares with a walk over all indices.
void check_permutation(Team team, std::vector<int64_t> size, std::vector<int> order, int element) {
  SCOPED_TRACE(testing::Message() << "element " << element << " first axis " << order[0]);
  const int rank = int(size.size());
  int64_t count = 1;
  std::vector<int64_t> from_stride(size.size());
  for (int d = rank - 1; d >= 0; --d) from_stride[size_t(d)] = count, count *= size[size_t(d)];
  test::Array<std::byte> from(count * element, element), to(count * element + 1, 2 * element);
  for (int64_t i = 0; i < count * element; ++i) from[i] = std::byte(i * 37 % 251);
  StridedCopy c{.rank = rank, .element_bytes = element, .from = from.data(), .to = to.data()};
  int64_t stride = count;
  for (int d = 0; d < rank; ++d) {
    const size_t axis = size_t(order[size_t(d)]);
    stride /= std::max<int64_t>(1, size[axis]);
    c.size[d] = size[axis];
    c.from_stride[d] = from_stride[axis];
    c.to_stride[d] = stride;
  }
  strided_copy(team, c);
  std::vector<int64_t> index(static_cast<size_t>(rank));
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, f = 0;
    for (int d = 0; d < rank; ++d) {
      f += rest / c.to_stride[d] * c.from_stride[d];
      rest %= c.to_stride[d];
    }
    ASSERT_EQ(std::memcmp(to.data() + i * element, from.data() + f * element, size_t(element)), 0)
        << "element " << i;
  }
}

TEST(Copy, every_permutation_moves_every_element) {
  test::at_every_level([](Team team) {
    for (int element : {1, 2, 4, 8, 16}) {
      for (const std::vector<int64_t>& size :
           {std::vector<int64_t>{1, 1, 1}, {5, 3, 2}, {17, 40, 33}, {2, 130, 70}}) {
        std::vector<int> order = {0, 1, 2};
        do check_permutation(team, size, order, element);
        while (std::next_permutation(order.begin(), order.end()));
      }
    }
    check_permutation(team, {2, 3, 4, 5, 6}, {4, 1, 3, 0, 2}, 4);
    check_permutation(team, {200, 301}, {1, 0}, 4);
    check_permutation(team, {100000}, {0}, 4);
  });
}

template <class T>
void check_large_transpose(Pool& pool, int64_t rows, int64_t columns) {
  test::Array<T> from(rows * columns);
  uint64_t word = 1;
  for (int64_t i = 0; i < rows * columns; ++i) {
    word = word * 6364136223846793005 + 1;
    std::memcpy(&from[i], &word, std::min(sizeof(T), sizeof word));
  }
  const int64_t line = 64 / int64_t(sizeof(T)), whole = (rows + line - 1) / line * line;
  for (int64_t stride : {rows, whole}) {
    test::Array<T> to(columns * stride);
    strided_copy(pool, {.rank = 2,
                        .size = {rows, columns},
                        .from_stride = {columns, 1},
                        .to_stride = {1, stride},
                        .element_bytes = int(sizeof(T)),
                        .from = from.data(),
                        .to = to.data()});
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < rows; ++i) {
        ASSERT_EQ(std::memcmp(&to[j * stride + i], &from[i * columns + j], sizeof(T)), 0)
            << sizeof(T) << " bytes, stride " << stride << ", row " << i << ", column " << j;
      }
    }
  }
}

TEST(Copy, a_large_transpose_streams_past_the_caches_and_is_right) {
  Pool pool(2);
  const Isa before = current_isa();
  for (Isa isa : available_isas()) {
    use_isa(isa);
    SCOPED_TRACE(isa_name(isa));
    // More than 16 MiB each; rows and columns are no multiples of a vector.
    check_large_transpose<uint8_t>(pool, 4099, 4101);
    check_large_transpose<uint16_t>(pool, 2899, 2901);
    check_large_transpose<uint32_t>(pool, 1999, 2111);
    check_large_transpose<uint64_t>(pool, 1403, 1505);
    check_large_transpose<Bytes16>(pool, 1001, 1055);
  }
  use_isa(before);
}

TEST(Copy, slices_and_pads_leave_the_rest_alone) {
  test::at_every_level([](Team team) {
    test::Array<float> from = test::random_array(20 * 30, 1), to(12 * 50);
    for (int64_t i = 0; i < to.size(); ++i) to[i] = 9;
    strided_copy(team, {.rank = 2,
                        .size = {10, 25},
                        .from_stride = {60, 1},
                        .to_stride = {50, 2},
                        .from = from.data() + 3,
                        .to = to.data() + 51});
    for (int64_t i = 0; i < 12; ++i) {
      for (int64_t j = 0; j < 50; ++j) {
        const bool inside = i >= 1 && i <= 10 && j % 2 == 1;
        ASSERT_EQ(to[i * 50 + j], inside ? from[(i - 1) * 60 + 3 + j / 2] : 9.0f);
      }
    }
    strided_copy(team, {.rank = 2, .size = {0, 25}, .from_stride = {60, 1}, .to_stride = {50, 2}});
  });
}

// Any box of strides against a walk over all indices; `from` begins `start` elements behind its memory.
void check_strides(Team team, std::vector<int64_t> size, std::vector<int64_t> from_stride,
                   std::vector<int64_t> to_stride, int64_t start, int64_t from_count, int64_t to_count,
                   int element, int offset) {
  SCOPED_TRACE(testing::Message() << "element " << element << " offset " << offset << " rank "
                                  << size.size());
  test::Array<std::byte> from(from_count * element, offset * element),
      to(to_count * element, offset * element);
  for (int64_t i = 0; i < from.size(); ++i) from[i] = std::byte(i * 89 % 253);
  for (int64_t i = 0; i < to.size(); ++i) to[i] = std::byte(0xee);
  test::Array<std::byte> want = to;
  StridedCopy c{.rank = int(size.size()),
                .element_bytes = element,
                .from = from.data() + start * element,
                .to = to.data()};
  int64_t count = 1;
  for (size_t d = 0; d < size.size(); ++d) {
    c.size[d] = size[d], c.from_stride[d] = from_stride[d], c.to_stride[d] = to_stride[d], count *= size[d];
  }
  strided_copy(team, c);
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, f = start, t = 0;
    for (size_t d = size.size(); d-- > 0;) {
      f += rest % size[d] * from_stride[d], t += rest % size[d] * to_stride[d];
      rest /= size[d];
    }
    std::memcpy(want.data() + t * element, from.data() + f * element, size_t(element));
  }
  ASSERT_EQ(std::memcmp(to.data(), want.data(), size_t(to.size())), 0);
}

TEST(Copy, flips_broadcasts_and_steps_move_every_element_and_nothing_else) {
  test::at_every_level([](Team team) {
    for (int element : {1, 2, 4, 8, 16}) {
      for (int offset : {0, 1}) {
        // Flipped along one axis, both axes; a row and a column repeated; every third element; a middle axis.
        check_strides(team, {7, 50}, {50, -1}, {50, 1}, 49, 350, 351, element, offset);
        check_strides(team, {7, 50}, {-50, -1}, {50, 1}, 349, 350, 351, element, offset);
        check_strides(team, {300, 70}, {-70, 1}, {70, 1}, 299 * 70, 21000, 21001, element, offset);
        check_strides(team, {9, 67}, {0, 1}, {67, 1}, 0, 67, 604, element, offset);
        check_strides(team, {9, 67}, {1, 0}, {67, 1}, 0, 9, 604, element, offset);
        check_strides(team, {5, 40}, {120, 3}, {41, 1}, 1, 601, 206, element, offset);
        check_strides(team, {3, 4, 2, 6}, {48, 0, 12, -2}, {50, 12, 6, 1}, 11, 160, 150, element, offset);
        // Pairs and quadruples that move together.
        check_strides(team, {30, 20, 2}, {2, 60, 1}, {40, 2, 1}, 0, 1200, 1201, element, offset);
        check_strides(team, {30, 20, 4}, {4, 120, 1}, {80, 4, 1}, 0, 2400, 2401, element, offset);
        check_strides(team, {}, {}, {}, 0, 1, 2, element, offset);
      }
    }
  });
}

TEST(Copy, a_large_copy_streams_from_and_to_any_address) {
  Pool pool(2);
  const Isa before = current_isa();
  for (Isa isa : available_isas()) {
    use_isa(isa);
    const int64_t rows = 3000, n = 1501;  // 18 MB on each side
    test::Array<float> from(rows * n + 1, 3), to(rows * (n + 2), 1);
    for (int64_t i = 0; i < from.size(); ++i) from[i] = float(i % 1000003);
    strided_copy(pool, {.rank = 2,
                        .size = {rows, n},
                        .from_stride = {n, 1},
                        .to_stride = {n + 2, 1},
                        .from = from.data() + 1,
                        .to = to.data()});
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < n + 2; ++j) ASSERT_EQ(to[i * (n + 2) + j], j < n ? from[i * n + j + 1] : 0);
    }
  }
  use_isa(before);
}

TEST(Copy, a_fill_sets_a_box_and_leaves_the_rest) {
  test::at_every_level([](Team team) {
    test::Array<uint16_t> to(40 * 33);
    const uint16_t value = 0xabcd;
    strided_fill(team, {.rank = 2,
                        .size = {17, 9},
                        .stride = {66, 3},
                        .element_bytes = 2,
                        .value = &value,
                        .to = to.data() + 34});
    for (int64_t i = 0; i < 40; ++i) {
      for (int64_t j = 0; j < 33; ++j) {
        const bool inside = i % 2 == 1 && i <= 33 && j >= 1 && (j - 1) % 3 == 0 && (j - 1) / 3 < 9;
        ASSERT_EQ(to[i * 33 + j], inside ? value : 0) << i << " " << j;
      }
    }
  });
}

}  // namespace
}  // namespace rlx::cpu
