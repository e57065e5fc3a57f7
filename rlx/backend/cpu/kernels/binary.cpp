// Plan: axes of size 1 drop out and neighbours that continue each other in every operand melt into one; the
// innermost axis is the line of the serial kernels. The work is cut by elements, not by lines, so that any
// box splits evenly. Operands whose innermost stride is neither 0 nor 1 are gathered into blocks on the
// stack; results too large for the caches are made there too and streamed out.
#include "rlx/backend/cpu/kernels/binary.h"

#include <algorithm>
#include <array>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/box.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(BinaryKernels, binary_kernels)

namespace {

constexpr int64_t kBlockBytes = 4096;  // of a gathered operand or a result on its way out

template <int operands>
struct Lines {
  Box<operands> outer;
  int64_t length = 1;
  std::array<int64_t, size_t(operands)> stride{};  // along the line
  int64_t count() const { return outer.count() * length; }
};

template <int operands>
Lines<operands> simplify(const Broadcast& box) {
  RLX_CHECK(box.rank >= 0 && box.rank <= Broadcast::kMaxRank, "elementwise operation of rank ", box.rank);
  Lines<operands> lines;
  lines.stride.fill(1);
  bool first = true;
  for (int d = 0; d < box.rank; ++d) {
    if (box.size[d] == 1) continue;
    bool joins = !first;
    for (size_t o = 0; o < operands; ++o) {
      joins = joins && lines.stride[o] == box.strides[o][d] * box.size[d];
    }
    if (!joins && !first) lines.outer.add(lines.length, lines.stride);
    lines.length = joins ? lines.length * box.size[d] : box.size[d];
    for (size_t o = 0; o < operands; ++o) lines.stride[o] = box.strides[o][d];
    first = false;
  }
  return lines;
}

void gather(const std::byte* from, int64_t stride, int64_t bytes, int64_t n, std::byte* to) {
  const auto as = [&](auto type) {
    using T = decltype(type);
    for (int64_t i = 0; i < n; ++i)
      reinterpret_cast<T*>(to)[i] = reinterpret_cast<const T*>(from)[i * stride];
  };
  switch (bytes) {
    case 1:
      return as(uint8_t());
    case 2:
      return as(uint16_t());
    case 4:
      return as(uint32_t());
    default:
      return as(uint64_t());
  }
}

struct Operand {
  const void* data;
  int64_t bytes;  // of an element
};

/// line(pointers, one-element flags, result, n) over the whole box, at most a block at a time where an
/// operand has to be gathered or the result is streamed.
template <int operands, class Line>
void run(Team team, const Broadcast& box, const Operand (&in)[operands], void* y, int64_t y_bytes,
         Line line) {
  const Lines<operands> w = simplify<operands>(box);
  if (w.count() == 0) return;
  const BinaryKernels& k = binary_kernels();
  bool gathers = false, in_place = false;
  int64_t moved = w.count() * y_bytes;
  for (size_t o = 0; o < operands; ++o) {
    gathers = gathers || (w.stride[o] != 0 && w.stride[o] != 1);
    in_place = in_place || in[o].data == y;
    if (w.stride[o] != 0) moved += w.count() * in[o].bytes;
  }
  const bool streaming = !in_place && w.length * y_bytes >= kBlockBytes && too_large_for_caches(moved);
  constexpr int64_t kBlock = kBlockBytes / 8;
  team.parallel_for(w.count(), kGrain, [&](int64_t begin, int64_t end) {
    alignas(64) std::byte gathered[operands][kBlockBytes], result[kBlockBytes];
    const auto piece = [&](const auto& offset, int64_t first, int64_t m, std::byte* out, bool streamed) {
      const void* p[operands];
      bool one[operands];
      for (size_t o = 0; o < operands; ++o) {
        const std::byte* from =
            static_cast<const std::byte*>(in[o].data) + (offset[o] + first * w.stride[o]) * in[o].bytes;
        one[o] = w.stride[o] == 0;
        p[o] = from;
        if (w.stride[o] != 0 && w.stride[o] != 1) {
          gather(from, w.stride[o], in[o].bytes, m, gathered[o]);
          p[o] = gathered[o];
        }
      }
      line(p, one, streamed ? static_cast<void*>(result) : out, m);
      if (streamed) k.stream(result, out, m * y_bytes);
    };
    int64_t at = begin;  // in the result; the first and the last line may be partial
    w.outer.walk(begin / w.length, ceil_div(end, w.length), [&](const auto& offset) {
      const int64_t start = at % w.length, n = std::min(w.length - start, end - at);
      for (int64_t i = 0; i < n;) {
        std::byte* out = static_cast<std::byte*>(y) + (at + i) * y_bytes;
        const int64_t past_line = int64_t(reinterpret_cast<uintptr_t>(out) % 64);
        const bool streamed = streaming && past_line == 0 && n - i >= kBlock;
        int64_t m = n - i;
        if (gathers || streamed) {
          m = std::min(m, kBlock);
        } else if (streaming) {  // up to the next whole cache line
          m = std::min(m, (64 - past_line) / y_bytes);
        }
        piece(offset, start + i, m, out, streamed);
        i += m;
      }
      at += n;
    });
    if (streaming) k.fence();
  });
}

}  // namespace

