// Products of many rows with one input and the elements behind them: one kernel, or the library's products and a pass over their results, whichever was measured to be faster.
#include <algorithm>
#include <optional>

#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/nodes/few_rows.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/backend/cuda/nodes/product_turns.h"
#include "rlx/backend/cuda/nodes/product_ways.h"
#include "rlx/backend/cuda/nodes/scaled_products.h"
#include "rlx/backend/cuda/nodes/streamed_tiles.h"
#include "rlx/backend/cuda/nodes/untried.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/base/options.h"
#include "rlx/ops/linalg/matmul.h"

namespace rlx::cuda {
namespace {

constexpr double kLeastWork = 1e8;  // operations that are worth a measurement
constexpr size_t kMostWays = 8;     // of the own kernel that are measured
constexpr int kNone = -1;           // no operand

/// A product of fp8 by itself.
ScaledProduct scaled_of(const ProductReading& g, const ir::Node& product) {
  std::vector<Arg> in;
  for (const ir::Value v : product.inputs) in.push_back(g.arg(v));
  const Shape& s = product.shapes[0];
  const Arg out{.shape = s, .layout = backend::Layout::row_major(s.dims())};
  return read_scaled_product({.node = product, .in = in, .out = {&out, 1}});
}

TurnsProduct sizes_of(const ProductReading& g) {
  const Arg& w = g.arg(g.products.front()->inputs[1]);
  const region::Region r = *g.region_of(*g.elements).region;
  if (g.products.front()->is<ops::ScaledMatmul>()) {
    TurnsProduct p = turns_of(scaled_of(g, *g.products.front()), schedule_of(r, true).vector);
    p.sides = int(g.products.size());
    for (const ir::Node* other : g.products) p.b_is_fixed = p.b_is_fixed && scaled_of(g, *other).w_is_fixed;
    return p;
  }
  return {.dtype = g.dtype(),
          .m = g.row_count(),
          .n = g.all_columns(),
          .k = g.depth(),
          .a_row = g.depth(),
          .b_row = w.layout.strides[0],
          .b_column = w.layout.strides[1],
          .sides = int(g.products.size()),
          .vector = schedule_of(r, true).vector,
          .b_is_fixed = std::all_of(g.products.begin(), g.products.end(),
                                    [&](const ir::Node* p) { return g.arg(p->inputs[1]).fixed; })};
}

std::string problem_of(const ProductReading& g) {
  if (!g.elements || g.rows) return "no elements behind products alone";
  if (g.row_count() <= StreamedTiles::kMostRows) return "few rows";
  if (g.products.size() > 2) return "more than two products";
  const Arg& w = g.arg(g.products.front()->inputs[1]);
  const bool scaled = g.products.front()->is<ops::ScaledMatmul>();
  if (scaled && !takes_untried("scaled_turns")) return std::string(kUntried);
  for (const ir::Node* p : g.products) {
    if (!p->is<ops::Matmul>() && !p->is<ops::ScaledMatmul>()) return "packed weights of many rows";
    if (scaled) {
      for (const ir::Value v : p->inputs) {
        if (g.operand(v) < 0) return "an operand that is no leaf of the group";
        if (g.arg(v).dtype() == DType::f64) return "scales of f64";
      }
      const ScaledProduct one = scaled_of(g, *p);
      if (one.batch * one.places() > 1 || one.m != g.row_count()) return "scales of several matrices";
      if (turns_of(one, 8).fp8 != turns_of(scaled_of(g, *g.products.front()), 8).fp8)
        return "weights are scaled in different ways";
    }
    const Arg& own = g.arg(p->inputs[1]);
    if (own.shape.rank() != 2) return "a matrix of weights for each of several";
    if (own.layout.strides != w.layout.strides || own.dtype() != (scaled ? w.dtype() : g.dtype()))
      return "weights lie in different ways";
  }
  for (uint32_t i = 0; i < g.elements->shapes.size(); ++i) {
    if (g.result(g.elements->result(i)) < 0) return "a result that nobody reads";
  }
  for (const ir::Node* p : g.products) {
    if (g.result(p->result()) >= 0) return "a product that others read";
  }
  if (!g.arg(g.input()).is_row_major()) return "the input is strided";
  if (const std::string why = g.elements_problem(); !why.empty()) return why;
  return turns_problem(sizes_of(g));
}

Support accepts(const Request& r) {
  if (r.node.as<ops::Fused>().body->name() != kProductGroup) return Support::no("no group of products");
  const auto wanted = option_int("RLX_CUDA_TURNS");
  if (wanted && *wanted < 1) return Support::no("RLX_CUDA_TURNS is ", *wanted);
  const std::string why = problem_of(ProductReading(r));
  return why.empty() ? Support::yes() : Support::no(why);
}

class ProductElementsStep final : public Step {
 public:
  explicit ProductElementsStep(const Request& r) : device_(device_of(r)), plain_(device_, ProductReading(r)) {
    const ProductReading g(r);
    sizes_ = sizes_of(g);
    a_ = g.operand(g.input());
    for (const ir::Node* p : g.products) {
      b_.push_back(g.operand(p->inputs[1]));
      if (!sizes_.fp8) continue;
      if (scales_.empty()) scales_.push_back(p->inputs.size() > 2 ? g.operand(p->inputs[2]) : kNone);
      scales_.push_back(p->inputs.size() > 3 ? g.operand(p->inputs[3]) : kNone);
    }
    read_elements(g);
    workspace = plain_.workspace();  // addresses that do not fit are known when it runs
    const std::vector<TurnsTiles> tiles =
        turns_tiles(sizes_, device_.multiprocessors(), device_.shared_memory());
    const int way = tiles.empty() ? 0 : best_of(r, tiles);
    const std::string what = cat(sizes_.m, " x ", sizes_.n, " x ", sizes_.k, ", a region of elements");
    if (way > 0) own_.emplace(device_, sizes_, tiles[size_t(way) - 1], hooks_);
    note = cat(sizes_.sides > 1 ? "two products, " : "", what, ": ",
               own_ ? tiles[size_t(way) - 1].text() : cat("a pass behind ", plain_.note()));
  }

