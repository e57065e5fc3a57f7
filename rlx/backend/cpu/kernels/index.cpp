// Plan: all of this is copying, bound by memory. A gather prefetches the rows it will need shortly, since
// their addresses follow no pattern. A scatter is split so that each place of y belongs to one thread: by
// batch, else by columns, else by rows, each thread then passing over the indices of all. Sums of narrow
// floats need an accumulator for each row: the updates of a row are chained (head of each row, next of each
// update) and a row is summed in registers.
#include "rlx/backend/cpu/kernels/index.h"

#include <algorithm>
#include <cstring>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(IndexKernels, index_kernels)

namespace {

constexpr int64_t kLine = 64;

int64_t rows_per_part(int64_t row_bytes) { return rows_worth(kGrainBytes, row_bytes); }

template <class I>
void check_range(const char* where, const Indices& indices, int64_t count, int64_t size) {
  const I* index = static_cast<const I*>(indices.data);
  I low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) low = std::min(low, index[i]), high = std::max(high, index[i]);
  if (count == 0 || (low >= 0 && int64_t(high) < size)) return;
  if (indices.mode == IndexMode::clamp && size > 0) return;
  for (int64_t i = 0; i < count; ++i) {
    if (index[i] < 0 || int64_t(index[i]) >= size) {
      throw invalid(where, ": element ", i, " of indices is ", int64_t(index[i]),
                    "; it must be at least 0 and below ", size);
    }
  }
}

/// body(at) with at(i) = index i, in range, after all of them have been checked.
template <class Body>
void with_indices(const char* where, const Indices& indices, int64_t count, int64_t size, Body body) {
  const auto run = [&]<class I>(I) {
    check_range<I>(where, indices, count, size);
    const I* index = static_cast<const I*>(indices.data);
    if (indices.mode == IndexMode::clamp) {
      body([index, size](int64_t i) { return std::clamp<int64_t>(int64_t(index[i]), 0, size - 1); });
    } else {
      body([index](int64_t i) { return int64_t(index[i]); });
    }
  };
  if (indices.dtype == DType::i32) return run(int32_t());
  if (indices.dtype == DType::i64) return run(int64_t());
  throw invalid(where, ": indices are ", indices.dtype, "; they must be i32 or i64");
}

/// body(bytes) with the number of bytes as a constant where it is that of an element or a pair, so that
/// copying them is one instruction, and as a variable otherwise.
template <class Body>
void with_size(int64_t bytes, Body body) {
  switch (bytes) {
    case 1:
      return body(std::integral_constant<int64_t, 1>());
    case 2:
      return body(std::integral_constant<int64_t, 2>());
    case 4:
      return body(std::integral_constant<int64_t, 4>());
    case 8:
      return body(std::integral_constant<int64_t, 8>());
    case 16:
      return body(std::integral_constant<int64_t, 16>());
    default:
      return body(bytes);
  }
}

// Rows this far ahead are fetched while one is copied.
constexpr int64_t kAhead = 4;

/// copy(to row k, from row at(k)) for k in [begin, end) with rows ahead prefetched.
template <class At, class Copy>
void picked_rows(const std::byte* table, int64_t row_bytes, int64_t begin, int64_t end, At at, Copy copy) {
  for (int64_t k = begin; k < end; ++k) {
    // Not a function of its own: the compiler drops calls that only prefetch.
    if (k + kAhead < end) {
      const std::byte* ahead = table + at(k + kAhead) * row_bytes;
      for (int64_t i = 0; i < std::min<int64_t>(row_bytes, 4 * kLine); i += kLine)
        __builtin_prefetch(ahead + i);
    }
    copy(k, table + at(k) * row_bytes);
  }
}

}  // namespace

