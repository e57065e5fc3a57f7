// Complex numbers and casts between all types at sizes beyond one block.
#include <limits>

#include "tests/backend/cuda/texts.h"

namespace rlx {
namespace {

using test::TextCase;

std::vector<TextCase> elements() {
  std::vector<TextCase> out;
  for (const char* op : {"add", "sub", "mul", "div"}) {
    out.push_back({cat("graph @f(a: c64[5,1,70], b: c64[33,1]) { y = ", op, "(a, b) return y }")});
    out.push_back({cat("graph @f(a: c64[2000], b: c64[]) { y = ", op, "(b, a) return y }")});
  }
  for (const char* op :
       {"neg", "exp", "log", "sqrt", "conjugate", "complex_norm_sq", "real", "imag", "is_nan", "is_finite"})
    out.push_back({cat("graph @f(a: c64[37,29]) { y = ", op, "(a) return y }")});
  out.push_back({"graph @f(a: f32[40,1], b: f32[1,30]) { y = make_complex(a, b) return y }"});
  out.push_back({"graph @f(a: f64[40], b: f64[40]) { y = make_complex(a, b) return y }"});
  out.push_back(
      {"graph @f(a: c64[300], c: bool[300]) { t = conjugate(a) s = where(c, a, t) y = compare(a, s, kind=eq) z = compare(a, t, kind=ne) return y, z }"});
  out.push_back({"graph @f(c: bool[7,1], a: c64[1,500], b: c64[7,500]) { y = where(c, a, b) return y }"});
  out.push_back({"graph @f(a: c64[40,50]) { t = transpose(a, perm=[1,0]) y = mul(t, t) return y }"});
  return out;
}

std::vector<TextCase> along_axes() {
  std::vector<TextCase> out;
  for (const char* kind : {"sum", "mean"}) {
    for (const char* axes : {"[0]", "[1]", "[2]", "[0,2]", "[0,1,2]"})
      out.push_back(
          {cat("graph @f(x: c64[13,70,41]) { y = reduce(x, kind=", kind, ", axes=", axes, ") return y }"),
           {},
           1e-4});
  }
  for (const char* axes : {"[0]", "[1]", "[0,1]"})
    out.push_back(
        {cat("graph @f(x: c64[9,12]) { y = reduce(x, kind=prod, axes=", axes, ", keep_dim=true) return y }"),
         {},
         1e-4});
  for (const char* op : {"cumsum", "cumprod"}) {
    out.push_back({cat("graph @f(x: c64[6,30,5]) { y = ", op, "(x, axis=1) return y }"), {}, 1e-4});
    out.push_back(
        {cat("graph @f(x: c64[40]) { y = ", op, "(x, axis=0, reverse=true, exclusive=true) return y }"),
         {},
         1e-4});
  }
  out.push_back(
      {"graph @f(a: c64[3,50], b: c64[3,50]) { y = linear_recurrence(a, b, axis=1) return y }", {}, 1e-3});
  return out;
}

// From and to the formats of 8 bits, and between types that one region does not compute in.
std::vector<TextCase> casts() {
  std::vector<std::pair<std::string, std::string>> pairs = {
      {"i64", "bool"}, {"i64", "i8"},  {"i64", "u32"}, {"i64", "bf16"},   {"u32", "f16"}, {"f64", "i32"},
      {"bool", "i64"}, {"f64", "f16"}, {"i16", "c64"}, {"f8e4m3", "c64"}, {"f64", "c64"}};
  for (const char* type : {"bool", "u8", "i8", "i16", "i32", "i64", "u32", "f16", "bf16", "f32", "f64"}) {
    pairs.push_back({type, "f8e4m3"});
    pairs.push_back({"f8e5m2", type});
  }
  pairs.push_back({"f32", "f8e5m2"});
  pairs.push_back({"f8e4m3", "f8e5m2"});
  pairs.push_back({"f8e4m3", "f32"});
  std::vector<TextCase> out;
  for (const auto& [from, to] : pairs) {
    // Beyond what narrow types hold where there is room.
    const std::string fill = from == "i16" || from == "i32" || from == "i64" ? " in -9000..9000"
                             : from[0] == 'f'                                ? " in -600..600"
                                                                             : "";
    out.push_back({cat("graph @f(x: ", from, "[700]) { y = cast(x, to=", to, ") return y }"), {{"x", fill}}});
  }
  out.push_back({"graph @f(x: c64[700]) { y = cast(x, to=bool) return y }"});
  out.push_back({"graph @f(x: f64[4000]) { y = cast(x, to=f8e4m3) z = cast(x, to=f8e5m2) return y, z }"});
  return out;
}

TEST(CudaComplex, has_kernels_for_elements_sums_and_casts) {
  for (const auto& cases : {elements(), along_axes(), casts()}) test::expect_kernels(cases);
}

class ComplexOnDevice : public test::OnDevice {};
TEST_F(ComplexOnDevice, elements) { test::expect_same_on_device(elements()); }
TEST_F(ComplexOnDevice, along_axes) { test::expect_same_on_device(along_axes()); }
// Zeros of both signs, infinities and NaN in either part.
TEST_F(ComplexOnDevice, special_numbers) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> parts = {0.0f,      -0.0f,         1.0f,  -2.5f,  infinity,
                                    -infinity, std::nanf(""), 1e30f, -1e-30f};
  std::vector<float> re, im;
  for (const float x : parts) {
    for (const float y : parts) re.push_back(x), im.push_back(y);
  }
  const auto n = int64_t(re.size());
  const NamedLiterals leaves = {{"re", Literal::of<float>({n}, re)}, {"im", Literal::of<float>({n}, im)}};
  for (const char* op :
       {"exp(z)", "log(z)", "sqrt(z)", "div(z, w)", "conjugate(z)", "neg(z)", "cast(z, to=bool)"}) {
    const std::string text =
        cat("graph @f(re: f32[", n, "], im: f32[", n, "]) { z = make_complex(re, im) w = reshape(z, shape=(",
            n, ",1)) y = ", op, " return y }");
    SCOPED_TRACE(text);
    test::expect_as_interpreted(test::graph(text), leaves, 1e-5);
  }
}

class CastsOnDevice : public test::OnDevice {};
TEST_F(CastsOnDevice, between_all_types) { test::expect_same_on_device(casts()); }

}  // namespace
}  // namespace rlx
