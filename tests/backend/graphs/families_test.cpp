// Families of kernels at sizes beyond those of the samples: threads share work, vectors have tails, caches
// have ends.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "rlx/backend/cpu/kernels/quant/quant_product.h"
#include "rlx/backend/cpu/nodes/device.h"
#include "rlx/ir/sample.h"
#include "rlx/passes/legalise.h"
#include "rlx/quant/format.h"
#include "tests/support/compare.h"
#include "tests/support/graphs.h"
#include "tests/support/run_on.h"

namespace rlx::backend {
namespace {

struct Case {
  std::string text;
  std::vector<std::string> kernels;  // in the order of the steps
  std::vector<bool> weights = {};
  double tolerance = 1e-4;
  std::vector<std::string> fills = {};  // per leaf, behind its type: "<9"
};

void expect_family(const Case& c) {
  const ir::Graph g = test::graph(c.text);
  SCOPED_TRACE(cat(g));
  const auto program = Builder(cpu::device(), 3).build(g, {.fixed = c.weights});
  std::vector<std::string> have;
  for (const Plan::Step& s : program->plan().steps) have.push_back(s.kernel);
  EXPECT_EQ(have, c.kernels) << program->plan().text();
  Literals leaves;
  for (const ir::NodeId id : g.leaves()) {
    const size_t i = leaves.size();
    const std::string fill = i < c.fills.size() ? " " + c.fills[i] : "";
    leaves.push_back(ir::sample_literal(cat(g.node(id).shapes[0], fill), 11 + i));
  }
  const Literals want = ir::interpret(g, leaves);
  for (const int threads : {1, 3}) {
    SCOPED_TRACE(cat(threads, " threads"));
    test::expect_close(test::run_on(cpu::device(), g, leaves, {.threads = threads, .fixed = c.weights}), want,
                       c.tolerance);
  }
}

TEST(Families, of_indices_pick_and_write_rows) {
  expect_family({.text = R"(graph @g(t: f32[3,50,70], i: i64[3,40]) {
    y = batched_gather(t, i, axis=1, batch_dims=1)
    return y
  })",
                 .kernels = {"batched_gather_rows"},
                 .fills = {"", "<50"}});
  expect_family({.text = R"(graph @g(t: f32[20,50,7], i: f32[20,30,7]) {
    y = take_along(t, i, axis=1)
    return y
  })",
                 .kernels = {"take_along_elements"},
                 .fills = {"", "<50"}});
  expect_family({.text = R"(graph @g(b: f32[60,70], i: u8[300], u: f32[300,70]) {
    y = scatter(b, i, u, kind=add)
    return y
  })",
                 .kernels = {"scatter_rows"},
                 .fills = {"", "<60", ""}});
  expect_family({.text = R"(graph @g(dy: f32[3,200,17], i: i32[200]) {
    y = gather_backward(dy, i, table_shape=(3,40,17), axis=1)
    return y
  })",
                 .kernels = {"gather_backward_rows"},
                 .fills = {"", "<40"}});
}

TEST(Families, of_indices_refuse_numbers_that_are_none) {
  const ir::Graph g = test::graph("graph @g(t: f32[4], i: f32[2]) { y = gather(t, i, axis=0) return y }");
  const Literal t = Literal::of<float>({4}, {1, 2, 3, 4});
  for (const float bad : {0.5f, -1.0f, 4.0f, std::nanf("")}) {
    const Literal i = Literal::of<float>({2}, {1, bad});
    EXPECT_THROW(test::run_on(cpu::device(), g, {t, i}), Error) << bad;
  }
  const Literal whole = Literal::of<float>({2}, {3, 0});
  EXPECT_EQ(test::run_on(cpu::device(), g, {t, whole})[0], Literal::of<float>({2}, {4, 1}));
}

TEST(Families, of_experts_sort_rows_and_bring_them_back) {
  const std::string text = R"(graph @moe(x: f32[90,40], w: f32[7,40,50], e: i32[90]) {
    y = grouped_matmul(x, w, e)
    return y
  })";
  expect_family({.text = text, .kernels = {"grouped_matmul_gemm"}, .fills = {"", "", "<7"}});
  expect_family({.text = text,
                 .kernels = {"grouped_matmul_gemm"},
                 .weights = {false, true, false},
                 .fills = {"", "", "<7"}});
  // Some experts have no row.
  expect_family({.text = R"(graph @outer(x: f32[60,33], y: f32[60,21], e: i64[60]) {
    w = grouped_outer(x, y, e, experts=9)
    return w
  })",
                 .kernels = {"grouped_outer_gemm"},
                 .fills = {"", "", "<5"}});
}