void binary(Team team, const BinaryMap& p) {
  const BinaryKernels& k = binary_kernels();
  const bool integers = p.dtype == DType::i32 || p.dtype == DType::i64;
  RLX_CHECK(integers || p.dtype == DType::f32 || p.dtype == DType::f64, "binary kernel for dtype ", p.dtype);
  RLX_CHECK(!integers || p.op != Binary::pow, "power of integers");
  const size_t op = size_t(p.op);
  const auto f = p.dtype == DType::f32   ? k.f32[op]
                 : p.dtype == DType::f64 ? k.f64[op]
                 : p.dtype == DType::i32 ? k.i32[op]
                                         : k.i64[op];
  const int64_t bytes = int64_t(dtype_size(p.dtype));
  run<2>(team, p.box, {{p.a, bytes}, {p.b, bytes}}, p.y, bytes,
         [f](const void* const* in, const bool* one, void* y, int64_t n) {
           f(in[0], one[0], in[1], one[1], y, n);
         });
}

void compare(Team team, const CompareMap& p) {
  const BinaryKernels& k = binary_kernels();
  const size_t op = size_t(p.op);
  BinaryKernels::Line f = nullptr;
  if (p.dtype == DType::f32) f = k.compare_f32[op];
  if (p.dtype == DType::f64) f = k.compare_f64[op];
  if (p.dtype == DType::i32) f = k.compare_i32[op];
  if (p.dtype == DType::i64) f = k.compare_i64[op];
  if (p.dtype == DType::u8 || p.dtype == DType::bool_) f = k.compare_u8[op];
  RLX_CHECK(f != nullptr, "comparison kernel for dtype ", p.dtype);
  const int64_t bytes = int64_t(dtype_size(p.dtype));
  run<2>(team, p.box, {{p.a, bytes}, {p.b, bytes}}, p.y, 1,
         [f](const void* const* in, const bool* one, void* y, int64_t n) {
           f(in[0], one[0], in[1], one[1], y, n);
         });
}

void select(Team team, const Select& p) {
  int log2 = 0;
  while (log2 < 3 && (1 << log2) < p.element_bytes) ++log2;
  RLX_CHECK(1 << log2 == p.element_bytes, "choice between elements of ", p.element_bytes, " bytes");
  const auto f = binary_kernels().select[log2];
  const int64_t bytes = p.element_bytes;
  run<3>(team, p.box, {{p.condition, 1}, {p.a, bytes}, {p.b, bytes}}, p.y, bytes,
         [f, bytes](const void* const* in, const bool* one, void* y, int64_t n) {
           const uint8_t* condition = static_cast<const uint8_t*>(in[0]);
           if (!one[0]) return f(condition, in[1], one[1], in[2], one[2], y, n);
           // One condition for the line: both operands are the chosen one.
           uint8_t all[256];
           std::fill_n(all, std::min<int64_t>(n, 256), *condition);
           for (int64_t i = 0; i < n; i += 256) {
             const auto at = [&](int o) {
               return static_cast<const std::byte*>(in[o]) + (one[o] ? 0 : i * bytes);
             };
             f(all, at(1), one[1], at(2), one[2], static_cast<std::byte*>(y) + i * bytes,
               std::min<int64_t>(256, n - i));
           }
         });
}

}  // namespace rlx::cpu