  void run(const Launch& l) const override {
    const Stream& s = stream_of(l);
    const auto is_fit = [&](int member) { return is_aligned(member_address(l, member)); };
    if (own_ && is_fit(a_) && std::all_of(b_.begin(), b_.end(), is_fit) &&
        std::all_of(members_.begin(), members_.end(), is_fit))
      return run_own(*own_, s.handle, l);
    plain_.run(l, l.workspace);
  }

 private:
  // Params and finish; which operand or result each member of Params is.
  void read_elements(const ProductReading& g) {
    const ir::Node& n = *g.elements;
    const region::Region r = *g.region_of(n).region;
    std::vector<bool> values(r.arguments.size(), false);
    std::string fields, call;
    const auto member = [&](int source, const std::string& type) {
      fields += cat(" ", type, " m", members_.size(), ";");
      call += cat(", p.m", members_.size());
      members_.push_back(source);
    };
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const ir::Value v = n.inputs[i];
      const int product = g.product_number(v);
      values[i] = product >= 0;
      if (values[i]) {
        call += cat(", v[", product, "]");
      } else {
        member(g.operand(v), cat("const ", memory_type(g.arg(v).dtype()), "*"));
      }
    }
    for (uint32_t i = 0; i < n.shapes.size(); ++i) {
      member(-1 - g.result(n.result(i)), cat(memory_type(n.shapes[i].dtype()), "*"));
    }
    hooks_ = cat(
        "struct Params {", fields, sizes_.fp8 ? " const f32* of_x; const f32* of_w[kSides];" : "", " };\n",
        print_vector_function(r, schedule_of(r, true), "elements_region", values),
        "inline void finish(const Params& p, int row, int column, const Pack<T, kVector> (&v)[kSides]) {\n",
        "  elements_region(i64(row) * kColumns + column", call, ");\n}\n");
  }

  // 0: the products and a pass; 1, 2, ..: tiles. Without a GPU the best by the model.
  int best_of(const Request& r, const std::vector<TurnsTiles>& tiles) const {
    if (const auto wanted = option_int("RLX_CUDA_TURNS"))
      return int(std::min(*wanted, int64_t(tiles.size())));
    if (!device_.gpu()) return 1;
    const double work = 2.0 * double(sizes_.m) * double(sizes_.n) * double(sizes_.k) * double(sizes_.sides);
    if (work < kLeastWork) return 0;
    const size_t count = std::min(tiles.size(), kMostWays);
    std::string key = cat("product with elements ", sizes_.dtype, " ", sizes_.m, " ", sizes_.n, " ", sizes_.k,
                          " ", sizes_.b_row, " ", sizes_.b_column, "\n", hooks_);
    if (sizes_.fp8) {
      const TurnsFp8& f = *sizes_.fp8;
      key += cat("\n", f.a, " ", f.b, " scales ", f.scaled_rows, f.scaled_columns, " ", f.group, " ",
                 f.row_step, " ", f.row_group, " ", f.column_step, " ", f.column_group, " ", f.column_block);
    }
    for (size_t i = 0; i < count; ++i) key += cat("\n", tiles[i].text());
    return fastest_way(device_, r, plain_, key, count, [&]() -> OwnWays {
      auto own = std::make_shared<std::vector<ProductTurns>>();
      for (size_t i = 0; i < count; ++i) own->emplace_back(device_, sizes_, tiles[i], hooks_);
      return [this, own](size_t way, Stream_* stream, const Launch& l) { run_own((*own)[way], stream, l); };
    });
  }

  void run_own(const ProductTurns& own, Stream_* stream, const Launch& l) const {
    std::vector<std::byte*> params;
    for (const int m : members_) params.push_back(member_address(l, m));
    for (const int s : scales_) params.push_back(s == kNone ? nullptr : l.in[s]);
    std::vector<const std::byte*> weights;
    for (const int b : b_) weights.push_back(l.in[b]);
    own.run(*device_.gpu(), stream, params.data(), l.in[a_], weights);
  }

  const Device& device_;
  PlainWay plain_;
  TurnsProduct sizes_;
  int a_ = 0;
  std::vector<int> b_;        // of each side
  std::vector<int> scales_;   // of fp8: that of a, then of each side; kNone where there is none
  std::vector<int> members_;  // of Params: an operand (0, 1, ..) or a result (-1, -2, ..)
  std::string hooks_;
  std::optional<ProductTurns> own_;
};

std::unique_ptr<Step> prepare(const Request& r) { return std::make_unique<ProductElementsStep>(r); }

}  // namespace

void add_product_elements(KernelTable& table, const std::string& architecture) {
  if (architecture == kHopper) table.add<ops::Fused>({"product_elements", accepts, prepare});
}

}  // namespace rlx::cuda
