// Numbers encoded in blocks on the device have the bits that the host gives them, in every format that can be written.
#include "rlx/quant/format.h"
#include "tests/backend/cuda/texts.h"

namespace rlx {
namespace {

using test::TextCase;

std::vector<std::string> writable_schemes() {
  std::vector<std::string> out;
  for (const quant::BlockFormat& f : quant::formats()) {
    if (!f.is_plain() && f.encode != nullptr && f.decode != nullptr) out.push_back(cat("gguf_", f.name));
  }
  return out;
}

std::vector<TextCase> every_scheme(const std::string& operand) {
  std::vector<TextCase> out;
  for (const std::string& scheme : writable_schemes())
    out.push_back(
        {cat("graph @f(", operand, ") { y = encode_blocks(x, scheme=\"", scheme, "\") return y }")});
  return out;
}

TEST(CudaEncodeBlocks, every_format_that_can_be_written_has_a_kernel) {
  EXPECT_EQ(writable_schemes().size(), 25u);
  const cuda::Device device("sm_90a", nullptr);
  for (const TextCase& c : every_scheme("x: f32[2,256]")) {
    std::vector<passes::Remark> remarks;
    const auto program =
        backend::Builder(device, 1).build(runtime::specialise(test::graph(c.text), device, {}, remarks));
    for (const auto& s : program->plan().steps) EXPECT_EQ(s.kernel, "encode_blocks") << c.text;
  }
}

// One of each family: compiling all takes a minute.
TEST(CudaEncodeBlocks, sources_of_the_host_compile) {
  std::vector<TextCase> cases;
  for (const char* format : {"q8_0", "q3_k", "iq4_nl", "tq2_0", "nvfp4", "iq3_s"})
    cases.push_back(
        {cat("graph @f(x: bf16[2,256]) { y = encode_blocks(x, scheme=\"gguf_", format, "\") return y }")});
  test::expect_kernels(cases);
}

class EncodeBlocksOnDevice : public test::OnDevice {};

TEST_F(EncodeBlocksOnDevice, has_the_bits_of_the_host) {
  test::expect_same_on_device(every_scheme("x: f32[2,3,512]"));
}

TEST_F(EncodeBlocksOnDevice, takes_other_types_and_numbers_out_of_range) {
  for (const char* type : {"f16", "bf16", "f64"}) {
    test::expect_same_on_device(
        {{cat("graph @f(x: ", type, "[3,64]) { y = encode_blocks(x, scheme=\"gguf_q8_0\") return y }")}});
  }
  // Zeros, huge and tiny numbers beside each other, blocks of one value, and none at all.
  std::vector<float> x;
  for (const float scale : {0.0f, 1e-38f, 1e-6f, 1.0f, 1e4f, 1e30f}) {
    for (int i = 0; i < 256; ++i) x.push_back(scale * float((i * 37) % 101 - 50));
  }
  for (int i = 0; i < 256; ++i) x.push_back(-3.25f);
  const auto rows = int64_t(x.size()) / 256;
  for (const std::string& scheme : writable_schemes()) {
    SCOPED_TRACE(scheme);
    const std::string call = cat("encode_blocks(x, scheme=\"", scheme, "\") return y }");
    test::expect_as_interpreted(test::graph(cat("graph @f(x: f32[", rows, ",256]) { y = ", call)),
                                {{"x", Literal::of<float>({rows, 256}, x)}}, 0);
  }
  test::expect_same_on_device(
      {{"graph @f(x: f32[0,64]) { y = encode_blocks(x, scheme=\"gguf_q4_0\") return y }"}});
}

TEST_F(EncodeBlocksOnDevice, a_number_without_a_code_is_told) {
  std::vector<float> x(128, 1.0f);
  x[70] = std::numeric_limits<float>::infinity();
  CompiledGraph f =
      compile(test::graph("graph @f(x: f32[2,64]) { y = encode_blocks(x, scheme=\"gguf_q5_1\") return y }"),
              {}, {.device = "cuda"});
  try {
    f.run({{"x", Literal::of<float>({2, 64}, x)}});
    FAIL() << "it was encoded";
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("encode_blocks: element 70 of x is not finite; q5_1 holds finite values only"),
              std::string::npos)
        << e.message();
  }
}

}  // namespace
}  // namespace rlx