TEST(Families, of_contractions_join_axes_or_copy_them) {
  expect_family({.text = R"(graph @joined(a: f32[5,12,7,8], b: f32[5,7,8,30]) {
    y = dot_general(a, b, lhs_contracting=[2,3], rhs_contracting=[1,2], lhs_batch=[0], rhs_batch=[0])
    return y
  })",
                 .kernels = {"dot_general_products"}});
  expect_family({.text = R"(graph @copied(a: f32[12,7,5,8], b: f32[8,30,7,5]) {
    y = dot_general(a, b, lhs_contracting=[1,3], rhs_contracting=[2,0], lhs_batch=[2], rhs_batch=[3])
    return y
  })",
                 .kernels = {"dot_general_products"},
                 .weights = {false, true}});
}

TEST(Families, of_windows_are_transposes_of_each_other) {
  expect_family({.text = R"(graph @windows(x: f32[6,19,23]) {
    w = windows(x, kernel_size=[3,4], stride=[2,1], padding=[1,2])
    y = windows_sum(w, size=(19,23), stride=[2,1], padding=[1,2])
    return w, y
  })",
                 .kernels = {"windows_copy", "windows_sum_planes"}});
}

TEST(Families, of_matrices_have_determinants) {
  expect_family({.text = R"(graph @det(a: f64[20,17,17]) {
    d = det(a)
    s:2 = slogdet(a)
    return d, s, s#1
  })",
                 .kernels = {"det_elimination", "slogdet_elimination"},
                 .tolerance = 1e-9,
                 .fills = {"solvable"}});
}

TEST(Families, of_recurrences_run_along_any_axis) {
  for (const std::string axis : {"0", "1", "2"}) {
    expect_family(
        {.text = "graph @h(a: f32[40,30,50], b: f32[40,30,50]) { y = linear_recurrence(a, b, axis=" + axis +
                 ", reverse=true) return y }",
         .kernels = {"linear_recurrence_runs"},
         .fills = {"in -0.9..0.9", ""}});
  }
}

// The first y is b, whatever the first a is, and zeros keep their sign.
TEST(Families, of_recurrences_begin_with_b) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  for (const std::string type : {"f16", "f32", "f64"}) {
    for (const std::string reverse : {"false", "true"}) {
      const ir::Graph g =
          test::graph("graph @h(a: " + type + "[2,3], b: " + type +
                      "[2,3]) { y = linear_recurrence(a, b, axis=0, reverse=" + reverse + ") return y }");
      const Shape shape = g.node(g.leaves()[0]).shapes[0];
      const Literals leaves = {Literal::reals(shape, std::vector<double>{inf, nan, 1, inf, nan, 1}),
                               Literal::reals(shape, std::vector<double>{2, 3, -0.0, 2, 3, -0.0})};
      const Literal y = test::run_on(cpu::device(), g, leaves, {})[0];
      const int64_t first = reverse == "true" ? 3 : 0;
      EXPECT_EQ(y.real_at(first), 2) << cat(y);
      EXPECT_EQ(y.real_at(first + 1), 3) << cat(y);
      EXPECT_TRUE(std::signbit(y.real_at(first + 2))) << cat(y);
      test::expect_close(y, ir::interpret(g, leaves)[0], 0);
    }
  }
}

TEST(Families, of_integers_multiply_exactly) {
  expect_family({.text = R"(graph @ints(a: i32[9,41], b: i32[41,70]) {
    y = matmul(a, b)
    return y
  })",
                 .kernels = {"matmul_integers"},
                 .tolerance = 0});
  expect_family({.text = R"(graph @bytes(a: u8[4,30,41], b: i8[41,70]) {
    y = matmul(a, b)
    return y
  })",
                 .kernels = {"matmul_codes_i8"},
                 .weights = {false, true},
                 .tolerance = 0});
  expect_family({.text = R"(graph @both(a: u8[3,30,41], b: i8[3,41,20]) {
    y = matmul(a, b)
    return y
  })",
                 .kernels = {"matmul_integers_wide"},
                 .tolerance = 0});
}

