// Along one axis: running sums, products and extremes, recurrences, positions of extremes.
#include "rlx/backend/cuda/kernels/running.h"
#include "rlx/backend/cuda/kernels/complex.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/ops/reduce/cumulative.h"
#include "rlx/ops/reduce/extreme.h"

namespace rlx::cuda {
namespace {

Support row_major_numbers(const Request& r) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
    if (is_storage_only(r.in[i].dtype())) return Support::no("operand ", i, " is ", r.in[i].dtype());
  }
  return Support::yes();
}

// Running values are kept wide, as the reference rules do it: f64 for floats, i64 for integers.
std::string_view wide_type(DType t) { return is_complex(t) ? "c128" : is_float(t) ? "f64" : "i64"; }
std::string_view element_type(DType t) { return is_complex(t) ? "c64" : memory_type(t); }
std::string narrowed(DType t, const std::string& v) {
  return t == DType::f16 || t == DType::bf16 ? cat("f32(", v, ")") : v;
}

/// A thread walks along the axis; `each` is said at place k, whose element is x[at].
Source walk(const std::string& name, const AxisView& v, bool reverse, const std::string& parameters,
            const std::string& before, const std::string& each) {
  std::string body = before;
  body += cat("  for (i64 step = 0; step < ", v.length,
              "; ++step) {\n    const i64 k = ", reverse ? cat(v.length - 1, " - step") : "step",
              ";\n    const i64 at = (i0 * ", v.length, " + k) * ", v.inner, " + i1;\n", each, "  }\n");
  Source out = element_kernel(name, {v.outer, v.inner}, parameters, body);
  if (parameters.find("c64*") != std::string::npos) out.text = kComplexNumbers + out.text;
  return out;
}

// Lines below which a thread for each leaves most of the GPU without work, and the length from which a block for each pays.
constexpr int64_t kFewLines = 8192, kLongLine = 256;

std::unique_ptr<Step> prepare_blocks(const Request& r, const AxisView& v, const ops::CumulativeAttrs& a,
                                     bool product) {
  const DType t = r.in[0].dtype();
  const std::string_view wide = wide_type(t);
  const std::string text = cat(
      is_complex(t) ? kComplexNumbers : "", "typedef ", element_type(t), " T;\ntypedef ", wide,
      " Wide;\n#define WIDEN as_", wide, "\nconstexpr int kNothing = ", product ? 1 : 0,
      ";\nconstexpr bool kReverse = ", a.reverse ? "true" : "false",
      ", kExclusive = ", a.exclusive ? "true" : "false", ";\ninline Wide combined(Wide a, Wide b) { return ",
      product ? "op_mul" : "op_add", "(a, b); }\ninline void write(T& to, Wide v) { put(to, ",
      narrowed(t, "v"), "); }\n", kRunningKernel);
  const FunctionRef f = device_of(r).functions().get({"running", text});
  return make_gpu_step("a block for each line", [f, v](Stream& s, const Launch& l) {
    (*f)(s.handle, {v.outer * v.inner}, {256}, 0, l.in[0], l.out[0], v.length, v.inner);
  });
}

template <class Op, bool Product>
std::unique_ptr<Step> prepare_cumulative(const Request& r) {
  const auto& a = r.node.as<Op>();
  const DType t = r.in[0].dtype();
  const AxisView v = axis_view(r.in[0].shape, a.axis);
  if (v.length >= kLongLine && v.outer * v.inner < kFewLines) return prepare_blocks(r, v, a, Product);
  const std::string_view wide = wide_type(t), type = element_type(t);
  const std::string keep = cat("put(y[at], ", narrowed(t, "total"), ");\n");
  const std::string next =
      cat("    total = ", Product ? "op_mul" : "op_add", "(total, as_", wide, "(x[at]));\n");
  const std::string each =
      a.exclusive ? "    const auto kept = total;\n" + next + "    put(y[at], " + narrowed(t, "kept") + ");\n"
                  : next + "    " + keep;
  const Source s =
      walk(Product ? "cumprod" : "cumsum", v, a.reverse, cat("const ", type, "* x, ", type, "* y"),
           cat("  ", wide, " total = {", Product ? 1 : 0, "};\n"), each);
  return element_step(device_of(r), s, 1, 1, r.in[0].shape.elements() ? v.outer * v.inner : 0,
                      "a thread for each line");
}

std::unique_ptr<Step> prepare_recurrence(const Request& r) {
  const auto& a = r.node.as<ops::LinearRecurrence>();
  const DType t = r.in[0].dtype();
  const AxisView v = axis_view(r.in[0].shape, a.axis);
  const std::string_view wide = wide_type(t), type = element_type(t);
  // Nothing times the first a: an infinite one does no harm.
  const Source s =
      walk("linear_recurrence", v, a.reverse, cat("const ", type, "* a, const ", type, "* b, ", type, "* y"),
           cat("  ", wide, " h = {};\n"),
           cat("    h = step == 0 ? as_", wide, "(b[at]) : as_", wide, "(a[at]) * h + as_", wide,
               "(b[at]);\n    put(y[at], ", narrowed(t, "h"), ");\n"));
  return element_step(device_of(r), s, 2, 1, r.in[0].shape.elements() ? v.outer * v.inner : 0,
                      "a thread for each line");
}

