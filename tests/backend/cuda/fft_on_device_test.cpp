// Fourier transforms of lengths that take one pass, several, and a chirp, in every type.
#include "tests/backend/cuda/texts.h"

namespace rlx {
namespace {

using test::TextCase;

TextCase transform(const std::string& type, const std::string& attributes) {
  return {cat("graph @f(x: ", type, ") { y = fft(x, norm=ortho", attributes, ") return y }")};
}

// Every factor alone and with others, forward and back.
std::vector<TextCase> short_lines() {
  std::vector<TextCase> out;
  for (const int n : {1, 2, 3, 4, 5, 8, 13, 16, 77, 128, 210, 1000, 1331, 4096})
    out.push_back(transform(cat("c64[3,", n, "]"), n % 2 ? "" : ", inverse=true"));
  for (const int n : {5, 60, 2048}) {
    out.push_back(transform(cat("f64[2,", 2 * n, "]"), n % 2 ? "" : ", inverse=true"));
    out.push_back(transform(cat("f32[5,", 2 * n, "]"), n % 2 ? ", inverse=true" : ""));
  }
  out.push_back(transform("f16[4,96]", ""));
  out.push_back(transform("bf16[4,96]", ", inverse=true"));
  out.push_back(transform("c64[1500,8]", ""));
  out.push_back(transform("c64[7,5,3,12]", ", inverse=true"));
  return out;
}

// Two passes, columns that do not fill a block, three passes.
std::vector<TextCase> long_lines() {
  return {transform("c64[2,8192]", ""),
          transform("c64[3,6000]", ", inverse=true"),
          transform("c64[1,10010]", ""),
          transform("f32[2,20000]", ""),
          transform("f64[1,10000]", ""),
          transform("f16[1,16384]", ""),
          transform("c64[2,28561]", ""),
          transform("c64[1,1048576]", ""),
          transform("c64[1,2097152]", ", inverse=true")};
}

// Prime factors beyond 13, over one pass and over several.
std::vector<TextCase> chirps() {
  return {transform("c64[3,17]", ""),   transform("c64[2,101]", ", inverse=true"),
          transform("f64[2,74]", ""),   transform("f32[3,2018]", ""),
          transform("c64[2,2039]", ""), transform("c64[2,4099]", ", inverse=true"),
          transform("f64[1,6002]", ""), transform("f16[2,46]", ""),
          transform("c64[1,65537]", "")};
}

std::vector<TextCase> other_axes() {
  return {
      {"graph @f(x: c64[24,40]) { a = fft(x) b = transpose(a, perm=[1,0]) c = fft(b, norm=forward) d = transpose(c, perm=[1,0]) return d }",
       {},
       1e-4}};
}

TEST(CudaFft, has_kernels_for_every_length) {
  for (const auto& cases : {short_lines(), long_lines(), chirps(), other_axes()}) test::expect_kernels(cases);
}

class FftOnDevice : public test::OnDevice {};
TEST_F(FftOnDevice, short_lines) { test::expect_same_on_device(short_lines()); }
TEST_F(FftOnDevice, long_lines) { test::expect_same_on_device(long_lines()); }
TEST_F(FftOnDevice, chirps) { test::expect_same_on_device(chirps()); }
TEST_F(FftOnDevice, other_axes) { test::expect_same_on_device(other_axes()); }

}  // namespace
}  // namespace rlx
