#include "rlx/backend/cpu/kernels/gemm.h"
#include "rlx/base/error.h"
#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array;

void run(Team team, const Gemm& g) {
  const AlignedBytes workspace = allocate_aligned(gemm_workspace(g, team.threads()));
  gemm(team, g, workspace.get());
}

Array<int64_t> offsets_of(std::initializer_list<int64_t> sizes) {
  Array<int64_t> offsets(int64_t(sizes.size()) + 1);
  int64_t i = 0;
  for (const int64_t size : sizes) offsets[i + 1] = offsets[i] + size, ++i;
  return offsets;
}

TEST(GroupedGemm, every_group_multiplies_with_its_own_matrix) {
  test::at_every_level([](Team team) {
    for (const auto& offsets : {offsets_of({0, 5, 0, 1, 70, 2, 0}), offsets_of({300}),
                                offsets_of({1, 1, 1, 1}), offsets_of({0, 0})}) {
      const int64_t groups = offsets.size() - 1, m = offsets[groups], k = 41, n = 77;
      const Array<float> a = test::random_array(m * k, 1, -1, 1, 1),
                         b = test::random_array(groups * k * n, 2);
      const Array<float> bias = test::random_array(groups * n, 3), residual = test::random_array(m * n, 4);
      for (bool packed : {false, true}) {
        SCOPED_TRACE(testing::Message() << groups << " groups, " << m << " rows, packed " << packed);
        std::vector<PackedMatrix> matrices;
        for (int64_t i = 0; packed && i < groups; ++i) {
          matrices.push_back(
              PackedMatrix::pack(team, {b.data() + i * k * n, DType::f32, n, 1}, k, n, DType::f32));
        }
        Array<float> c(m * n);
        Gemm g{.m = m,
               .n = n,
               .k = k,
               .a = {a.data(), DType::f32, k, 1},
               .packed_b = packed ? matrices.data() : nullptr,
               .b = {b.data(), DType::f32, n, 1},
               .b_batch_stride = k * n,
               .groups = {groups, offsets.data()},
               .c = c.data(),
               .c_row_stride = n};
        g.epilogue
            .then({.kind = EpilogueKind::column_bias,
                   .data = const_cast<float*>(bias.data()),
                   .batch_stride = n})
            .then({.kind = EpilogueKind::add, .data = const_cast<float*>(residual.data()), .row_stride = n});
        run(team, g);
        for (int64_t e = 0; e < groups; ++e) {
          for (int64_t i = offsets[e]; i < offsets[e + 1]; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              double want = double(bias[e * n + j]) + double(residual[i * n + j]);
              for (int64_t l = 0; l < k; ++l) want += double(a[i * k + l]) * double(b[(e * k + l) * n + j]);
              ASSERT_NEAR(c[i * n + j], want, double(k + 2) * double(k + 4) * 0x1p-24)
                  << "group " << e << " row " << i << " column " << j;
            }
          }
        }
      }
    }
  });
}

// f16, bf16, f64 and c64 rows take the same blocks; each group must equal its own product bit for bit.
TEST(GroupedGemm, groups_equal_separate_products_in_every_dtype) {
  test::at_every_level([](Team team) {
    const Array<int64_t> offsets = offsets_of({3, 0, 17, 1});
    const int64_t groups = 4, m = offsets[groups], k = 23, n = 39;
    for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::c64}) {
      const int64_t size = int64_t(dtype_size(t));
      // Any bytes whose halves are numbers of moderate size serve all types: patterns 0x3c00 ... 0x3cff.
      Array<uint16_t> a(m * k * size / 2), b(groups * k * n * size / 2);
      for (int64_t i = 0; i < a.size(); ++i) a[i] = uint16_t(0x3c00 + i * 37 % 256);
      for (int64_t i = 0; i < b.size(); ++i) b[i] = uint16_t(0x3c00 + i * 91 % 256);
      std::vector<PackedMatrix> matrices;
      for (int64_t i = 0; i < groups; ++i) {
        matrices.push_back(PackedMatrix::pack(team, {b.data() + i * k * n * size / 2, t, n, 1}, k, n, t));
      }
      Array<uint16_t> c(m * n * size / 2), want(c.size());
      Gemm g{.m = m,
             .n = n,
             .k = k,
             .a = {a.data(), t, k, 1},
             .packed_b = matrices.data(),
             .groups = {groups, offsets.data()},
             .c = c.data(),
             .c_dtype = t,
             .c_row_stride = n};
      run(team, g);
      for (int64_t i = 0; i < groups; ++i) {
        Gemm one = g;
        one.groups = {};
        one.m = offsets[i + 1] - offsets[i];
        one.packed_b = &matrices[size_t(i)];
        one.a.data = a.data() + offsets[i] * k * size / 2;
        one.c = want.data() + offsets[i] * n * size / 2;
        run(team, one);
      }
      for (int64_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], want[i]) << dtype_name(t) << " at half " << i;
    }
  });
}

TEST(GroupedGemm, a_paired_matrix_of_each_group_gives_the_gated_product) {
  test::at_every_level([](Team team) {
    const Array<int64_t> offsets = offsets_of({2, 0, 20});
    const int64_t groups = 3, m = offsets[groups], k = 21, n = 50;
    const Array<float> a = test::random_array(m * k, 5), gate = test::random_array(groups * k * n, 6),
                       up = test::random_array(groups * k * n, 7);
    std::vector<PackedMatrix> matrices;
    for (int64_t i = 0; i < groups; ++i) {
      matrices.push_back(PackedMatrix::pack_pair(team, {gate.data() + i * k * n, DType::f32, n, 1},
                                                 {up.data() + i * k * n, DType::f32, n, 1}, k, n,
                                                 DType::f32));
    }
    Array<float> c(m * n);
    Gemm g{.m = m,
           .n = n,
           .k = k,
           .a = {a.data(), DType::f32, k, 1},
           .packed_b = matrices.data(),
           .groups = {groups, offsets.data()},
           .c = c.data(),
           .c_row_stride = n};
    g.epilogue.then({.kind = EpilogueKind::gate, .function = Unary::silu});
    run(team, g);
    for (int64_t e = 0; e < groups; ++e) {
      for (int64_t i = offsets[e]; i < offsets[e + 1]; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double x = 0, y = 0;
          for (int64_t l = 0; l < k; ++l) {
            x += double(a[i * k + l]) * double(gate[(e * k + l) * n + j]);
            y += double(a[i * k + l]) * double(up[(e * k + l) * n + j]);
          }
          ASSERT_NEAR(c[i * n + j], x / (1 + std::exp(-x)) * y, 1e-4);
        }
      }
    }
  });
}

TEST(GroupedGemm, rows_are_ordered_by_group_and_stay_in_order_within) {
  const int64_t ids[] = {2, 0, 3, 2, 2, 0};
  int64_t offsets[6], order[6];
  group_rows(ids, 6, 5, offsets, order);
  EXPECT_EQ(std::vector<int64_t>(offsets, offsets + 6), (std::vector<int64_t>{0, 2, 2, 5, 6, 6}));
  EXPECT_EQ(std::vector<int64_t>(order, order + 6), (std::vector<int64_t>{1, 5, 0, 3, 4, 2}));
  group_rows(ids, 0, 5, offsets, order);
  EXPECT_EQ(std::vector<int64_t>(offsets, offsets + 6), std::vector<int64_t>(6, 0));
  try {
    group_rows(ids, 6, 3, offsets, order);
    FAIL() << "accepted group 3 of 3";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "group_rows: row 2 chooses group 3; it must be at least 0 and below 3");
  }
}

}  // namespace
}  // namespace rlx::cpu