// Whether a value takes over from the best so far; NaN takes over from all but NaN.
std::string beats(bool largest) {
  return cat(
      "template <class T> bool beats(T v, T best) { return v != v || best != best ? v != v && best == best : v ",
      largest ? ">" : "<", " best; }\n");
}

template <class Op, bool Largest>
std::unique_ptr<Step> prepare_running_extreme(const Request& r) {
  const auto& a = r.node.as<Op>();
  const DType t = r.in[0].dtype();
  const AxisView v = axis_view(r.in[0].shape, a.axis);
  const std::string_view wide = wide_type(t), type = memory_type(t);
  Source s =
      walk("running_extreme", v, a.reverse, cat("const ", type, "* x, ", type, "* y, i32* where"),
           cat("  ", wide, " best = 0;\n  ", type, " kept{};\n  i32 from = 0;\n"),
           cat("    const ", wide, " now = as_", wide,
               "(x[at]);\n    if (step == 0 || beats(now, best)) best = now, kept = x[at], from = i32(k);\n"
               "    y[at] = kept;\n    where[at] = from;\n"));
  s.text = beats(Largest) + s.text;
  return element_step(device_of(r), s, 1, 2, r.in[0].shape.elements() ? v.outer * v.inner : 0,
                      "a thread for each line");
}

// A warp or a block looks along a line; of equal elements the first wins.
constexpr char kExtremeText[] = R"cuda(
extern "C" __global__ void __launch_bounds__(kThreads)
extreme(const X* x, Y* y, i64 lines, i64 length, i64 inner) {
  constexpr int kLines = kThreads / kLanes;
  __shared__ Wide values[kThreads];
  __shared__ i32 places[kThreads];
  const i64 given = i64(blockIdx.x) * kLines + threadIdx.x / kLanes;
  const i64 line = given < lines ? given : lines - 1;
  const int lane = threadIdx.x % kLanes;
  const i64 base = line / inner * length * inner + line % inner;
  Wide best = 0;
  i32 from = -1;
  for (i64 k = lane; k < length; k += kLanes) {
    const Wide now = WIDEN(x[base + k * inner]);
    if (from < 0 || beats(now, best)) best = now, from = i32(k);
  }
  values[threadIdx.x] = best;
  places[threadIdx.x] = from;
  #pragma unroll
  for (int o = kLanes / 2; o > 0; o >>= 1) {
    __syncthreads();
    if (lane < o) {
      const Wide other = values[threadIdx.x + o];
      const i32 there = places[threadIdx.x + o];
      const bool equal = !beats(other, best) && !beats(best, other);
      if (there >= 0 && (from < 0 || beats(other, best) || (equal && there < from))) best = other, from = there;
      values[threadIdx.x] = best;
      places[threadIdx.x] = from;
    }
  }
  if (lane == 0 && given < lines) y[line] = Y(from);
}
)cuda";

template <class Op, bool Largest>
std::unique_ptr<Step> prepare_extreme(const Request& r) {
  const DType t = r.in[0].dtype();
  const AxisView v = axis_view(r.in[0].shape, r.node.as<Op>().axis);
  const int64_t lines = v.outer * v.inner, length = v.length, inner = v.inner;
  const int threads = length > 4096 ? 512 : 128, lanes = length > 4096 ? 512 : length > 16 ? 32 : 4;
  const std::string text =
      cat("typedef ", memory_type(t), " X;\ntypedef ", memory_type(r.out[0].dtype()), " Y;\ntypedef ",
          wide_type(t), " Wide;\n#define WIDEN as_", wide_type(t), "\nconstexpr int kThreads = ", threads,
          ", kLanes = ", lanes, ";\n", beats(Largest), kExtremeText);
  const FunctionRef f = device_of(r).functions().get({"extreme", text});
  return make_gpu_step(cat(lanes, " threads for each line"), [=](Stream& s, const Launch& l) {
    (*f)(s.handle, blocks_for(lines, threads / lanes), {threads}, 0, l.in[0], l.out[0], lines, length, inner);
  });
}

}  // namespace

void add_running(KernelTable& table) {
  table.add<ops::Cumsum>({"cumsum", row_major_numbers, prepare_cumulative<ops::Cumsum, false>});
  table.add<ops::Cumprod>({"cumprod", row_major_numbers, prepare_cumulative<ops::Cumprod, true>});
  table.add<ops::LinearRecurrence>({"linear_recurrence", row_major_numbers, prepare_recurrence});
  table.add<ops::Cummax>({"cummax", row_major_numbers, prepare_running_extreme<ops::Cummax, true>});
  table.add<ops::Cummin>({"cummin", row_major_numbers, prepare_running_extreme<ops::Cummin, false>});
  table.add<ops::Argmax>({"argmax", row_major_numbers, prepare_extreme<ops::Argmax, true>});
  table.add<ops::Argmin>({"argmin", row_major_numbers, prepare_extreme<ops::Argmin, false>});
}

}  // namespace rlx::cuda
