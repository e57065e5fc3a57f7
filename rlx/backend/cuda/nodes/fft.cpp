// Discrete Fourier transforms: short lines in one pass through shared memory, longer ones in several, lengths with a prime factor
// beyond 13 as a convolution with a chirp.
#include "rlx/ops/fft/fft.h"

#include <cmath>
#include <numbers>

#include "rlx/backend/control/body.h"
#include "rlx/backend/cuda/kernels/complex.h"
#include "rlx/backend/cuda/kernels/fft.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kPrimes[] = {2, 3, 5, 7, 11, 13};
// Complex numbers that one buffer in shared memory holds; there are two, together some 72 KiB.
constexpr int64_t buffer_points(bool wide) { return wide ? 2048 : 4096; }
// Points of a pass over columns: eight columns, or four of long ones, which are runs of 32 bytes at least.
constexpr int64_t kLongestColumn = 1024;
// Numbers that are transformed at a time, so that the places between passes stay small.
constexpr int64_t kMostAtOnce = int64_t(1) << 25;

bool has_small_factors(int64_t n) {
  for (const int64_t p : kPrimes) {
    while (n % p == 0) n /= p;
  }
  return n == 1;
}

std::vector<int64_t> stages_of(int64_t points) {
  std::vector<int64_t> out;
  for (const int64_t p : {8, 4, 2, 3, 5, 7, 11, 13}) {
    for (; points % p == 0; points /= p) out.push_back(p);
  }
  if (out.empty()) out.push_back(1);
  return out;
}

/// Factors of n of at most kLongestColumn each, as few as there can be, the largest as small as it can be.
std::vector<int64_t> columns_of(int64_t n, int passes) {
  if (passes == 1) return n <= kLongestColumn ? std::vector{n} : std::vector<int64_t>();
  std::vector<int64_t> best;
  for (int64_t d = 2; d <= std::min(n, kLongestColumn); ++d) {
    if (n % d != 0 || (!best.empty() && d >= best[0])) continue;
    std::vector<int64_t> rest = columns_of(n / d, passes - 1);
    if (rest.empty()) continue;
    rest.push_back(d);
    std::sort(rest.rbegin(), rest.rend());
    if (best.empty() || rest[0] < best[0]) best = rest;
  }
  return best;
}

/// What memory holds at one end of a transform of `points` points.
struct FftEnd {
  enum class Kind : uint8_t { complex, split } kind = Kind::complex;
  DType dtype = DType::c64;  // of split parts
  int64_t length = 0;        // numbers of a row; those of the transform beyond it are zeros that nobody keeps
  bool times_aid = false;    // times element i of another array
  double scale = 1;

  std::string_view type() const { return kind == Kind::complex ? "Complex" : memory_type(dtype); }
};

std::string take_text(const FftEnd& e, bool wide) {
  const std::string_view real = wide ? "f64" : "f32";
  std::string out = "inline Complex take(const X* x, const Complex* aid, i64 row, i64 i) {\n";
  if (e.times_aid) out += cat("  if (i >= ", e.length, ") return Complex{};\n");
  out += e.kind == FftEnd::Kind::complex
             ? cat("  const Complex z = x[row * ", e.length, " + i];\n")
             : cat("  const X* const at = x + row * ", 2 * e.length, " + i;\n  const Complex z = {as_", real,
                   "(at[0]), as_", real, "(at[", e.length, "])};\n");
  return out + (e.times_aid ? "  return z * aid[i];\n}\n" : "  return z;\n}\n");
}

std::string give_text(const FftEnd& e) {
  std::string out = "inline void give(Y* y, const Complex* aid, i64 row, i64 i, Complex z) {\n";
  if (e.times_aid) out += cat("  if (i >= ", e.length, ") return;\n  z = z * aid[i];\n");
  if (e.scale != 1) out += cat("  z = {z.x * Real(", e.scale, "), z.y * Real(", e.scale, ")};\n");
  return out + (e.kind == FftEnd::Kind::complex
                    ? cat("  y[row * ", e.length, " + i] = z;\n}\n")
                    : cat("  Y* const at = y + row * ", 2 * e.length, " + i;\n  put(at[0], z.x), put(at[",
                          e.length, "], z.y);\n}\n"));
}

