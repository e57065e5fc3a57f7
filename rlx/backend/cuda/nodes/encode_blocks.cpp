// Numbers to packed blocks: a thread for each block runs the encoder of rlx/quant, so that the bits are the host's.
#include "rlx/ops/quant/encode_blocks.h"

#include <algorithm>
#include <span>

#include "rlx/backend/cuda/fault.h"
#include "rlx/backend/cuda/kernels/casts.h"
#include "rlx/backend/cuda/kernels/complex.h"
#include "rlx/backend/cuda/kernels/host_words.h"
#include "rlx/backend/cuda/kernels/room_sources.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/quant/grid.h"
#include "rlx/quant/scheme.h"

namespace rlx::cuda {
namespace {

/// Formats whose encoders stand in one source. Those with a search take weights, which nobody has here.
struct Family {
  std::string_view source;
  bool searches;
  std::initializer_list<std::string_view> names;
};
const Family kFamilies[] = {
    {"linear32", true, {"q4_0", "q4_1", "q5_0", "q5_1"}},
    {"linear32", false, {"q8_0", "q8_1"}},
    {"k_quants", true, {"q2_k", "q3_k", "q4_k", "q5_k", "q6_k"}},
    {"k_quants", false, {"q8_k"}},
    {"iq4", true, {"iq4_nl", "iq4_xs"}},
    {"ternary", true, {"tq1_0", "tq2_0"}},
    {"fp4", true, {"mxfp4", "nvfp4"}},
};

std::string sources(std::initializer_list<std::string_view> names) {
  std::string text = cat(kHostWords, room_source("rlx/base/float16.h"), room_source("rlx/quant/half.h"));
  for (const std::string_view name : names) text += room_source(cat("rlx/quant/", name));
  return text + "using namespace rlx::quant;\n";
}

/// kIq2Xxs for iq2_xxs: how rlx/quant/grid.cpp calls a format.
std::string grid_name(std::string_view name) {
  std::string out = "k";
  bool first = true;
  for (const char c : name) {
    if (c != '_') out += first && c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
    first = c == '_';
  }
  return out;
}

/// The text of encode(x, y), one block; nothing for a format without an encoder here.
std::string encoder_text(const quant::BlockFormat& f) {
  constexpr std::string_view kHead = "inline void encode(const f32* x, std::byte* y) { ";
  if (const quant::GridFormat* grid = quant::find_grid_format(f.name)) {
    std::string text = sources({"fit.h", "grid_points.h", "grid.h", "grid.cpp", "grid_encode.h"});
    text += "__device__ const u16 candidates[] = {";
    for (const uint16_t c : quant::grid_candidates(*grid)) text += cat(c, ",");
    return cat(text, "};\n", kHead, "const GridBook book(", grid_name(f.name),
               ", candidates); GridEncoder(book).encode(x, nullptr, y); }\n");
  }
  for (const Family& family : kFamilies) {
    if (std::find(family.names.begin(), family.names.end(), f.name) == family.names.end()) continue;
    const std::string header = cat(family.source, ".h"),
                      code = cat(family.source, family.source == "k_quants" ? "_encode.cpp" : ".cpp");
    return cat(sources({"fit.h", "fit.cpp", "blocks.h", header, code}), kHead, "encode_", f.name, "(x, ",
               family.searches ? "nullptr, " : "", "y, ", f.elements, "); }\n");
  }
  return {};
}

const quant::BlockFormat& format_of(const Request& r) {
  return *quant::scheme_from_text(r.node.as<ops::EncodeBlocks>().scheme)->format;
}

Support accepts(const Request& r) {
  if (!r.in[0].is_row_major()) return Support::no("operand 0 is strided");
  if (encoder_text(format_of(r)).empty()) return Support::no("no encoder of ", format_of(r).name);
  return Support::yes();
}

constexpr int kThreads = 64;     // a block of 256 numbers is 1 KB of the first cache for each
constexpr int kMostShared = 64;  // numbers of blocks that go through shared memory

// A thread has its numbers by itself: in memory of its own, which the lanes of a warp share lines of.
constexpr char kApart[] = R"cuda(
extern "C" __global__ void __launch_bounds__(kThreads) encode_blocks(const T* x, std::byte* y, i64 blocks, u64* fault, u64 number) {
  const i64 b = i64(blockIdx.x) * kThreads + threadIdx.x;
  if (b >= blocks) return;
  x += b * kElements;
  f32 v[kElements];
  for (int i = 0; i < kElements; ++i) {
    v[i] = f32(as_f64(x[i]));
    if (!std::isfinite(v[i])) {
      *fault = (number << 40) + u64(b * kElements + i);
      return;
    }
  }
  encode(v, y + b * kBytes);
}
)cuda";

// Short blocks are read and written together, so that neighbours in memory are neighbouring lanes; a row of numbers has one more, so that lanes meet different banks.
constexpr char kTogether[] = R"cuda(
extern "C" __global__ void __launch_bounds__(kThreads) encode_blocks(const T* x, std::byte* y, i64 blocks, u64* fault, u64 number) {
  __shared__ f32 numbers[kThreads][kElements + 1];
  __shared__ u32 bytes[kThreads * kBytes / 4];
  const i64 b0 = i64(blockIdx.x) * kThreads, left = blocks - b0;
  const int count = left < kThreads ? int(left) : kThreads;
  for (int e = threadIdx.x; e < count * kElements; e += kThreads)
    numbers[e / kElements][e % kElements] = f32(as_f64(x[b0 * kElements + e]));
  __syncthreads();
  const f32* const mine = numbers[threadIdx.x];
  bool finite = int(threadIdx.x) < count;
  for (int i = 0; i < kElements && finite; ++i) {
    finite = std::isfinite(mine[i]);
    if (!finite) *fault = (number << 40) + u64((b0 + threadIdx.x) * kElements + i);
  }
  if (finite) encode(mine, reinterpret_cast<std::byte*>(bytes) + threadIdx.x * kBytes);
  __syncthreads();
  y += b0 * kBytes;
  const int whole = reinterpret_cast<u64>(y) % 4 == 0 ? count * kBytes / 4 : 0;
  for (int e = threadIdx.x; e < whole; e += kThreads) reinterpret_cast<u32*>(y)[e] = bytes[e];
  for (int e = 4 * whole + threadIdx.x; e < count * kBytes; e += kThreads) y[e] = reinterpret_cast<const std::byte*>(bytes)[e];
}
)cuda";

std::unique_ptr<Step> prepare(const Request& r) {
  const quant::BlockFormat& f = format_of(r);
  const Arg& x = r.in[0];
  const int64_t blocks = x.shape.elements() / f.elements;
  if (blocks == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  const FunctionRef kernel = device_of(r).functions().get(
      {"encode_blocks", cat(kComplexNumbers, kCasts, encoder_text(f), "typedef ", dtype_name(x.dtype()),
                            " T;\nconstexpr int kThreads = ", kThreads, ", kElements = ", f.elements,
                            ", kBytes = ", f.bytes, ";\n", f.elements <= kMostShared ? kTogether : kApart)});
  const uint64_t number =
      new_fault(cat("encode_blocks: element % of x is not finite; ", f.name, " holds finite values only"));
  return make_gpu_step("a thread for each block", [=](Stream& s, const Launch& l) {
    (*kernel)(s.handle, blocks_for(blocks, kThreads), {kThreads}, 0, l.in[0], l.out[0], blocks, s.fault,
              number);
  });
}

}  // namespace

void add_encode_blocks(KernelTable& table) {
  table.add<ops::EncodeBlocks>({"encode_blocks", accepts, prepare});
}

}  // namespace rlx::cuda
