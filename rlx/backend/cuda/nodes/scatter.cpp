// Rows written by index, in the order of the updates: results do not depend on timing.
#include "rlx/ops/index/scatter.h"

#include <limits>

#include "rlx/backend/control/body.h"
#include "rlx/backend/cuda/fault.h"
#include "rlx/backend/cuda/kernels/complex.h"
#include "rlx/backend/cuda/kernels/scatter_sorted.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/backend/cuda/nodes/sort_lines.h"

namespace rlx::cuda {
namespace {

using ops::ScatterKind;

// Looks that a thread for each element of the result may take at the indices, all together.
constexpr int64_t kMostLooks = int64_t(1) << 32;

struct Rows {
  int64_t batch, rows, updates, inner;
};
Rows rows_of(const Request& r) {
  const int axis = r.node.as<ops::Scatter>().batch_dims;
  const AxisView v = axis_view(r.in[0].shape, axis);
  return {v.outer, v.length, r.in[2].shape.dim(axis).value(), v.inner};
}

Support accepts(const Request& r) {
  for (size_t i = 0; i < 3; ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  const DType index = r.in[1].dtype(), t = r.in[0].dtype();
  if (!is_integer(index)) return Support::no("indices are ", index);
  if (r.node.as<ops::Scatter>().kind != ScatterKind::set && is_storage_only(t))
    return Support::no("no sums of ", t);
  const Rows s = rows_of(r);
  if (std::max(s.rows, s.updates) >= std::numeric_limits<int32_t>::max())
    return Support::no(s.rows, " rows and ", s.updates, " updates; they are counted in i32");
  return Support::yes();
}

/// How an update meets what is there; `now` and `next` are wide.
std::string combined(ScatterKind kind) {
  return kind == ScatterKind::add   ? "op_add(now, next)"
         : kind == ScatterKind::max ? "op_max(now, next)"
         : kind == ScatterKind::min ? "op_min(now, next)"
                                    : "next";
}

std::string index_text(const Rows& s, bool clamp) {
  std::string out = "    i64 row = i64(indices[which]);\n";
  if (clamp) out += cat("    row = row < 0 ? 0 : row >= ", s.rows, " ? ", s.rows - 1, " : row;\n");
  return out +
         cat("    if (row < 0 || row >= ", s.rows, ") { *fault = (number << 40) + u64(which); continue; }\n");
}

/// The types and functions that all kernels here are written with. What `set` moves is not read.
struct ScatterText {
  std::string_view memory, wide;
  std::string text;
};
ScatterText types_of(const Rows& s, const Request& r, ScatterKind kind, bool clamp) {
  const DType t = r.in[0].dtype();
  const bool set = kind == ScatterKind::set, narrow = t == DType::f16 || t == DType::bf16;
  ScatterText out;
  out.memory = set ? word_type(dtype_size(t)) : is_complex(t) ? "c64" : memory_type(t);
  out.wide = set ? out.memory : is_complex(t) ? "c128" : is_float(t) ? "f64" : "i64";
  out.text =
      cat(is_complex(t) ? kComplexNumbers : "", "typedef ", out.memory, " T;\ntypedef ", r.in[1].dtype(),
          " Index;\ntypedef ", out.wide, " Wide;\nconstexpr int kUpdates = ", s.updates,
          ";\nconstexpr i64 kRows = ", s.rows, ", kInner = ", s.inner,
          ";\nconstexpr bool kClamp = ", clamp ? "true" : "false", ";\ninline Wide read(T x) { return ",
          set ? "x" : cat("as_", out.wide, "(x)"), "; }\ninline Wide combined(Wide now, Wide next) { return ",
          combined(kind), "; }\ninline void write(T& to, Wide x) { ",
          set      ? "to = x;"
          : narrow ? "put(to, f32(x));"
                   : "put(to, x);",
          " }\n");
  return out;
}

/// A thread for each element of the result looks at all updates of its batch: sums are wide.
Source by_result(const Rows& s, const ScatterText& t, bool clamp) {
  const std::string body =
      cat("  Wide now = read(base[e]);\n  for (i64 u = 0; u < ", s.updates,
          "; ++u) {\n    const i64 which = i0 * ", s.updates, " + u;\n", index_text(s, clamp),
          "    if (row != i1) continue;\n    now = combined(now, read(updates[which * ", s.inner,
          " + i2]));\n  }\n  write(y[e], now);\n");
  Source out = element_kernel(
      "scatter", {s.batch, s.rows, s.inner},
      "const T* base, const Index* indices, const T* updates, T* y, u64* fault, u64 number", body);
  out.text = t.text + out.text;
  return out;
}

constexpr int64_t kMostFlags = 1 << 16;  // updates of a block, one bit each
constexpr int64_t kRowsOfBlock = 8;

/// A block for a few rows of the result finds their updates, one bit each, lists them and adds them in order; sums are wide. Rows
/// without updates are left alone where the result lies over the base.
constexpr char kScatterRows[] = R"cuda(
extern "C" __global__ void __launch_bounds__(256) scatter_rows(const T* base, const Index* indices, const T* updates, T* y, u64* fault, u64 number) {
  constexpr int kWords = (kUpdates + 31) / 32, kList = 1024;
  constexpr i64 kBlocks = (kRows + kGroup - 1) / kGroup;
  __shared__ u32 found[kWords];
  __shared__ int list[kList], listed;
  const i64 batch = blockIdx.x / kBlocks, first = blockIdx.x % kBlocks * kGroup;
  const int lane = threadIdx.x % 32;
  const auto row_of = [&](int u) {
    const i64 row = i64(indices[batch * kUpdates + u]);
    return !kClamp ? row : row < 0 ? 0 : row >= kRows ? kRows - 1 : row;
  };
  bool some = false;
  for (int w = threadIdx.x / 32; w < kWords; w += 8) {
    const int u = w * 32 + lane;
    const i64 row = u < kUpdates ? row_of(u) : -1;
    if (u < kUpdates && first == 0 && (row < 0 || row >= kRows)) *fault = (number << 40) + u64(batch * kUpdates + u);
    const u32 bits = __ballot_sync(~0u, row >= first && row < first + kGroup && row < kRows);
    some = some || bits != 0;
    if (lane == 0) found[w] = bits;
  }
  if (!__syncthreads_or(some) && base == y) return;
  if (threadIdx.x < 32) {
    int total = 0;
    for (int w0 = 0; w0 < kWords; w0 += 32) {
      u32 bits = w0 + lane < kWords ? found[w0 + lane] : 0;
      int sum = __popc(bits);
      const int own = sum;
      #pragma unroll
      for (int o = 1; o < 32; o *= 2) {
        const int before = __shfl_up_sync(~0u, sum, o);
        sum += lane >= o ? before : 0;
      }
      for (int at = total + sum - own; bits != 0; bits &= bits - 1, ++at) {
        if (at < kList) list[at] = (w0 + lane) * 32 + __ffs(bits) - 1;
      }
      total += __shfl_sync(~0u, sum, 31);
    }
    if (lane == 0) listed = total;
  }
  __syncthreads();
  const int count = listed;
  for (i64 mine = first; mine < first + kGroup && mine < kRows; ++mine) {
    for (i64 c = threadIdx.x; c < kInner; c += 256) {
      const i64 e = (batch * kRows + mine) * kInner + c;
      Wide now = read(base[e]);
      bool changed = base != y;
      const auto meet = [&](int u) {
        if (row_of(u) != mine) return;
        const Wide next = read(updates[(batch * kUpdates + u) * kInner + c]);
        now = combined(now, next);
        changed = true;
      };
      if (count <= kList) {
        for (int k = 0; k < count; ++k) meet(list[k]);
      } else {
        for (int w = 0; w < kWords; ++w) {
          for (u32 bits = found[w]; bits != 0; bits &= bits - 1) meet(w * 32 + __ffs(bits) - 1);
        }
      }
      if (changed) write(y[e], now);
    }
  }
}
)cuda";

Source by_row(const ScatterText& t) {
  return {"scatter_rows", cat(t.text, "constexpr int kGroup = ", kRowsOfBlock, ";\n", kScatterRows)};
}

FunctionRef row_numbers(const Device& device, const ScatterText& t) {
  return device.functions().get({"scatter_rows_of", cat(t.text, kScatterRowNumbers)});
}

/// No element to write: indices, which cannot be right, are told.
std::unique_ptr<Step> prepare_told(const Request& r, const Rows& s, const ScatterText& t, uint64_t number) {
  const int64_t all = s.batch * s.updates;
  const FunctionRef f = row_numbers(device_of(r), t);
  return make_gpu_step(
      "no rows",
      [=](Stream& q, const Launch& l) {
        (*f)(q.handle, blocks_for(all), {256}, 0, l.in[1], l.workspace, all, q.fault, number);
      },
      size_t(all) * sizeof(int32_t));
}

/// Updates are sorted by their rows; then every element of the result knows its own.
std::unique_ptr<Step> prepare_sorted(const Request& r, const Rows& s, const ScatterText& t, ScatterKind kind,
                                     uint64_t number) {
  const Device& device = device_of(r);
  const int64_t count = r.out[0].shape.elements(), all = s.batch * s.updates,
                starts_count = s.batch * (s.rows + 1);
  const bool set = kind == ScatterKind::set;
  const DType type = r.in[0].dtype();
  // Many updates of few elements: a block for each.
  const int lanes = !set && s.updates / s.rows >= 64 && count < (int64_t(1) << 16) ? 256 : 1;
  const std::string start = kind == ScatterKind::add ? "Wide{}"
                            : is_float(type)
                                ? cat(kind == ScatterKind::max ? "-" : "", "from_bits(0x7ff0000000000000ull)")
                            : kind == ScatterKind::max ? "(-9223372036854775807ll - 1)"
                                                       : "9223372036854775807ll";
  const FunctionRef row_of = row_numbers(device, t),
                    starts_of = device.functions().get({"scatter_starts", cat(t.text, kScatterStarts)}),
                    sums = device.functions().get(
                        {"scatter_sorted", set ? cat(t.text, kScatterLast)
                                               : cat(t.text, "constexpr int kLanes = ", lanes,
                                                     ";\n#define kStart ", start, "\n", kScatterSums)});
  const LineSorter sorter(device, DType::i32, false, s.batch, s.updates, 1);
  const size_t list = backend::aligned_size(size_t(all) * sizeof(int32_t)),
               starts_bytes = backend::aligned_size(size_t(starts_count) * sizeof(int32_t));
  auto step = make_gpu_step(
      cat("updates sorted by row, ", lanes, lanes == 1 ? " thread" : " threads", " for each result"),
      [=](Stream& q, const Launch& l) {
        std::byte *const rows = l.workspace, *const sorted = rows + list, *const order = sorted + list,
                         *const starts = order + list;
        (*row_of)(q.handle, blocks_for(all), {256}, 0, l.in[1], rows, all, q.fault, number);
        sorter.run(q, rows, sorted, order, starts + starts_bytes);
        (*starts_of)(q.handle, blocks_for(starts_count), {256}, 0, sorted, starts, s.batch);
        (*sums)(q.handle, blocks_for(count, 256 / lanes), {256}, 0, l.in[0], l.in[2], order, starts, l.out[0],
                count);
      },
      3 * list + starts_bytes + sorter.workspace());
  step->in_place = {0};
  return step;
}

std::unique_ptr<Step> prepare(const Request& r) {
  const auto& a = r.node.as<ops::Scatter>();
  const Rows s = rows_of(r);
  const int64_t count = r.out[0].shape.elements();
  if (count == 0 && (s.updates == 0 || s.batch * s.inner == 0))
    return make_gpu_step("empty", [](Stream&, const Launch&) {});
  const bool clamp = a.mode == ops::IndexMode::clamp && s.rows > 0;
  const uint64_t number = new_fault(
      cat("scatter: element % of indices is out of range; it must be at least 0 and below ", s.rows));
  const ScatterText types = types_of(s, r, a.kind, clamp);
  // A block reads all indices of its batch: worth it where rows are long.
  const bool by_rows = s.inner >= 32 && s.rows > 0 && s.updates > 0 && s.updates <= kMostFlags &&
                       s.batch * s.rows * s.updates <= kMostLooks;
  const bool few = count * s.updates <= kMostLooks && s.updates <= 4096;
  if (count == 0) return prepare_told(r, s, types, number);
  if (few && (!by_rows || s.updates <= 256)) {
    const FunctionRef f = device_of(r).functions().get(by_result(s, types, clamp));
    return make_gpu_step("a thread for each result", [=](Stream& q, const Launch& l) {
      (*f)(q.handle, blocks_for(count), {256}, 0, l.in[0], l.in[1], l.in[2], l.out[0], q.fault, number);
    });
  }
  if (!by_rows) return prepare_sorted(r, s, types, a.kind, number);
  const FunctionRef f = device_of(r).functions().get(by_row(types));
  const int64_t blocks = s.batch * ((s.rows + kRowsOfBlock - 1) / kRowsOfBlock);
  auto step = make_gpu_step("a block for some rows", [=](Stream& q, const Launch& l) {
    (*f)(q.handle, {blocks}, {256}, 0, l.in[0], l.in[1], l.in[2], l.out[0], q.fault, number);
  });
  step->in_place = {0};
  return step;
}

}  // namespace

void add_scatter(KernelTable& table) { table.add<ops::Scatter>({"scatter", accepts, prepare}); }

}  // namespace rlx::cuda
