// What training asks of a GPU: gradients of attention, losses over many classes, sums over columns. Plans and compilation without a GPU, values beside the
// interpreter with one.
#include <gtest/gtest.h>

#include "rlx/backend/builder.h"
#include "rlx/backend/cuda/compile/compiler.h"
#include "rlx/ops/all.h"
#include "rlx/runtime/pipeline.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/support/graphs.h"

namespace rlx::cuda {
namespace {

/// Gradients of attention [batch 2, heads, rows, lanes] by its saved values.
struct Backward {
  std::string type = "bf16";
  int64_t heads = 4, kv_heads = 2, queries = 140, keys = 150, lanes = 64, values = 64;
  std::string operand = {}, attributes = {};

  std::string text() const {
    const std::string q = cat(type, "[2,", heads, ",", queries, ",", lanes, "]"),
                      k = cat(type, "[2,", kv_heads, ",", keys, ",", lanes, "]"),
                      v = cat(type, "[2,", kv_heads, ",", keys, ",", values, "]"),
                      y = cat(type, "[2,", heads, ",", queries, ",", values, "]"),
                      row = cat("f32[2,", heads, ",", queries, "]");
    return cat("graph @f(q: ", q, ", k: ", k, ", v: ", v, ", dy: ", y, ", lse: ", row, ", delta: ", row,
               operand.empty() ? "" : cat(", m: ", operand),
               ") {\n  d:3 = attention_backward(q, k, v, dy, lse, delta", operand.empty() ? "" : ", m",
               ", num_heads=", heads, ", num_kv_heads=", kv_heads, ", layout=bhsd", attributes,
               ")\n  return dq=d, dk=d#1, dv=d#2\n}");
  }
};

std::vector<Backward> backward_cases() {
  std::vector<Backward> out;
  for (const char* type : {"bf16", "f16"}) {
    for (const int64_t lanes : {16, 64, 96, 128}) {
      out.push_back({.type = type, .lanes = lanes, .values = lanes});
      out.push_back({.type = type, .lanes = lanes, .values = lanes, .attributes = ", mask_kind=causal"});
    }
    out.push_back({.type = type, .lanes = 32, .values = 80, .attributes = ", mask_kind=causal"});
    out.push_back({.type = type, .heads = 3, .kv_heads = 1, .queries = 1, .keys = 70});
    out.push_back({.type = type,
                   .heads = 6,
                   .kv_heads = 6,
                   .queries = 200,
                   .keys = 90,
                   .attributes = ", mask_kind=causal"});
    out.push_back({.type = type, .keys = 300, .attributes = ", mask_kind=sliding_window, window=33"});
    out.push_back({.type = type, .attributes = ", attn_logit_softcap=2.0, score_scale=0.4"});
    // Long enough for blocks of more rows.
    for (const char* kind : {"", ", mask_kind=causal", ", mask_kind=sliding_window, window=100"}) {
      out.push_back({.type = type, .heads = 2, .queries = 300, .keys = 280, .attributes = kind});
      out.push_back({.type = type,
                     .heads = 4,
                     .queries = 260,
                     .keys = 400,
                     .lanes = 32,
                     .values = 48,
                     .attributes = kind});
    }
    out.push_back({.type = type,
                   .heads = 2,
                   .queries = 256,
                   .keys = 256,
                   .operand = "bool[2,256]",
                   .attributes = ", has_mask=true"});
    out.push_back({.type = type, .operand = "bool[2,150]", .attributes = ", has_mask=true"});
    out.push_back({.type = type,
                   .operand = "bool[2,1,140,150]",
                   .attributes = ", has_mask=true, mask_kind=causal, attn_logit_softcap=3.0"});
  }
  return out;
}

/// Logits in 16 bits, the loss in f32, as mixed precision has them.
std::string loss_text(const char* type, int64_t rows, int64_t classes, bool gradient) {
  return cat("graph @f(x: ", type, "[", rows, ",", classes, "], l: i32[", rows, "], d: f32[", rows,
             "]) {\n  w = ", "cast(x, to=f32)\n  y = softmax_cross_entropy_with_logits(w, l)\n",
             gradient ? cat("  g = softmax_cross_entropy_backward(w, l, d)\n  s = cast(g, to=", type,
                            ")\n  return y, s\n}")
                      : "  return y\n}");
}

backend::Plan plan_of(const Device& device, const std::string& text) {
  std::vector<passes::Remark> remarks;
  return backend::Builder(device, 1)
      .build(runtime::specialise(test::graph(text), device, {}, remarks))
      ->plan();
}

std::vector<std::string> kernels_of(const Device& device, const std::string& text) {
  std::vector<std::string> out;
  for (const auto& s : plan_of(device, text).steps) out.push_back(s.kernel);
  return out;
}

TEST(CudaTraining, gradients_of_attention_have_kernels_that_compile) {
  if (!compiler_problem().empty()) GTEST_SKIP() << compiler_problem();
  for (const char* architecture : {"sm_90a", "sm_80"}) {
    const Device device(architecture, nullptr);
    // The texts are the same: a few sizes and masks stand for the rest.
    const bool whole = architecture == std::string("sm_90a");
    for (const Backward& c : backward_cases()) {
      if (c.type != "bf16" || (!whole && c.lanes != 128)) continue;
      EXPECT_EQ(kernels_of(device, c.text()), std::vector<std::string>{"attention_backward"}) << c.text();
    }
    EXPECT_GT(device.functions().compile_waiting(), whole ? 10u : 3u);
  }
}

TEST(CudaTraining, heads_of_f32_are_taken_apart) {
  const Device device("sm_90a", nullptr);
  const auto kernels = kernels_of(device, Backward{.type = "f32"}.text());
  EXPECT_GT(kernels.size(), 3u);
  for (const std::string& k : kernels) EXPECT_NE(k, "on_host");
}

TEST(CudaTraining, a_loss_and_its_gradient_are_one_kernel) {
  const Device device("sm_90a", nullptr);
  for (const bool gradient : {false, true})
    EXPECT_EQ(kernels_of(device, loss_text("bf16", 4, 1000, gradient)),
              std::vector<std::string>{"loss_group"});
  // The gradient waits for the loss.
  const std::vector<std::string> apart =
      kernels_of(device,
                 "graph @f(x: f32[4,100], l: i32[4]) {\n  y = softmax_cross_entropy_with_logits(x, l)\n"
                 "  g = softmax_cross_entropy_backward(x, l, y)\n  return y, g\n}");
  EXPECT_EQ(apart, (std::vector<std::string>{"cross_entropy", "cross_entropy_backward"}));
  if (compiler_problem().empty()) {
    EXPECT_GT(device.functions().compile_waiting(), 3u);
  }
}

/// A norm in f32 of sums in 16 bits, its gradients and the gradient of a bias before it.
std::string norm_text(int64_t rows, int64_t width) {
  const std::string x = cat("bf16[", rows, ",", width, "]"), row = cat("f32[", width, "]");
  return cat("graph @f(x: ", x, ", r: ", x, ", g: ", row, ", b: ", row, ", dy: ", x, R"() {
  z = add(x, r) xf = cast(z, to=f32)
  y = layer_norm(xf, g, b) yb = cast(y, to=bf16)
  d = cast(dy, to=f32)
  dx = layer_norm_backward_input(xf, g, d)
  dg = layer_norm_backward_gamma(xf, d)
  db = reduce(d, kind=sum, axes=[0])
  e = add(cast(dx, to=bf16), r)
  s = reduce(e, kind=sum, axes=[0])
  return yb, e, dg, db, s, z
})");
}

/// Gradients of attention side by side, in some order.
std::string beside_text(int64_t rows, int64_t heads, int64_t lanes, const std::string& order) {
  const std::string x = cat("bf16[2,", rows, ",", heads * lanes, "]"),
                    row = cat("f32[2,", heads, ",", rows, "]");
  return cat("graph @f(q: ", x, ", k: ", x, ", v: ", x, ", dy: ", x, ", lse: ", row, ", delta: ", row,
             ") {\n  d:3 = attention_backward(q, k, v, dy, lse, delta, num_heads=", heads,
             ", mask_kind=causal)\n  c = concat(", order, ", axis=2)\n  return c\n}");
}

TEST(CudaTraining, gradients_of_attention_are_written_side_by_side) {
  const Device device("sm_90a", nullptr);
  for (const char* order : {"d, d#1, d#2", "d#2, d, d#1"})
    EXPECT_EQ(kernels_of(device, beside_text(256, 1, 64, order)),
              std::vector<std::string>{"gradients_group"});
  // A part that stands there twice.
  EXPECT_EQ(kernels_of(device, beside_text(256, 1, 64, "d, d#1, d#1")),
            (std::vector<std::string>{"attention_backward", "concat"}));
  if (compiler_problem().empty()) device.functions().compile_waiting();
}

TEST(CudaTraining, large_casts_are_made_again_and_not_kept) {
  const Device device("sm_90a", nullptr);
  const int64_t rows = 2048, width = 768;
  int wide = 0;  // f32 rows
  for (const auto& b : plan_of(device, norm_text(rows, width)).buffers)
    wide += b.kind == backend::BufferKind::activation && b.bytes == rows * width * 4 && b.last >= 0;
  EXPECT_EQ(wide, 0);  // normalised rows are made of sums in 16 bits, means and deviations
}

/// A weight that a product takes turned, as the embedding that also gives the logits: its gradient and its update.
std::string turned_text(const char* type) {
  return cat(
      "graph @f(w: f32[1100,1024], x: ", type, "[64,1024], d: ", type,
      "[64,1100]) {\n  p = matmul(transpose(x, perm=[1,0]), d) g = cast(transpose(p, perm=[1,0]), to=f32)\n"
      "  n = sub(w, mul(g, full(shape=f32[1100,1024], value=0.125)))\n  return n\n}");
}

TEST(CudaTraining, gradients_of_turned_weights_lie_as_the_weights) {
  for (const char* architecture : {"sm_90a", "sm_80"}) {
    const Device device(architecture, nullptr);
    const backend::Plan plan = plan_of(device, turned_text("bf16"));
    ASSERT_FALSE(plan.steps.empty());
    const auto& update = plan.steps.back();
    for (const auto& place : update.in)
      EXPECT_TRUE(place.shape.rank() == 0 || place.layout.is_row_major(place.shape.dims())) << plan.text();
  }
}

/// Sums over the lanes of each head of a product of two tensors in 16 bits, as the gradients of attention ask for.
std::string head_sums_text(int64_t rows, int64_t heads, int64_t lanes) {
  const std::string x = cat("bf16[2,", rows, ",", heads * lanes, "]");
  return cat("graph @f(x: ", x, ", y: ", x,
             ") {\n  a = cast(x, to=f32) b = cast(y, to=f32) p = mul(a, b)\n  r = reshape(p, shape=(2, ",
             rows, ", ", heads, ", ", lanes,
             "))\n  t = transpose(r, perm=[0,2,1,3]) s = reduce(t, kind=sum, axes=[3])\n  return s\n}");
}

TEST(CudaTraining, products_of_heads_are_summed_where_they_are_made) {
  const Device device("sm_90a", nullptr);
  EXPECT_EQ(kernels_of(device, head_sums_text(1024, 8, 64)), std::vector<std::string>{"region"});
  if (compiler_problem().empty()) device.functions().compile_waiting();
}

// One kernel reads a row once and gathers its columns: three sums over rows beside the gradient of the rows.
TEST(CudaTraining, gradients_of_a_norm_are_one_step) {
  const Device device("sm_90a", nullptr);
  const backend::Plan plan = plan_of(device, norm_text(2048, 768));
  std::vector<std::string> kernels;
  for (const auto& s : plan.steps) kernels.push_back(s.kernel);
  EXPECT_EQ(kernels, (std::vector<std::string>{"region", "sums_group"})) << plan.text();
  EXPECT_NE(plan.steps.back().note.find("3 sums over rows"), std::string::npos) << plan.text();
  for (const std::string& wrong : backend::verify_plan(plan)) ADD_FAILURE() << wrong;
  if (compiler_problem().empty()) device.functions().compile_waiting();
}

class TrainingOnDevice : public test::OnDevice {
 protected:
  // Weights and gradients of the scores are rounded to 16 bits: sums stay small beside the tolerance.
  const std::map<std::string, std::string> ranges = {
      {"q", "in -1..1"}, {"k", "in -1..1"},     {"v", "in -1..1"}, {"dy", "in -1..1"},
      {"x", "in -1..1"}, {"delta", "in -1..1"}, {"lse", "in 3..5"}};

