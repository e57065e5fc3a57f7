// Products of fp8 with fp8 of many rows on the matrix units of groups of warps; operands that the copy engine cannot read are copied first.
#include <algorithm>

#include "rlx/backend/control/body.h"
#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/driver/fastest.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/backend/cuda/nodes/product_turns.h"
#include "rlx/backend/cuda/nodes/product_ways.h"
#include "rlx/backend/cuda/nodes/scaled_products.h"
#include "rlx/backend/cuda/nodes/untried.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/backend/cuda/rounding.h"
#include "rlx/base/options.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kLeastRows = 64;  // more than these
constexpr double kLeastWork = 1e8;  // operations that are worth a measurement
constexpr size_t kMostWays = 8;     // of the own kernel that are measured
constexpr int64_t kUnit = 16;       // bytes that rows begin at for the copy engine
constexpr int kVector = 8;

/// An operand as the kernel reads it, lines of k bytes; of a copy where it lies otherwise.
struct Lines {
  int64_t step = 0;  // from line to line
  std::shared_ptr<Step> copy;
  size_t bytes = 0;  // of the copy
};

// `lines` x k bytes with these steps.
Lines lines_of(const Device& device, DType t, int64_t lines, int64_t k, int64_t line, int64_t step) {
  const int64_t least = round_up(k, kUnit);
  if ((step == 1 || k == 1) && (lines == 1 || (line >= k && line % kUnit == 0)))
    return {lines == 1 ? least : line, nullptr, 0};
  const Shape shape(t, {lines, k});
  const Arg from{.shape = shape, .layout = {.strides = {line, step}}};
  const Arg to{.shape = shape, .layout = {.strides = {least, 1}}};
  return {least, prepare_gpu_copy(device, from, to), backend::aligned_size(size_t(lines * least))};
}

// Params, and the sums as they are.
std::string hooks() {
  return "struct Params { T* y; const f32* of_x; const f32* of_w[kSides]; };\n"
         "inline void finish(const Params& p, int row, int column, const Pack<T, kVector> (&v)[kSides]) { store(p.y + i64(row) * kColumns + column, v[0]); }\n";
}

class ScaledTurnsStep final : public Step {
 public:
  ScaledTurnsStep(const Device& device, const Request& r, const ScaledProduct& p, std::unique_ptr<Step> plain)
      : device_(device), p_(p), plain_(std::move(plain)) {
    const MatrixSteps &x = p.steps[kScaledX], &w = p.steps[kScaledW];
    x_ = lines_of(device, p.x, p.m, p.k, x.row, x.column);
    w_ = lines_of(device, p.w, p.n, p.k, w.column, w.row);
    sizes_ = turns_of(p, kVector);
    sizes_.a_row = x_.step, sizes_.b_row = 1, sizes_.b_column = w_.step;
    sizes_.b_is_fixed = p.w_is_fixed && !w_.copy;
    if (!turns_problem(sizes_).empty()) return;
    workspace = std::max(plain_->workspace, x_.bytes + w_.bytes);
    note = plain_->note;
    const std::vector<TurnsTiles> tiles =
        turns_tiles(sizes_, device.multiprocessors(), device.shared_memory());
    const int way = tiles.empty() ? 0 : best_of(r, tiles);
    if (way < 1) return;
    own_.emplace(device, sizes_, tiles[size_t(way) - 1], hooks());
    note = cat(p.x, " x ", p.w, ", groups of warps, ", p.m, " x ", p.n, " x ", p.k, ", ",
               tiles[size_t(way) - 1].text(), x_.copy || w_.copy ? ", of copies" : "");
  }

  bool is_possible() const { return turns_problem(sizes_).empty(); }
  std::unique_ptr<Step> take_plain() { return std::move(plain_); }

  void run(const Launch& l) const override {
    const auto is_fit = [](const Lines& x, const std::byte* at) { return x.copy || is_aligned(at); };
    if (!own_ || !is_fit(x_, l.in[0]) || !is_fit(w_, l.in[1]) || !is_aligned(l.out[0])) return plain_->run(l);
    run_own(*own_, l, stream_of(l).handle);
  }

 private:
  struct Params {
    std::byte* y;
    const std::byte *of_x, *of_w;
  };

  void run_own(const ProductTurns& own, const Launch& l, Stream_* stream) const {
    std::byte* operands[] = {l.in[0], l.in[1]};
    std::byte* places[] = {l.workspace, l.workspace + x_.bytes};
    const Lines* lines[] = {&x_, &w_};
    for (size_t i = 0; i < 2; ++i) {
      if (!lines[i]->copy) continue;
      Launch one = l;
      one.in = l.in + i, one.out = places + i;
      lines[i]->copy->run(one);
      operands[i] = places[i];
    }
    Params params{l.out[0], p_.scaled[0] ? l.in[2] : nullptr, p_.scaled[1] ? l.in[3] : nullptr};
    const std::byte* const b = operands[1];
    own.run(*device_.gpu(), stream, &params, operands[0], {&b, 1});
  }

