// Rows written by index, in the order of the updates: results do not depend on timing.
#include "rlx/ops/index/scatter.h"
#include "rlx/backend/cuda/fault.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"

namespace rlx::cuda {
namespace {

using ops::ScatterKind;

// Looks that a thread for each element of the result may take at the indices, all together.
constexpr int64_t kMostLooks = int64_t(1) << 32;

Support accepts(const Request& r) {
  for (size_t i = 0; i < 3; ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  const DType index = r.in[1].dtype(), t = r.in[0].dtype();
  if (!is_integer(index)) return Support::no("indices are ", index);
  if (r.node.as<ops::Scatter>().kind != ScatterKind::set && (is_complex(t) || is_storage_only(t)))
    return Support::no("no sums of ", t);
  return Support::yes();
}

/// How an update meets what is there; `now` and `next` are wide.
std::string combined(ScatterKind kind) {
  return kind == ScatterKind::add   ? "op_add(now, next)"
         : kind == ScatterKind::max ? "op_max(now, next)"
         : kind == ScatterKind::min ? "op_min(now, next)"
                                    : "next";
}

struct Rows {
  int64_t batch, rows, updates, inner;
};

std::string index_text(const Rows& s, bool clamp) {
  std::string out = "    i64 row = i64(indices[which]);\n";
  if (clamp) out += cat("    row = row < 0 ? 0 : row >= ", s.rows, " ? ", s.rows - 1, " : row;\n");
  return out +
         cat("    if (row < 0 || row >= ", s.rows, ") { *fault = (number << 40) + u64(which); continue; }\n");
}

/// A thread for each element of the result looks at all updates of its batch: sums are wide.
Source by_result(const Rows& s, const Request& r, ScatterKind kind, bool clamp) {
  const DType t = r.in[0].dtype();
  const std::string_view type = kind == ScatterKind::set ? word_type(dtype_size(t)) : memory_type(t);
  const std::string_view wide = is_float(t) ? "f64" : "i64";
  const bool narrow = t == DType::f16 || t == DType::bf16;
  std::string body = kind == ScatterKind::set ? cat("  ", type, " now = base[e];\n")
                                              : cat("  ", wide, " now = as_", wide, "(base[e]);\n");
  body += cat("  for (i64 u = 0; u < ", s.updates, "; ++u) {\n    const i64 which = i0 * ", s.updates,
              " + u;\n", index_text(s, clamp));
  body += cat("    if (row != i1) continue;\n    const auto raw = updates[which * ", s.inner, " + i2];\n");
  if (kind == ScatterKind::set) {
    body += "    now = raw;\n  }\n  y[e] = now;\n";
  } else {
    body += cat("    const ", wide, " next = as_", wide, "(raw);\n    now = ", combined(kind),
                ";\n  }\n  put(y[e], ", narrow ? "f32(now)" : "now", ");\n");
  }
  return element_kernel("scatter", {s.batch, s.rows, s.inner},
                        cat("const ", type, "* base, const ", r.in[1].dtype(), "* indices, const ", type,
                            "* updates, ", type, "* y, u64* fault, u64 number"),
                        body);
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

Source by_row(const Rows& s, const Request& r, ScatterKind kind, bool clamp) {
  const DType t = r.in[0].dtype();
  const bool set = kind == ScatterKind::set, narrow = t == DType::f16 || t == DType::bf16;
  const std::string_view type = set ? word_type(dtype_size(t)) : memory_type(t);
  const std::string_view wide = set ? type : is_float(t) ? "f64" : "i64";
  return {"scatter_rows",
          cat("typedef ", type, " T;\ntypedef ", r.in[1].dtype(), " Index;\ntypedef ", wide,
              " Wide;\nconstexpr int kUpdates = ", s.updates, ", kGroup = ", kRowsOfBlock,
              ";\nconstexpr i64 kRows = ", s.rows, ", kInner = ", s.inner,
              ";\nconstexpr bool kClamp = ", clamp ? "true" : "false", ";\ninline Wide read(T x) { return ",
              set ? "x" : cat("as_", wide, "(x)"), "; }\ninline Wide combined(Wide now, Wide next) { return ",
              combined(kind), "; }\ninline void write(T& to, Wide x) { ",
              set      ? "to = x;"
              : narrow ? "put(to, f32(x));"
                       : "put(to, x);",
              " }\n", kScatterRows)};
}

/// A thread for each column walks the updates in order; y holds the base already.
Source by_column(const Rows& s, const Request& r, ScatterKind kind, bool clamp) {
  const DType t = r.in[0].dtype();
  const std::string_view type = kind == ScatterKind::set ? word_type(dtype_size(t)) : memory_type(t);
  std::string body = cat("  for (i64 u = 0; u < ", s.updates, "; ++u) {\n    const i64 which = i0 * ",
                         s.updates, " + u;\n", index_text(s, clamp), "    auto& at = y[(i0 * ", s.rows,
                         " + row) * ", s.inner, " + i1];\n    const auto now = at, next = updates[which * ",
                         s.inner, " + i1];\n    at = ", combined(kind), ";\n  }\n");
  return element_kernel("scatter_columns", {s.batch, s.inner},
                        cat("const ", r.in[1].dtype(), "* indices, const ", type, "* updates, ", type,
                            "* y, u64* fault, u64 number"),
                        body);
}

std::unique_ptr<Step> prepare(const Request& r) {
  const auto& a = r.node.as<ops::Scatter>();
  const AxisView v = axis_view(r.in[0].shape, a.batch_dims);
  const Rows s{v.outer, v.length, r.in[2].shape.dim(a.batch_dims).value(), v.inner};
  const DType t = r.in[0].dtype();
  const int64_t count = r.out[0].shape.elements();
  if (count == 0 && (s.updates == 0 || v.outer * v.inner == 0))
    return make_gpu_step("empty", [](Stream&, const Launch&) {});
  const bool clamp = a.mode == ops::IndexMode::clamp && s.rows > 0;
  const uint64_t number = new_fault(
      cat("scatter: element % of indices is out of range; it must be at least 0 and below ", s.rows));
  const bool plain =
      t == DType::f32 || t == DType::f64 || t == DType::i32 || t == DType::i64 || a.kind == ScatterKind::set;
  // A block reads all indices of its batch: worth it where rows are long.
  const bool by_rows = s.inner >= 32 && s.rows > 0 && s.updates > 0 && s.updates <= kMostFlags &&
                       s.batch * s.rows * s.updates <= kMostLooks;
  const bool few = count > 0 && count * s.updates <= kMostLooks && s.updates <= 4096;
  if (few ? !by_rows || s.updates <= 256 : !plain && !by_rows) {
    const FunctionRef f = device_of(r).functions().get(by_result(s, r, a.kind, clamp));
    return make_gpu_step("a thread for each result", [=](Stream& q, const Launch& l) {
      (*f)(q.handle, blocks_for(count), {256}, 0, l.in[0], l.in[1], l.in[2], l.out[0], q.fault, number);
    });
  }
  if (by_rows) {
    const FunctionRef f = device_of(r).functions().get(by_row(s, r, a.kind, clamp));
    const int64_t blocks = s.batch * ((s.rows + kRowsOfBlock - 1) / kRowsOfBlock);
    auto step = make_gpu_step("a block for some rows", [=](Stream& q, const Launch& l) {
      (*f)(q.handle, {blocks}, {256}, 0, l.in[0], l.in[1], l.in[2], l.out[0], q.fault, number);
    });
    step->in_place = {0};
    return step;
  }
  const FunctionRef f = device_of(r).functions().get(by_column(s, r, a.kind, clamp));
  const size_t bytes = size_t(r.out[0].shape.size_bytes());
  auto step = make_gpu_step("a thread for each column", [=](Stream& q, const Launch& l) {
    if (l.in[0] != l.out[0] && bytes > 0)
      check(q.gpu.use().MemcpyDtoDAsync(device_pointer(l.out[0]), device_pointer(l.in[0]), bytes, q.handle),
            "a copy");
    (*f)(q.handle, blocks_for(s.batch * s.inner), {256}, 0, l.in[1], l.in[2], l.out[0], q.fault, number);
  });
  step->in_place = {0};
  return step;
}

}  // namespace

void add_scatter(KernelTable& table) { table.add<ops::Scatter>({"scatter", accepts, prepare}); }

}  // namespace rlx::cuda