/// e^(sign 2 pi i k step / order), k < count, from the angle itself.
std::string roots_text(std::string_view name, int64_t count, int64_t order, int sign, int64_t step = 1) {
  std::string out = cat("__device__ const Real ", name, "[] = {");
  for (int64_t k = 0; k < count; ++k) {
    const double angle = sign * 2 * std::numbers::pi * double(k * step) / double(order);
    out += cat(std::cos(angle), ",", std::sin(angle), k % 8 == 7 ? ",\n" : ",");
  }
  return out + "};\n";
}

// The factors between passes, e^(sign 2 pi i m / order), each a product of one of `step` fine and one coarse root.
std::string outer_text(int64_t order, int sign) {
  int64_t step = 1;
  while (step * step < order) step *= 2;
  return cat(
      roots_text("fine", step, order, sign),
      roots_text("coarse", (order + step - 1) / step, order, sign, step),
      "inline Complex outer(i64 i, i64 k) {\n  const i64 m = i * k, a = m / ", step, ", b = m % ", step,
      ";\n  return Complex{coarse[2 * a], coarse[2 * a + 1]} * Complex{fine[2 * b], fine[2 * b + 1]};\n}\n");
}

std::string odd_text(int64_t p, int sign) {
  std::string c, s;
  for (int64_t m = 0; m < p; ++m) {
    const double angle = sign * 2 * std::numbers::pi * double(m) / double(p);
    c += cat(m ? ", " : "", std::cos(angle));
    s += cat(m ? ", " : "", std::sin(angle));
  }
  return cat("template <> inline void butterfly<", p, ">(Complex* v) {\n  constexpr Real c[] = {", c,
             "}, s[] = {", s, "};\n  odd_butterfly<", p, ">(v, c, s);\n}\n");
}

/// The list of stages: values go to memory behind the last one.
std::string stage_list(const std::vector<int64_t>& stages, bool by_line) {
  std::string out;
  int64_t done = 1;
  for (size_t i = 0; i < stages.size(); ++i) {
    const bool last = i + 1 == stages.size();
    const char *here = i % 2 == 0 ? "second" : "first", *there = i % 2 == 0 ? "first" : "second";
    out += cat("  stage<", stages[i], ", ", done, ">(", i == 0 ? "from_memory" : cat("from_", here), ", ",
               last && !by_line ? "to_memory" : cat("to_", there), ");\n");
    if (!last || by_line) out += "  __syncthreads();\n";
    if (last && by_line) out += cat("  out_by_line(from_", there, ");\n");
    done *= stages[i];
  }
  return out;
}

/// One kernel: whole transforms of `points`, or that many points of each column of a longer one.
struct FftPass {
  FunctionRef function;
  int64_t lines = 1, tiles = 1;  // of a block; blocks for each row, 0 where a block takes several rows
  int threads = 0;
  size_t shared = 0;

  int64_t blocks(int64_t rows) const { return tiles > 0 ? rows * tiles : (rows + lines - 1) / lines; }
};