  // 0: the other kernel; 1, 2, ..: tiles. Without a GPU the best by the model.
  int best_of(const Request& r, const std::vector<TurnsTiles>& tiles) const {
    if (const auto wanted = option_int("RLX_CUDA_TURNS"))
      return int(std::min(*wanted, int64_t(tiles.size())));
    if (!device_.gpu()) return 1;
    if (2.0 * double(p_.m) * double(p_.n) * double(p_.k) < kLeastWork) return 0;
    const size_t count = std::min(tiles.size(), kMostWays);
    std::string key = cat("scaled product ", p_.x, " ", p_.w, " ", p_.y, " ", p_.m, " ", p_.n, " ", p_.k, " ",
                          p_.group, " ", p_.steps[kScaledX].row, " ", p_.steps[kScaledX].column, " ",
                          p_.steps[kScaledW].row, " ", p_.steps[kScaledW].column, " ", p_.column_block,
                          p_.scaled[0] ? " of x" : "", p_.scaled[1] ? " of w" : "");
    for (size_t i = 0; i < count; ++i) key += cat("\n", tiles[i].text());
    std::vector<backend::Block> blocks;
    std::vector<std::byte*> at;
    std::vector<ProductTurns> own;
    const auto ask = [&] {
      for (size_t i = own.size(); i < count; ++i) own.emplace_back(device_, sizes_, tiles[i], hooks());
    };
    const auto fill = [&] {
      const auto add = [&](size_t bytes) {
        blocks.emplace_back(device_.memory(), bytes);
        at.push_back(blocks.back().get());
      };
      for (const Arg& a : r.in) add(size_t(bytes_of(a)));
      add(size_t(bytes_of(r.out[0])));
      add(workspace);
      ask();
    };
    try {
      const auto queue = [&](Stream_* stream, int way) {
        if (at.empty()) fill();
        Stream s{*device_.gpu(), stream};
        const Launch l{.team = default_pool(),
                       .in = at.data(),
                       .out = at.data() + r.in.size(),
                       .workspace = at.back(),
                       .stream = &s};
        constexpr int kInARow = 8;  // as steps of a program are, where no launch waits for the host
        for (int i = 0; i < kInARow; ++i) {
          if (way == 0) {
            plain_->run(l);
          } else {
            run_own(own[size_t(way) - 1], l, stream);
          }
        }
      };
      return fastest(*device_.gpu(), key, int(count) + 1, Trials::recorded, ask, queue);
    } catch (const Error&) {
      return 0;  // too little memory to try
    }
  }
  const Device& device_;
  ScaledProduct p_;
  std::unique_ptr<Step> plain_;
  Lines x_, w_;
  TurnsProduct sizes_;
  std::optional<ProductTurns> own_;
};

}  // namespace

TurnsProduct turns_of(const ScaledProduct& p, int vector) {
  const MatrixSteps &x = p.steps[kScaledX], &w = p.steps[kScaledW], &of_x = p.steps[kScaledOfX],
                    &of_w = p.steps[kScaledOfW];
  return {.dtype = p.y,
          .m = p.m,
          .n = p.n,
          .k = p.k,
          .a_row = x.row,
          .b_row = w.row,
          .b_column = w.column,
          .vector = vector,
          .b_is_fixed = p.w_is_fixed,
          .fp8 = TurnsFp8{.a = p.x,
                          .b = p.w,
                          .scaled_rows = p.scaled[0],
                          .scaled_columns = p.scaled[1],
                          .group = p.group,
                          .row_step = of_x.row,
                          .row_group = of_x.column,
                          .column_step = of_w.column,
                          .column_group = of_w.row,
                          .column_block = p.column_block}};
}

std::unique_ptr<Step> on_groups_of_warps(const Request& r, const ScaledProduct& p,
                                         std::unique_ptr<Step> plain) {
  const Device& device = device_of(r);
  const MatrixSteps& y = p.steps[kScaledY];
  const bool rows = p.n == 1 || (y.column == 1 && (p.m == 1 || y.row == p.n));
  // Sums of f32 are exact on the other kernel alone.
  if (device.functions().architecture() != kHopper || p.y == DType::f32 || p.batch * p.places() > 1 ||
      p.m <= kLeastRows || p.n % kVector != 0 || !rows || !takes_untried("scaled_turns"))
    return plain;
  auto step = std::make_unique<ScaledTurnsStep>(device, r, p, std::move(plain));
  if (!step->is_possible()) return step->take_plain();
  return step;
}

}  // namespace rlx::cuda