void gather(Team team, const Gather& p) {
  const int64_t row = p.inner * int64_t(dtype_size(p.dtype));
  with_indices("gather", p.indices, p.batch * p.count, p.size, [&](auto at) {
    const int64_t lines = p.batch * p.outer * p.count;
    team.parallel_for(lines, rows_per_part(row), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end;) {  // whole runs of k
        const int64_t block = line / p.count, k = line % p.count;
        const int64_t stop = std::min(p.count, k + end - line), first = block / p.outer * p.count;
        const std::byte* table = static_cast<const std::byte*>(p.table) + block * p.size * row;
        std::byte* y = static_cast<std::byte*>(p.y) + block * p.count * row;
        with_size(row, [&](auto size) {
          const auto place = [&](int64_t i) { return at(first + i); };
          const auto copy = [&](int64_t i, const std::byte* from) {
            std::memcpy(y + i * size, from, size_t(size));
          };
          if constexpr (std::is_same_v<decltype(size), int64_t>) {
            picked_rows(table, row, k, stop, place, copy);
          } else {
            for (int64_t i = k; i < stop; ++i) copy(i, table + place(i) * size);
          }
        });
        line += stop - k;
      }
    });
  });
}

void take_along(Team team, const TakeAlong& p) {
  const int64_t element = int64_t(dtype_size(p.dtype)), lines = p.outer * p.count;
  with_indices("take_along", p.indices, lines * p.inner, p.size, [&](auto at) {
    team.parallel_for(lines, rows_per_part(p.inner * element), [&](int64_t begin, int64_t end) {
      with_size(element, [&](auto size) {
        for (int64_t line = begin; line < end; ++line) {
          const std::byte* x = static_cast<const std::byte*>(p.x) + line / p.count * p.size * p.inner * size;
          std::byte* y = static_cast<std::byte*>(p.y) + line * p.inner * size;
          for (int64_t i = 0; i < p.inner; ++i)
            std::memcpy(y + i * size, x + (at(line * p.inner + i) * p.inner + i) * size, size_t(size));
        }
      });
    });
  });
}

void embedding(Team team, const Embedding& p) {
  if (p.dtype != DType::f32 && p.dtype != DType::f16 && p.dtype != DType::bf16)
    throw invalid("embedding: the table is ", p.dtype, "; it must be f32, f16 or bf16");
  const int64_t element = int64_t(dtype_size(p.dtype));
  const auto widen = index_kernels().widen;
  with_indices("embedding", p.indices, p.count, p.size, [&](auto at) {
    team.parallel_for(p.count, rows_per_part(p.n * 4), [&](int64_t begin, int64_t end) {
      picked_rows(static_cast<const std::byte*>(p.table), p.stride * element, begin, end, at,
                  [&](int64_t k, const std::byte* from) {
                    if (p.dtype == DType::f32) {
                      std::memcpy(p.y + k * p.n, from, size_t(p.n) * 4);
                    } else {
                      widen(p.dtype, from, p.y + k * p.n, p.n);
                    }
                  });
    });
  });
}