FftPass make_pass(const Device& device, bool wide, int sign, int64_t points, int64_t whole, int64_t done,
                  const FftEnd& from, const FftEnd& to) {
  const bool across = points != whole;
  const int64_t columns = whole / points;
  FftPass p;
  p.lines = across ? (points <= kLongestColumn / 2 ? 8 : 4) : std::max<int64_t>(1, 1024 / points);
  if (wide && across) p.lines /= 2;
  p.tiles = across ? (columns + p.lines - 1) / p.lines : 0;
  p.threads = int(std::clamp<int64_t>((p.lines * points / 8 + 31) / 32 * 32, 64, 512));
  const int64_t buffer =
      across ? (points + points / 8 + 1) * p.lines : (points + points / 8 + 1) * p.lines + p.lines;
  p.shared = size_t(2 * buffer) * (wide ? 16 : 8);
  std::string text =
      cat(kComplexNumbers, "typedef ", wide ? "f64" : "f32", " Real;\n", "constexpr int kPoints = ", points,
          ", kLines = ", p.lines, ", kThreads = ", p.threads, ", kSign = ", sign,
          ";\nconstexpr bool kAcross = ", across ? "true" : "false", ";\nconstexpr i64 kWhole = ", whole,
          ", kColumns = ", columns, ", kDone = ", done, ";\n", roots_text("roots", points, points, sign),
          kFftStages);
  text += across && done > 1 ? outer_text(done * points, sign)
                             : "inline Complex outer(i64, i64) { return {1, 0}; }\n";
  text +=
      cat("typedef ", from.type(), " X;\ntypedef ", to.type(), " Y;\n", take_text(from, wide), give_text(to));
  const std::vector<int64_t> stages = stages_of(points);
  for (const int64_t odd : {3, 5, 7, 11, 13}) {
    if (points % odd == 0) text += odd_text(odd, sign);
  }
  std::string kernel = kFftKernel;
  kernel.replace(kernel.find("%STAGES%"), 8, stage_list(stages, across && done == 1));
  p.function = device.functions().get({"fft", text + kernel});
  return p;
}

/// A transform of n points, which have no prime factor beyond 13. Between its passes values lie in up to two other places.
class FftPasses {
 public:
  FftPasses() = default;
  FftPasses(const Device& device, bool wide, int sign, int64_t n, const FftEnd& from, const FftEnd& to) {
    if (n <= buffer_points(wide)) {
      passes_.push_back(make_pass(device, wide, sign, n, n, 1, from, to));
      return;
    }
    std::vector<int64_t> factors;
    for (int count = 2; factors.empty(); ++count) factors = columns_of(n, count);
    const FftEnd between{.length = n};
    int64_t done = 1;
    for (size_t i = 0; i < factors.size(); ++i) {
      passes_.push_back(make_pass(device, wide, sign, factors[i], n, done, i == 0 ? from : between,
                                  i + 1 == factors.size() ? to : between));
      done *= factors[i];
    }
  }

  size_t size() const { return passes_.size(); }
  size_t places() const { return std::min<size_t>(passes_.size() - 1, 2); }

  void run(const Stream& s, int64_t rows, std::byte* x, std::byte* take_aid, std::byte* y,
           std::byte* give_aid, std::byte* const* places) const {
    std::byte* from = x;
    for (size_t i = 0; i < passes_.size(); ++i) {
      const FftPass& p = passes_[i];
      std::byte* const to = i + 1 == passes_.size() ? y : places[i % 2];
      (*p.function)(s.handle, {p.blocks(rows)}, {p.threads}, p.shared, from, take_aid, to, give_aid, rows);
      from = to;
    }
  }

 private:
  std::vector<FftPass> passes_;
};

double scale_of(const ops::Fft::Attrs& a, int64_t n) {
  if (a.norm == ops::FftNorm::ortho) return 1 / std::sqrt(double(n));
  return a.norm == ops::FftNorm::forward && a.inverse ? 1 / double(n) : 1;
}

struct FftPlan {
  int64_t rows = 0, n = 0, at_once = 0, row_bytes = 0, number_bytes = 0;
  int sign = -1;
};

FftPlan fft_plan_of(const Request& r) {
  const auto& a = r.node.as<ops::Fft>();
  const Shape& x = r.in[0].shape;
  FftPlan p;
  const int64_t length = x.dim(-1).value();
  p.n = is_complex(x.dtype()) ? length : length / 2;
  p.rows = x.elements() / length;
  p.row_bytes = length * int64_t(dtype_size(x.dtype()));
  p.number_bytes = x.dtype() == DType::f64 ? 16 : 8;
  p.sign = a.inverse ? 1 : -1;
  return p;
}

