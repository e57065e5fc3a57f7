// Sorts and running sums of long lines, what is built of them, and scatters of many updates.
#include "tests/backend/cuda/texts.h"

namespace rlx {
namespace {

using test::TextCase;

std::vector<TextCase> sorts() {
  std::vector<TextCase> out;
  for (const char* type : {"f32", "f16", "i64", "bool"}) {
    const std::string fill =
        type[0] == 'f' || type[0] == 'b' ? "" : " <50";  // many equal ones: they keep their order
    for (const char* down : {"false", "true"}) {
      out.push_back({cat("graph @f(x: ", type, "[3,5000]) { s:2 = sort(x, axis=1, descending=", down,
                         ") return s, i=s#1 }"),
                     {{"x", fill}}});
    }
    out.push_back(
        {cat("graph @f(x: ", type, "[2,2049,3]) { s:2 = sort(x, axis=1) return s, i=s#1 }"), {{"x", fill}}});
  }
  out.push_back({"graph @f(x: f32[100000]) { s:2 = sort(x, axis=0) return s, i=s#1 }"});
  out.push_back({"graph @f(x: f32[9000,3]) { s:2 = sort(x, axis=0, descending=true) return s, i=s#1 }"});
  out.push_back({"graph @f(x: f32[4,2048]) { s:2 = sort(x, axis=1) return s, i=s#1 }"});
  out.push_back({"graph @f(x: f32[2,33000]) { s:2 = top_k(x, k=40) return s, i=s#1 }"});
  out.push_back({"graph @f(x: i32[2,33000]) { s = argsort(x, axis=1) return s }", {{"x", " <9"}}});
  // NaN is above everything.
  out.push_back(
      {"graph @f(x: f32[3000]) { l = log(x) s:2 = sort(l, axis=0) t:2 = sort(l, axis=0, descending=true) return s, i=s#1, j=t#1 }"});
  return out;
}

std::vector<TextCase> scatters() {
  std::vector<TextCase> out;
  const auto add = [&](const std::string& type, const std::string& kind, const std::string& base,
                       const std::string& indices, const std::string& updates, const std::string& below,
                       int batch) {
    out.push_back({cat("graph @f(x: ", type, base, ", i: i32", indices, ", u: ", type, updates,
                       ") { y = scatter(x, i, u, kind=", kind, ", batch_dims=", batch, ") return y }"),
                   {{"i", " <" + below},
                    {"x", type[0] == 'f' || type[0] == 'b' || type[0] == 'c' ? "" : " <9"},
                    {"u", type[0] == 'f' || type[0] == 'b' || type[0] == 'c' ? "" : " <9"}},
                   1e-4});
  };
  for (const char* kind : {"set", "add", "max", "min"}) {
    add("f32", kind, "[700,3]", "[70000]", "[70000,3]", "700", 0);
    add("f32", kind, "[20]", "[70000]", "[70000]", "20", 0);
    add("i64", kind, "[2,50]", "[2,5000]", "[2,5000]", "50", 1);
    add("f16", kind, "[3,9000,2]", "[3,6000]", "[3,6000,2]", "9000", 1);
  }
  for (const char* kind : {"set", "add"}) {
    add("c64", kind, "[40,3]", "[70]", "[70,3]", "40", 0);
    add("c64", kind, "[40,3]", "[7000]", "[7000,3]", "40", 0);
    add("c64", kind, "[9,40]", "[700]", "[700,40]", "9", 0);
    add("f32", kind, "[30,64]", "[70000]", "[70000,64]", "30", 0);
  }
  out.push_back(
      {"graph @f(i: i64[9000], u: f32[9000]) { y = scatter_add(u, i, rows=10, mode=clamp) return y }",
       {{"i", " in -5..20"}},
       1e-4});
  return out;
}

std::vector<TextCase> running() {
  std::vector<TextCase> out;
  for (const char* type : {"f32", "f16", "f64", "i32", "c64"}) {
    for (const char* how : {"", ", exclusive=true", ", reverse=true", ", exclusive=true, reverse=true"})
      out.push_back(
          {cat("graph @f(x: ", type, "[3,5000]) { y = cumsum(x, axis=1", how, ") return y }"), {}, 1e-4});
    out.push_back(
        {cat("graph @f(x: ", type, "[2,300,3]) { y = cumsum(x, axis=1, reverse=true) return y }"), {}, 1e-4});
  }
  out.push_back({"graph @f(x: f64[2,2500]) { y = cumprod(x, axis=1) return y }", {{"x", " unit"}}});
  out.push_back(
      {"graph @f(x: i32[2,2500]) { y = cumprod(x, axis=1, exclusive=true) return y }", {{"x", " <3"}}});
  return out;
}

TEST(CudaOrder, has_kernels_for_long_lines_and_many_updates) {
  for (const auto& cases : {sorts(), scatters(), running()}) test::expect_kernels(cases);
}

class SortsOnDevice : public test::OnDevice {};
TEST_F(SortsOnDevice, long_lines) { test::expect_same_on_device(sorts()); }
class RunningOnDevice : public test::OnDevice {};
TEST_F(RunningOnDevice, long_lines) { test::expect_same_on_device(running()); }
class ScattersOnDevice : public test::OnDevice {};
TEST_F(ScattersOnDevice, many_updates) { test::expect_same_on_device(scatters()); }

TEST_F(ScattersOnDevice, tell_an_index_out_of_range) {
  const ir::Graph g = test::graph(
      "graph @f(x: f32[40], i: i32[9000], u: f32[9000]) { y = scatter(x, i, u, kind=add) return y }");
  CompiledGraph f = compile(g, {}, {.device = "cuda"});
  const std::string told = test::error_of([&] {
    f.run({{"x", ir::sample_literal("f32[40]", 1)},
           {"i", ir::sample_literal("i32[9000] in 40..41", 2)},
           {"u", ir::sample_literal("f32[9000]", 3)}});
  });
  EXPECT_NE(told.find("out of range; it must be at least 0 and below 40"), std::string::npos) << told;
}

}  // namespace
}  // namespace rlx