  static NamedLiterals leaves_of(const ir::Graph& g, const std::map<std::string, std::string>& ranges) {
    NamedLiterals out;
    uint64_t seed = 11;
    for (const ir::NodeId id : g.leaves()) {
      const std::string& name = ir::leaf_name(g.node(id));
      const auto range = ranges.find(name);
      out.emplace(
          name, ir::sample_literal(
                    cat(g.node(id).shapes[0]) + (range == ranges.end() ? "" : " " + range->second), ++seed));
    }
    return out;
  }
};

TEST_F(TrainingOnDevice, gradients_of_attention) {
  for (const Backward& c : backward_cases()) {
    SCOPED_TRACE(c.text());
    const ir::Graph g = test::graph(c.text());
    NamedLiterals leaves = leaves_of(g, ranges);
    if (const auto m = leaves.find("m"); m != leaves.end()) {
      const auto bytes = m->second.mutable_bytes();
      for (size_t e = 0; e < bytes.size(); ++e) bytes[e] = std::byte(e % 7 != 3 && e % 150 < 140);
    }
    test::expect_as_interpreted(g, leaves, 1e-9);
    if (HasFailure()) return;
  }
}

TEST_F(TrainingOnDevice, gradients_of_attention_side_by_side) {
  for (const auto& [rows, lanes] : {std::pair(70, 32), {40, 24}, {256, 64}}) {
    for (const char* order : {"d, d#1, d#2", "d#2, d, d#1"}) {
      const ir::Graph g = test::graph(beside_text(rows, 2, lanes, order));
      SCOPED_TRACE(cat(g));
      test::expect_as_interpreted(g, leaves_of(g, ranges), 1e-9);
    }
  }
}

TEST_F(TrainingOnDevice, products_of_heads) {
  const ir::Graph g = test::graph(head_sums_text(1024, 8, 64));
  test::expect_as_interpreted(g, leaves_of(g, {}), 1e-9);
}

TEST_F(TrainingOnDevice, gradients_of_turned_weights) {
  for (const char* type : {"bf16", "f32"}) {
    const ir::Graph g = test::graph(turned_text(type));
    test::expect_as_interpreted(g, leaves_of(g, {}), type == std::string("f32") ? 1e-5 : 1e-9);
  }
}

TEST_F(TrainingOnDevice, values_that_are_made_again) {
  for (const int64_t width : {768, 37}) {
    const ir::Graph g = test::graph(norm_text(2048, width));
    test::expect_as_interpreted(g, leaves_of(g, {}), 1e-9);
  }
}

// Rows that many updates meet, more than a block lists, and rows that none meets.
TEST_F(TrainingOnDevice, rows_written_by_index) {
  for (const char* type : {"f32", "bf16"}) {
    const std::string row = cat(type, "[4000,40]");
    const ir::Graph g = test::graph(cat("graph @f(i: i32[4000], u: ", row, ") { z = full(shape=", type,
                                        "[50,40], value=0.0) y = scatter(z, i, u, kind=add) return y }"));
    SCOPED_TRACE(cat(g));
    for (const char* range : {"<2", "<50"})
      test::expect_as_interpreted(g, leaves_of(g, {{"i", range}}), type == std::string("f32") ? 1e-5 : 1e-9);
  }
}

// Parts side by side, numbers repeated, at even and odd places.
TEST_F(TrainingOnDevice, copies_of_runs) {
  for (const char* type : {"bf16", "f32", "u8", "f64"}) {
    for (const int64_t width : {16, 24, 7}) {
      const std::string x = cat(type, "[5,", width, "]");
      const ir::Graph g = test::graph(
          cat("graph @f(x: ", x, ", y: ", x, ", z: ", type, "[5,1]) { w = expand(z, shape=(5, ", width,
              ")) c = concat(x, w, y, axis=1) t = transpose(y, perm=[1,0]) return c, t }"));
      SCOPED_TRACE(cat(g));
      test::expect_as_interpreted(g, leaves_of(g, {}), 1e-12);
    }
  }
}

// Heads that begin at odd places have a kernel of their own.
TEST_F(TrainingOnDevice, gradients_of_attention_at_odd_places) {
  const ir::Graph g = test::graph(
      "graph @f(x: bf16[2,70,100], dy: bf16[2,70,32], lse: f32[2,2,70], delta: f32[2,2,70]) {\n"
      "  q = narrow(x, axis=2, start=1, len=32)\n  k = narrow(x, axis=2, start=33, len=32)\n"
      "  v = narrow(x, axis=2, start=66, len=32)\n"
      "  d:3 = attention_backward(q, k, v, dy, lse, delta, num_heads=2, mask_kind=causal)\n"
      "  return dq=d, dk=d#1, dv=d#2\n}");
  test::expect_as_interpreted(g, leaves_of(g, ranges), 1e-9);
}

TEST_F(TrainingOnDevice, losses_over_many_classes) {
  for (const char* type : {"f32", "bf16", "f16"}) {
    for (const int64_t classes : {7, 1000, 2052, 9001, 50304}) {
      for (const bool gradient : {false, true}) {
        const std::string text = loss_text(type, 5, classes, gradient);
        SCOPED_TRACE(text);
        const ir::Graph g = test::graph(text);
        test::expect_as_interpreted(g, leaves_of(g, {{"x", "in -9..9"}, {"l", "<7"}}), 1e-9);
      }
    }
  }
}

// More rows than blocks find room for: a block takes several, and asks for the next while it writes.
TEST_F(TrainingOnDevice, losses_of_many_rows) {
  const ir::Graph g = test::graph(loss_text("bf16", 300, 40960, true));
  test::expect_as_interpreted(g, leaves_of(g, {{"x", "in -9..9"}, {"l", "<40960"}}), 1e-9);
}

TEST_F(TrainingOnDevice, a_label_out_of_range_is_an_error) {
  const ir::Graph g = test::graph(loss_text("bf16", 3, 10, true));
  CompiledGraph f = rlx::compile(g, {}, {.device = "cuda"});
  NamedLiterals leaves = leaves_of(g, {{"l", "<10"}});
  f.run(leaves);
  const int32_t labels[3] = {1, 10, 2};
  leaves.at("l") = Literal::copy_of(parse_shape("i32[3]"), std::as_bytes(std::span(labels)));
  try {
    f.run(leaves);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(
        e.message(),
        "softmax_cross_entropy: element 1 of labels is out of range; it must be at least 0 and below 10");
  }
}

// Runs that are queued ahead of each other's results, with a state that all of them change, before and after the program is recorded.
TEST_F(TrainingOnDevice, runs_ahead) {
  const ir::Graph g = test::graph(
      "graph @g(x: f32[3000], s: f32[3000]) { n = add(s, x) y = reduce(n, kind=sum, axes=[0]) return y, n }");
  CompiledGraph f = rlx::compile(g, {}, {.device = "cuda", .states = {{"s", "n"}}});
  std::vector<float> x(3000);
  std::vector<double> got;
  const auto finish = [&] { got.push_back(f.finish()[0].as<float>()[0]); };
  for (int i = 0; i < 12; ++i) {
    std::fill(x.begin(), x.end(), float(i));
    f.start(std::vector<Input>{{"x", view(x.data(), {3000})}});
    if (i > 0) finish();
  }
  finish();
  double sum = 0;
  for (int i = 0; i < 12; ++i) EXPECT_EQ(got[size_t(i)], 3000 * (sum += i)) << i;
}

class SumsOnDevice : public TrainingOnDevice {
 protected:
  static void compare() {
    compare_numbers_of_rows();
    compare_kinds();
  }

