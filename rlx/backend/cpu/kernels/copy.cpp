// Plan: axes of size 1 drop out and axes that are neighbours in both arrays melt into one, so that most
// copies become rows of memcpy or a 2-D transpose. The transpose goes in blocks of 64 x 64 (16 KiB read, 16
// KiB written: both in L1), the rest element by element along the axis that is contiguous in `to`.
#include "rlx/backend/cpu/kernels/copy.h"

#include <algorithm>
#include <cstring>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(CopyKernels, copy_kernels)

namespace {

constexpr int64_t kBlock = 64;
constexpr int64_t kSerialElements = 8192;
constexpr int64_t kStreamingBytes = int64_t(32) << 20;  // larger than what any cache keeps of the result

struct Axis {
  int64_t size, from, to;
};

// Axes in the order of falling to-stride, merged where both arrays allow it.
int simplify(const StridedCopy& c, Axis* axes) {
  int n = 0;
  for (int d = 0; d < c.rank; ++d) {
    if (c.size[d] != 1) axes[n++] = {c.size[d], c.from_stride[d], c.to_stride[d]};
  }
  std::stable_sort(axes, axes + n, [](const Axis& a, const Axis& b) { return a.to > b.to; });
  int kept = 0;
  for (int d = 0; d < n; ++d) {
    if (kept > 0) {
      Axis& outer = axes[kept - 1];
      if (outer.from == axes[d].from * axes[d].size && outer.to == axes[d].to * axes[d].size) {
        outer = {outer.size * axes[d].size, axes[d].from, axes[d].to};
        continue;
      }
    }
    axes[kept++] = axes[d];
  }
  return kept;
}

template <class T>
void copy_line(const T* from, int64_t from_stride, T* to, int64_t to_stride, int64_t n) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, size_t(n) * sizeof(T));
  } else {
    for (int64_t i = 0; i < n; ++i) to[i * to_stride] = from[i * from_stride];
  }
}

template <class T>
void run(Team team, const Axis* axes, int rank, const T* from, T* to) {
  // The last axis is the innermost of `to`. If another one is contiguous in `from`, the two form a transpose.
  const Axis line = axes[rank - 1];
  int across = -1;
  for (int d = 0; d < rank - 1; ++d) {
    if (axes[d].from == 1 && axes[d].size > 1) across = d;
  }
  const bool transposes = across >= 0 && line.to == 1 && line.from != 1;
  const Axis other = transposes ? axes[across] : Axis{1, 0, 0};
  Axis outer[StridedCopy::kMaxRank];
  int outer_rank = 0;
  int64_t outer_count = 1;
  for (int d = 0; d < rank - 1; ++d) {
    if (d == across && transposes) continue;
    outer[outer_rank++] = axes[d];
    outer_count *= axes[d].size;
  }
  const auto offsets = [&](int64_t index, int64_t& f, int64_t& t) {
    for (int d = outer_rank - 1; d >= 0; --d) {
      f += index % outer[d].size * outer[d].from;
      t += index % outer[d].size * outer[d].to;
      index /= outer[d].size;
    }
  };
  if (!transposes) {
    // Long single lines are cut, short ones are grouped.
    const int64_t cut = outer_count == 1 ? (line.size + kSerialElements - 1) / kSerialElements : 1;
    const int64_t grain = std::max<int64_t>(1, kSerialElements / line.size);
    team.parallel_for(outer_count * cut, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t f = 0, t = 0;
        offsets(i / cut, f, t);
        const int64_t first = i % cut * kSerialElements;
        const int64_t count = cut == 1 ? line.size : std::min(kSerialElements, line.size - first);
        copy_line(from + f + first * line.from, line.from, to + t + first * line.to, line.to, count);
      }
    });
    return;
  }
  const auto transpose_4 = copy_kernels().transpose_4;
  const int64_t bytes = outer_count * line.size * other.size * int64_t(sizeof(T));
  bool streaming =
      bytes >= kStreamingBytes && reinterpret_cast<uintptr_t>(to) % 64 == 0 && other.to % 16 == 0;
  for (int d = 0; d < outer_rank; ++d) streaming = streaming && outer[d].to % 16 == 0;
  const int64_t down = (line.size + kBlock - 1) / kBlock, over = (other.size + kBlock - 1) / kBlock;
  const int64_t grain =
      std::max<int64_t>(1, kSerialElements / (std::min(kBlock, line.size) * std::min(kBlock, other.size)));
  team.parallel_for(outer_count * down * over, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t f = 0, t = 0;
      offsets(i / (down * over), f, t);
      // Blocks go along the rows of `to`, so that its lines are written one after the other.
      const int64_t o = i % (down * over) / down * kBlock, l = i % down * kBlock;
      const int64_t rows = std::min(kBlock, line.size - l), columns = std::min(kBlock, other.size - o);
      const T* source = from + f + l * line.from + o;
      T* target = to + t + o * other.to + l;
      if constexpr (sizeof(T) == 4) {
        transpose_4(source, line.from, target, other.to, rows, columns, streaming);
      } else {
        for (int64_t c = 0; c < columns; ++c)
          copy_line(source + c, line.from, target + c * other.to, 1, rows);
      }
    }
  });
}

struct Bytes16 {
  uint64_t low, high;
};

}  // namespace

void strided_copy(Team team, const StridedCopy& c) {
  RLX_CHECK(c.rank >= 0 && c.rank <= StridedCopy::kMaxRank, "copy of rank ", c.rank);
  for (int d = 0; d < c.rank; ++d) {
    if (c.size[d] == 0) return;
  }
  Axis axes[StridedCopy::kMaxRank + 1];
  int rank = simplify(c, axes);
  if (rank == 0) axes[rank++] = {1, 1, 1};
  const auto as = [&](auto type) {
    using T = decltype(type);
    run(team, axes, rank, static_cast<const T*>(c.from), static_cast<T*>(c.to));
  };
  switch (c.element_bytes) {
    case 1:
      return as(uint8_t());
    case 2:
      return as(uint16_t());
    case 4:
      return as(uint32_t());
    case 8:
      return as(uint64_t());
    case 16:
      return as(Bytes16());
    default:
      RLX_CHECK(false, "copy of elements of ", c.element_bytes, " bytes");
  }
}

}  // namespace rlx::cpu