// A product of no matrices has a place and no elements: what lies behind the place is somebody else's.
TEST(Families, of_products_write_nothing_where_there_is_no_element) {
  for (const std::string type : {"f16", "f32", "f64", "c64", "i8", "u8", "i16", "i32", "u32", "i64"}) {
    for (const std::string sizes :
         {"a: T[0,16,16], b: T[0,16,16]", "a: T[2,0,16,16], b: T[16,16]", "a: T[3,0,16], b: T[3,16,16]",
          "a: T[16,16], b: T[3,0,16,16]", "a: T[3,16,16], b: T[3,16,0]"}) {
      std::string leaves = sizes;
      for (size_t at; (at = leaves.find('T')) != std::string::npos;) leaves.replace(at, 1, type);
      const ir::Graph g = test::graph(cat("graph @g(", leaves, ") { y = matmul(a, b) return y }"));
      SCOPED_TRACE(cat(g));
      const auto program = Builder(cpu::device(), 2).build(g);
      std::vector<std::byte> in(1 << 14), out(1 << 14, std::byte(7)),
          arena(program->arena_bytes() + (1 << 14));
      std::byte* places[] = {in.data(), in.data()};
      std::byte* result = out.data();
      program->run(
          {.team = Team(default_pool(), 2), .leaves = places, .outputs = &result, .arena = arena.data()});
      EXPECT_EQ(std::count(out.begin(), out.end(), std::byte(7)), std::ptrdiff_t(out.size()));
    }
  }
}

TEST(Families, of_complex_numbers_broadcast) {
  expect_family(
      {.text = R"(graph @complex(a: c64[30,1,50], b: c64[40,50]) {
    s = add(a, b)
    m = mul(s, b)
    q = div(m, a)
    n = complex_norm_sq(q)
    return q, n
  })",
       .kernels = {"complex_binary_c64", "complex_binary_c64", "complex_binary_c64", "complex_unary_c64"},
       .tolerance = 1e-3});
}

TEST(Families, of_narrow_types_compute_in_wide_ones) {
  expect_family({.text = R"(graph @half(x: f16[2,8,20,20], w: f16[12,8,3,3]) {
    y = conv2d(x, w, kernel_size=[3,3])
    return y
  })",
                 .kernels = {"conv_wide"},
                 .weights = {false, true},
                 .tolerance = 4e-3});
  expect_family({.text = R"(graph @sum(x: bf16[40,300]) {
    y = reduce(x, kind=sum, axes=[1])
    return y
  })",
                 .kernels = {"reduce_wide"},
                 .tolerance = 2e-2});
}

// Passes must not take products of codes apart: they ask without knowing what is fixed.
TEST(Families, of_codes_stay_whole_under_passes) {
  const ir::Graph g = test::graph(R"(graph @q(x: i8[4,9], w: i8[9,5], b: i32[5]) {
    y = q_matmul(x, w, b, x_zp=3, w_zp=-2, out_zp=1, mult=0.01)
    return y
  })");
  EXPECT_EQ(cat(passes::legalise(g, cpu::device()).graph), cat(g));
  EXPECT_EQ(passes::legalise(g, cpu::device()).changes, 0u);
}

TEST(Families, that_refuse_a_composite_are_found_in_bodies_too) {
  const auto refused = [](std::string_view text) {
    return passes::legalise(test::graph(text), cpu::device()).changes > 0;
  };
  EXPECT_FALSE(refused("graph @g(x: f32[4,6], w: f32[6]) { y = rms_norm(x, w, axis=1) return y }"));
  EXPECT_TRUE(refused("graph @g(x: f32[4,6], w: f32[4]) { y = rms_norm(x, w, axis=0) return y }"));
  EXPECT_TRUE(refused(R"(graph @g(x: f32[4,6], w: f32[4]) {
    y = custom_fn(x, w, fwd_body=graph @f(a: f32[4,6], b: f32[4]) { c = rms_norm(a, b, axis=0) return c })
    return y
  })"));
}

