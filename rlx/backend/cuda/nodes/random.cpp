// Random words: Philox4x32-10, the same bits as on every other device (rlx/base/philox.h has the
// mathematics).
#include "rlx/ops/random/random.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"

namespace rlx::cuda {
namespace {

constexpr char kPhilox[] = R"cuda(
inline u32 philox_word(u64 key, u64 counter, u64 e) {
  const u64 index = e / 4;
  u32 c[4] = {u32(index), u32(index >> 32), u32(counter), u32(counter >> 32)};
  u32 k0 = u32(key), k1 = u32(key >> 32);
  #pragma unroll
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = u64(0xD2511F53u) * c[0], p1 = u64(0xCD9E8D57u) * c[2];
    const u32 d[4] = {u32(p1 >> 32) ^ c[1] ^ k0, u32(p1), u32(p0 >> 32) ^ c[3] ^ k1, u32(p0)};
    c[0] = d[0], c[1] = d[1], c[2] = d[2], c[3] = d[3];
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  const u32 part = u32(e % 4);
  return part == 0 ? c[0] : part == 1 ? c[1] : part == 2 ? c[2] : c[3];
}
)cuda";

Support accepts(const Request&) { return Support::yes(); }

// Strides of an operand against the axes of the streams, which it is broadcast to.
std::vector<int64_t> stream_strides(const Arg& x, int streams) {
  std::vector<int64_t> out(size_t(streams), 0);
  for (int d = 0; d < x.shape.rank(); ++d) {
    if (x.shape.dim(d) != Dim(1)) out[size_t(streams - x.shape.rank() + d)] = x.layout.strides[size_t(d)];
  }
  return out;
}

std::unique_ptr<Step> prepare(const Request& r) {
  const auto& a = r.node.as<ops::RandomBits>();
  const Arg& y = r.out[0];
  const int streams = y.shape.rank() - int(a.shape.size());
  int64_t each = 1;
  for (const Dim d : a.shape) each *= d.value();
  std::string body =
      cat("  const u64 key = u64(i64(keys[", offset_text(stream_strides(r.in[0], streams)), "]));\n",
          "  const u64 counter = u64(i64(counters[", offset_text(stream_strides(r.in[1], streams)), "]));\n",
          "  y[e] = philox_word(key, counter, u64(e) % ", std::max<int64_t>(each, 1), "ull);\n");
  Source s = element_kernel(
      "random_bits", sizes_of(y.shape),
      cat("const ", r.in[0].dtype(), "* keys, const ", r.in[1].dtype(), "* counters, u32* y"), body);
  s.text = kPhilox + s.text;
  return element_step(device_of(r), s, 2, 1, y.shape.elements(), "a word for each thread");
}

}  // namespace

void add_random(KernelTable& table) { table.add<ops::RandomBits>({"random_bits", accepts, prepare}); }

}  // namespace rlx::cuda
