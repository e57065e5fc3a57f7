// The blocks of the test data on a GPU: decoded to the stored numbers, bit for bit, and multiplied as they are.
#include "rlx/io/safetensors.h"
#include "rlx/ir/sample.h"
#include "rlx/quant/format.h"
#include "rlx/quant/scheme.h"
#include "tests/backend/cuda/on_device.h"
#include "tests/support/data.h"
#include "tests/support/graphs.h"

namespace rlx {
namespace {

class StoredBlocksOnDevice : public test::OnDevice {};

TEST_F(StoredBlocksOnDevice, decode_and_multiply) {
  RLX_REQUIRE_DATA("quant");
  int seen = 0;
  for (const quant::BlockFormat& f : quant::formats()) {
    const std::string path = test::data_path(cat("quant/", f.name, ".safetensors"));
    if (f.is_plain() || f.decode == nullptr || !std::filesystem::exists(path)) continue;
    SCOPED_TRACE(path);
    ++seen;
    const auto file = io::SafetensorsFile::open(path);
    const std::span<const std::byte> packed = file.tensor("packed").bytes;
    const std::vector<float> expected = io::to_f32(file.tensor("expected"));
    // Rows of `columns` numbers, as many as there are.
    const int64_t columns = std::max(f.elements, 64), bytes = columns / f.elements * f.bytes,
                  rows = int64_t(packed.size()) / bytes;
    const Literal w = Literal::copy_of(Shape(DType::u8, {rows, bytes}), packed.first(size_t(rows * bytes)));
    const std::string scheme = cat(quant::Scheme::gguf(f));
    const ir::Graph decode =
        test::graph(cat("graph @f(w: u8[", rows, ",", bytes, "]) { y = dequantize_blocks(w, scheme=\"",
                        scheme, "\", shape=(", columns, ",", rows, ")) return y }"));
    const Literal got = compile(decode, {}, {.device = "cuda"}).run({{"w", w}}).begin()->second;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c)
        ASSERT_EQ(got.real_at(c * rows + r), double(expected[size_t(r * columns + c)])) << r << ", " << c;
    }
    const Literal x = ir::sample_literal(cat("f32[3,", columns, "]"), 7);
    test::expect_as_interpreted(
        test::graph(cat("graph @f(x: f32[3,", columns, "], w: u8[", rows, ",", bytes,
                        "]) { y = dequant_matmul(x, w, scheme=\"", scheme, "\") return y }")),
        {{"x", x}, {"w", w}}, 1e-5);
  }
  EXPECT_EQ(seen, 23);  // all but f16 and bf16
}

}  // namespace
}  // namespace rlx