template <class Run>
void by_rows(const FftPlan& p, const Launch& l, Run run) {
  for (int64_t row = 0; row < p.rows; row += p.at_once)
    run(std::min(p.at_once, p.rows - row), l.in[0] + row * p.row_bytes, l.out[0] + row * p.row_bytes);
}

std::unique_ptr<Step> prepare_smooth(const Request& r, FftPlan p, const FftEnd& from, const FftEnd& to) {
  const bool wide = p.number_bytes == 16;
  const FftPasses passes(device_of(r), wide, p.sign, p.n, from, to);
  p.at_once = passes.size() == 1 ? p.rows : std::clamp<int64_t>(kMostAtOnce / p.n, 1, p.rows);
  const size_t place = backend::aligned_size(size_t(p.at_once * p.n * p.number_bytes));
  return make_gpu_step(
      cat(passes.size(), passes.size() == 1 ? " pass" : " passes"),
      [=](Stream& s, const Launch& l) {
        std::byte* const places[] = {l.workspace, l.workspace + place};
        by_rows(p, l, [&](int64_t rows, std::byte* x, std::byte* y) {
          passes.run(s, rows, x, nullptr, y, nullptr, places);
        });
      },
      passes.places() * place);
}

// y = c transform^-1(transform(x c) transform(conj c)), over a power of two points.
std::unique_ptr<Step> prepare_chirp(const Request& r, FftPlan p, FftEnd from, FftEnd to) {
  const bool wide = p.number_bytes == 16;
  int64_t points = 1;
  while (points < 2 * p.n - 1) points *= 2;
  from.times_aid = to.times_aid = true;
  const FftEnd line{.length = points};
  FftEnd product = line;
  product.times_aid = true;
  const Device& device = device_of(r);
  const FftPasses spectrum_of(device, wide, -1, points, line, line),
      forward(device, wide, -1, points, from, product), back(device, wide, 1, points, line, to);
  const FunctionRef chirp_of = device.functions().get(
      {"fft_chirp", cat(kComplexNumbers, "typedef ", wide ? "f64" : "f32", " Real;\n", kFftChirp)});
  p.at_once = std::clamp<int64_t>(kMostAtOnce / points, 1, p.rows);
  const size_t place = backend::aligned_size(size_t(p.at_once * points * p.number_bytes)),
               one = backend::aligned_size(size_t(points * p.number_bytes));
  return make_gpu_step(
      cat("a chirp over ", points, " points"),
      [=](Stream& s, const Launch& l) {
        std::byte *const chirp = l.workspace, *const spectrum = chirp + one, *const values = spectrum + one;
        std::byte* const places[] = {values + place, values + 2 * place};
        (*chirp_of)(s.handle, blocks_for(points), {256}, 0, chirp, values, p.n, points, p.sign);
        spectrum_of.run(s, 1, values, nullptr, spectrum, nullptr, places);
        by_rows(p, l, [&](int64_t rows, std::byte* x, std::byte* y) {
          forward.run(s, rows, x, chirp, values, spectrum, places);
          back.run(s, rows, values, nullptr, y, chirp, places);
        });
      },
      2 * one + (1 + forward.places()) * place);
}

Support accepts(const Request& r) {
  if (!r.in[0].is_row_major()) return Support::no("operand 0 is strided");
  return Support::yes();
}

std::unique_ptr<Step> prepare(const Request& r) {
  const DType t = r.in[0].dtype();
  if (r.in[0].shape.elements() == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  const FftPlan p = fft_plan_of(r);
  const FftEnd from{
      .kind = is_complex(t) ? FftEnd::Kind::complex : FftEnd::Kind::split, .dtype = t, .length = p.n};
  FftEnd to = from;
  to.scale = scale_of(r.node.as<ops::Fft>(), p.n);
  return has_small_factors(p.n) ? prepare_smooth(r, p, from, to) : prepare_chirp(r, p, from, to);
}

}  // namespace

void add_fft(KernelTable& table) { table.add<ops::Fft>({"fft", accepts, prepare}); }

}  // namespace rlx::cuda