TEST(Families, of_codes_convolve) {
  expect_family({.text = R"(graph @codes(x: i8[2,12,15,17], w: i8[20,6,3,3], b: i32[20]) {
    y = q_conv2d(x, w, b, stride=[2,1], padding=[1,2], groups=2, x_zp=3, w_zp=-2, out_zp=5, mult=0.002)
    return y
  })",
                 .kernels = {"q_conv2d_codes_i8"},
                 .weights = {false, true, false},
                 .tolerance = 0});
}

// Rows of real weights, encoded: random bytes would be infinities and NaN.
Literal encoded_weights(const quant::BlockFormat& f, int64_t n, int64_t k) {
  const Literal w = ir::sample_literal(cat(Shape(DType::f32, {n * k})), 5);
  std::vector<uint8_t> bytes(size_t(quant::encoded_bytes(f, n * k)));
  quant::encode(f, w.data<float>(), std::as_writable_bytes(std::span(bytes)));
  return Literal::of<uint8_t>({n, int64_t(bytes.size()) / n}, bytes);
}

TEST(Families, of_blocks_multiply_in_every_format) {
  const int64_t n = 37, k = 512;
  for (const quant::BlockFormat& f : quant::formats()) {
    if (f.is_plain() || f.decode == nullptr || f.encode == nullptr) continue;
    const Literal w = encoded_weights(f, n, k);
    for (const int64_t rows : {1, 5}) {
      const ir::Graph g =
          test::graph(cat("graph @q(x: f32[", rows, ",512], w: ", w.shape(),
                          ") { y = dequant_matmul(x, w, scheme=\"gguf_", f.name, "\") return y }"));
      SCOPED_TRACE(cat(g));
      const Literal x = ir::sample_literal(cat(Shape(DType::f32, {rows, k})), 6);
      const Literals want = ir::interpret(g, Literals{x, w});
      const ir::Graph parts = passes::legalise(g, cpu::device()).graph;
      for (const bool fixed : {false, true}) {
        test::expect_close(
            test::run_on(cpu::device(), fixed ? g : parts, {x, w}, {.threads = 3, .fixed = {false, fixed}}),
            want, 2e-4);
      }
    }
  }
}

TEST(Families, of_blocks_multiply_transposed_from_the_form_of_the_product) {
  const int64_t n = 37, k = 512;
  for (const quant::BlockFormat& f : quant::formats()) {
    if (f.is_plain() || f.decode == nullptr || f.encode == nullptr) continue;
    const Literal w = encoded_weights(f, n, k);
    const ir::Graph g = test::graph(
        cat("graph @q(x: f32[2,3,512], w: ", w.shape(), ") { y = dequant_matmul(x, w, scheme=\"gguf_", f.name,
            "\") z = dequant_matmul_transposed(y, w, scheme=\"gguf_", f.name, "\") return y, z }"));
    SCOPED_TRACE(cat(g));
    const Literal x = ir::sample_literal("f32[2,3,512]", 6);
    const Literals want = ir::interpret(g, Literals{x, w});
    for (const bool fixed : {false, true})
      test::expect_close(test::run_on(cpu::device(), g, {x, w}, {.threads = 3, .fixed = {false, fixed}}),
                         want, 2e-4);
    const auto program = Builder(cpu::device(), 2).build(g, {.fixed = {false, true}});
    if (cpu::QuantMatrix::kind_of(f) == nullptr) continue;
    ASSERT_EQ(program->plan().steps[1].kernel, "dequant_matmul_transposed_blocks_f32");
    EXPECT_EQ(program->packings().size(), 1u) << "one form serves both";
  }
}

TEST(Families, of_bytes_are_cast_by_a_table) {
  for (const std::string from : {"f8e4m3", "f8e5m2"}) {
    const ir::Graph g = test::graph("graph @c(x: " + from + "[256]) { y = cast(x, to=f32) return y }");
    Literal x = Literal::zeros(g.node(g.leaves()[0]).shapes[0]);
    for (size_t i = 0; i < 256; ++i) x.mutable_bytes()[i] = std::byte(i);
    test::expect_close(test::run_on(cpu::device(), g, {x}), ir::interpret(g, Literals{x}), 0);
    EXPECT_EQ(Builder(cpu::device(), 1).build(g)->plan().steps[0].kernel, "cast_bytes");
  }
}