namespace {

bool sums_narrow(const Scatter& p) {
  return p.kind == ScatterKind::add && (p.dtype == DType::f16 || p.dtype == DType::bf16);
}

void check_kind(const Scatter& p) {
  if (p.kind == ScatterKind::set) return;
  const bool ordered = p.kind != ScatterKind::add;
  if (p.dtype == DType::bool_ || is_storage_only(p.dtype) || (ordered && is_complex(p.dtype)))
    throw invalid("scatter: ", p.dtype, " has no ", ordered ? "order" : "sum", "; only set works for it");
}

// y = base, or zeros.
void copy_base(Team team, const Scatter& p, int64_t bytes) {
  if (p.base == p.y) return;
  team.parallel_for(bytes, kGrainBytes, [&](int64_t b, int64_t e) {
    std::byte* to = static_cast<std::byte*>(p.y) + b;
    if (p.base == nullptr) {
      std::memset(to, 0, size_t(e - b));
    } else {
      std::memcpy(to, static_cast<const std::byte*>(p.base) + b, size_t(e - b));
    }
  });
}

template <class At>
void scatter_chains(Team team, const Scatter& p, std::byte* workspace, At at) {
  auto* head = reinterpret_cast<int32_t*>(workspace);
  int32_t* next = head + p.batch * p.rows;
  const int64_t element = int64_t(dtype_size(p.dtype)), row = p.inner * element;
  team.parallel_for(p.batch, 1, [&](int64_t begin, int64_t end) {
    std::fill(head + begin * p.rows, head + end * p.rows, -1);
    for (int64_t i = end * p.count; i-- > begin * p.count;) {  // backwards, so that chains run forwards
      int32_t& first = head[i / p.count * p.rows + at(i)];
      next[i] = first;
      first = int32_t(i % p.count);
    }
  });
  const auto sum = index_kernels().sum_chain;
  // Chains differ in length: small chunks on demand.
  const int64_t chunk = std::max<int64_t>(1, std::min(rows_per_part(row), ceil_div(p.batch * p.rows, 64)));
  team.parallel_chunks(p.batch * p.rows, chunk, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      if (head[r] < 0) continue;
      const int64_t b = r / p.rows;
      std::byte* y = static_cast<std::byte*>(p.y) + r * row;
      sum(p.dtype, y, static_cast<const std::byte*>(p.updates) + b * p.count * row, next + b * p.count,
          head[r], y, p.inner);
    }
  });
}

}  // namespace

size_t scatter_workspace(const Scatter& p, int) {
  return sums_narrow(p) ? size_t(p.batch * (p.rows + p.count)) * sizeof(int32_t) : 0;
}

void scatter(Team team, const Scatter& p, std::byte* workspace) {
  check_kind(p);
  const int64_t element = int64_t(dtype_size(p.dtype)), row = p.inner * element;
  with_indices("scatter", p.indices, p.batch * p.count, p.rows, [&](auto at) {
    copy_base(team, p, p.batch * p.rows * row);
    if (row == 0) return;
    if (sums_narrow(p)) return scatter_chains(team, p, workspace, at);
    const auto combine = index_kernels().combine;
    const bool complex = is_complex(p.dtype);  // a sum of twice as many reals
    const DType dtype = complex ? DType::f32 : p.dtype;
    // Updates [b0, b1) of the batch, columns [c0, c1) and destinations [r0, r1).
    const auto apply = [&](int64_t b0, int64_t b1, int64_t c0, int64_t c1, int64_t r0, int64_t r1) {
      for (int64_t i = b0 * p.count; i < b1 * p.count; ++i) {
        const int64_t r = at(i);
        if (r < r0 || r >= r1) continue;
        std::byte* y = static_cast<std::byte*>(p.y) + (i / p.count * p.rows + r) * row + c0 * element;
        const std::byte* update = static_cast<const std::byte*>(p.updates) + i * row + c0 * element;
        if (p.kind == ScatterKind::set) {
          std::memcpy(y, update, size_t((c1 - c0) * element));
        } else {
          combine(p.kind, dtype, y, update, (c1 - c0) * (complex ? 2 : 1));
        }
      }
    };
    const int64_t threads = p.batch * p.count * row < kGrainBytes ? 1 : team.threads();
    const Team some = team.limited(int(threads));
    if (p.batch >= 2 * threads || threads == 1) {
      some.parallel_for(p.batch, 1, [&](int64_t b, int64_t e) { apply(b, e, 0, p.inner, 0, p.rows); });
    } else if (row >= threads * 4 * kLine) {
      some.parallel_for(p.inner, kLine / std::min(element, kLine),
                        [&](int64_t b, int64_t e) { apply(0, p.batch, b, e, 0, p.rows); });
    } else {
      some.parallel_for(p.rows, 1, [&](int64_t b, int64_t e) { apply(0, p.batch, 0, p.inner, b, e); });
    }
  });
}

}  // namespace rlx::cpu