 private:
  static void compare_numbers_of_rows();
  static void compare_kinds();
};

// Numbers of rows beside elements whose neighbours are columns: threads go along the columns.
void SumsOnDevice::compare_numbers_of_rows() {
  for (const char* type : {"f32", "bf16"}) {
    for (const int64_t rows : {70, 3000}) {
      for (const int64_t width : {96, 70}) {
        const std::string x = cat(type, "[", rows, ",", width, "]"), row = cat(type, "[", rows, ",1]");
        const ir::Graph g = test::graph(cat(
            "graph @f(x: ", x, ", z: ", x, ", a: ", row, ", b: ", row,
            ") {\n  s = mul(x, a) t = add(z, b) u = mul(s, t)\n  y = reduce(u, kind=sum, axes=[0])\n  return u, y\n}"));
        SCOPED_TRACE(cat(g));
        test::expect_as_interpreted(g, leaves_of(g, {}), type == std::string("f32") ? 1e-4 : 2e-1);
      }
    }
  }
}

// Several reductions of one pass with what follows from them, elements written beside them, one type and two, few rows and many, at even and odd places.
void SumsOnDevice::compare_kinds() {
  for (const int64_t rows : {3, 1500}) {
    for (const int64_t width : {264, 37}) {
      for (const char* type : {"f32", "bf16"}) {
        for (const int64_t start : {0, 1}) {
          const std::string x = cat(type, "[", rows, ",", width, "]");
          const ir::Graph g = test::graph(
              cat("graph @f(given: ", type, "[", rows * width + 1, "], z: f32[", rows, ",", width,
                  "], g: f32[", width, "]) {\n  part = narrow(given, axis=0, start=", start,
                  ", len=", rows * width, ") x = reshape(part, shape=(", rows, ", ", width,
                  "))\n  s = cast(x, to=f32) t = mul(s, g) v = add(t, z) w = cast(v, to=", type,
                  ")\n  a = reduce(v, kind=max, axes=[0]) b = reduce(v, kind=sum, axes=[0]) c = mul(b, g)\n"
                  "  return w, a=a, c=c\n}"));
          SCOPED_TRACE(cat(g));
          test::expect_as_interpreted(g, leaves_of(g, {}), 1e-3);
        }
      }
    }
  }
}

TEST_F(SumsOnDevice, sums_over_columns) { compare(); }
TEST_F(SumsOnDevice, sums_over_columns_by_vectors) { compare(); }

}  // namespace
}  // namespace rlx::cuda