TEST(Families, of_losses_take_rows) {
  expect_family({.text = R"(graph @loss(x: f32[33,517], t: i32[33], d: f32[33]) {
    l = softmax_cross_entropy_with_logits(x, t)
    g = softmax_cross_entropy_backward(x, t, d)
    return l, g
  })",
                 .kernels = {"cross_entropy_rows_f32", "cross_entropy_backward_rows_f32"},
                 .fills = {"", "<517", ""}});
}

TEST(Families, of_attention_read_a_cache_up_to_its_length) {
  // Keys behind the last allowed one may hold anything, NaN included.
  const ir::Graph g =
      test::graph(R"(graph @decode(q: f32[1,1,64], k: f32[1,600,32], v: f32[1,600,32], m: f32[1,600]) {
    y:2 = attention(q, k, v, m, num_heads=4, num_kv_heads=2, has_mask=true)
    return y
  })");
  Literals leaves;
  for (const ir::NodeId id : g.leaves())
    leaves.push_back(ir::sample_literal(cat(g.node(id).shapes[0]), 7 + leaves.size()));
  auto mask = leaves[3].mutable_data<float>();
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i < 333 ? 1.0f : 0.0f;
  const Literals want = ir::interpret(g, leaves);
  auto keys = leaves[1].mutable_data<float>(), values = leaves[2].mutable_data<float>();
  for (size_t i = 333 * 32; i < keys.size(); ++i) keys[i] = values[i] = std::nanf("");
  for (const int threads : {1, 3})
    test::expect_close(test::run_on(cpu::device(), g, leaves, {.threads = threads}), want, 1e-4);
}

TEST(Families, of_attention_keep_a_narrow_cache) {
  for (const std::string type : {"f16", "bf16"}) {
    expect_family({.text = "graph @decode(q: " + type + "[1,1,64], k: " + type + "[1,300,32], v: " + type +
                           "[1,300,32]) { y:2 = attention(q, k, v, num_heads=4, num_kv_heads=2) return y }",
                   .kernels = {"attention_narrow_cache"},
                   .tolerance = type == "f16" ? 4e-3 : 3e-2});
  }
}

TEST(Families, of_attention_read_keys_and_values_before_a_cast) {
  // A step of decoding: new rows enter a cache in f16, of which a part is read in f32 arithmetic.
  const std::string text =
      R"(graph @decode(q: f32[1,1,64], k: f16[1,300,32], v: f16[1,300,32], r: f32[1,1,32], s: i32[3]) {
    c = cast(r, to=f16)
    a = dynamic_update_slice(k, c, s)
    b = dynamic_update_slice(v, c, s)
    kn = narrow(a, axis=1, start=0, len=200)
    vn = narrow(b, axis=1, start=0, len=200)
    kw = cast(kn, to=f32)
    vw = cast(vn, to=f32)
    y:2 = attention(q, kw, vw, num_heads=4, num_kv_heads=2)
    return y, a, b
  })";
  expect_family({.text = text,
                 .kernels = {"region", "dynamic_update_slice_strided", "dynamic_update_slice_strided",
                             "attention_tiled_f32"},
                 .fills = {"", "", "", "", "in 0..0"}});
  // The caches are states: nothing of them is copied, as no step but those four exists.
  const ir::Graph g = test::graph(text);
  const auto program = Builder(cpu::device(), 2).build(g, {.donated = {{1, 1}, {2, 2}}});
  EXPECT_TRUE(verify_plan(program->plan()).empty());
  EXPECT_EQ(program->plan().steps.size(), 4u) << program->plan().text();
  for (const Plan::Buffer& b : program->plan().buffers) {
    if (b.kind != BufferKind::activation) continue;
    EXPECT_LT(b.bytes, 300 * 32 * 2) << program->plan().text();
  }
}

TEST(Families, of_attention_cast_what_their_kernels_do_not_take) {
  // Keys in f16 beside values in bf16.
  expect_family({.text = R"(graph @mixed(q: f32[1,2,64], k: f16[1,30,64], v: bf16[1,30,64]) {
    kw = cast(k, to=f32)
    vw = cast(v, to=f32)
    y:2 = attention(q, kw, vw, num_heads=4)
    return y
  })",
                 .kernels = {"region", "region", "attention_tiled_f32"}});
}

}  // namespace
}  // namespace rlx::backend
