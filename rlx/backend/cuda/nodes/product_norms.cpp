// A product of many rows and the region of rows behind it, such as a residual and a norm: one kernel, or the library's product and a pass, whichever was measured to be faster.
#include <optional>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/nodes/few_rows.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/backend/cuda/nodes/product_rows.h"
#include "rlx/backend/cuda/nodes/product_ways.h"
#include "rlx/backend/cuda/nodes/streamed_tiles.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/base/options.h"

namespace rlx::cuda {
namespace {

constexpr double kLeastWork = 1e8;  // operations that are worth a measurement
constexpr size_t kMostWays = 8;     // of the own kernel that are measured

TurnsProduct sizes_of(const ProductReading& g) {
  const Arg& w = g.arg(g.products.front()->inputs[1]);
  return {.dtype = g.dtype(),
          .m = g.row_count(),
          .n = ProductReading::columns(*g.products.front()),
          .k = g.depth(),
          .a_row = g.depth(),
          .b_row = w.layout.strides[0],
          .b_column = w.layout.strides[1],
          .b_is_fixed = w.fixed};
}

// With the product where the kernel puts it: rows of rows_line elements.
region::Built region_of(const ProductReading& g, int64_t line) {
  const ir::Node& n = *g.elements;
  std::vector<Shape> types;
  std::vector<region::Layout> in, out;
  for (const ir::Value v : n.inputs) {
    if (g.product_number(v) < 0) {
      types.push_back(g.arg(v).shape), in.push_back({g.arg(v).layout.strides});
      continue;
    }
    types.push_back(g.products.front()->shapes[0]);
    std::vector<int64_t> strides = backend::Layout::row_major(types.back().dims()).strides;
    for (size_t i = 0; i + 1 < strides.size(); ++i)
      strides[i] = strides[i] / ProductReading::columns(*g.products.front()) * line;
    in.push_back({std::move(strides)});
  }
  return region::of_node(n, types, in, out);
}

// Sums in the order of the pass alone where that has a warp for a row.
Schedule schedule_for(const region::Region& r) {
  const Schedule s = schedule_of(r, true);
  return s.spread == Spread::warp ? s : warp_schedule(r, 4, true);
}

std::string problem_of(const ProductReading& g) {
  if (!g.elements || g.rows || g.products.size() != 1) return "no region of rows behind one product";
  if (g.row_count() <= StreamedTiles::kMostRows) return "few rows";
  const ir::Node& p = *g.products.front();
  if (!p.is<ops::Matmul>()) return "packed weights";
  const Arg& w = g.arg(p.inputs[1]);
  if (w.shape.rank() != 2 || w.dtype() != g.dtype() || p.shapes[0].dtype() != g.dtype())
    return "weights of another kind";
  if (g.result(p.result()) >= 0) return "a product that others read";
  for (uint32_t i = 0; i < g.elements->shapes.size(); ++i) {
    if (g.result(g.elements->result(i)) < 0) return "a result that nobody reads";
  }
  if (!g.arg(g.input()).is_row_major()) return "the input is strided";
  const TurnsProduct sizes = sizes_of(g);
  if (const std::string why = rows_problem(sizes); !why.empty()) return why;
  const region::Built built = region_of(g, rows_line(sizes));
  if (!built) return built.refusal;
  const region::Region& r = *built.region;
  if (!r.has_reduction() || r.rows() != sizes.m || r.columns() != sizes.n) return "rows of another shape";
  const Schedule s = schedule_for(r);
  if (r.count(region::Role::scratch) > 0 && !s.in_registers) return "rows too long for registers";
  if (s.rounds * s.vector > 64) return "rows too long for registers";
  return {};
}

Support accepts(const Request& r) {
  if (r.node.as<ops::Fused>().body->name() != kProductRowsGroup)
    return Support::no("no product with rows behind it");
  const auto wanted = option_int("RLX_CUDA_ROWS");
  if (wanted && *wanted < 1) return Support::no("RLX_CUDA_ROWS is ", *wanted);
  const std::string why = problem_of(ProductReading(r));
  return why.empty() ? Support::yes() : Support::no(why);
}

class ProductNormStep final : public Step {
 public:
  explicit ProductNormStep(const Request& r) : device_(device_of(r)), plain_(device_, ProductReading(r)) {
    const ProductReading g(r);
    sizes_ = sizes_of(g);
    a_ = g.operand(g.input()), b_ = g.operand(g.products.front()->inputs[1]);
    read_rows(g);
    workspace = plain_.workspace();  // addresses that do not fit are known when it runs
    const std::vector<RowsCut> cuts =
        rows_cuts(sizes_, device_.gpu() ? device_.gpu()->multiprocessors() : 132, shared_memory_of(device_));
    const int way = cuts.empty() ? 0 : best_of(r, cuts);
    if (way > 0) own_.emplace(device_, sizes_, cuts[size_t(way) - 1], lanes_, hooks_);
    note = cat(sizes_.m, " x ", sizes_.n, " x ", sizes_.k, ", a region of rows: ",
               own_ ? cuts[size_t(way) - 1].text() : cat("a pass behind ", plain_.note()));
  }

  void run(const Launch& l) const override {
    const auto is_fit = [&](int member) { return is_aligned(member_address(l, member)); };
    if (own_ && is_fit(a_) && is_fit(b_) && std::all_of(members_.begin(), members_.end(), is_fit))
      return run_own(*own_, stream_of(l).handle, l);
    plain_.run(l, l.workspace);
  }

 private:
  // Params and finish_row; which operand or result each member of Params is.
  void read_rows(const ProductReading& g) {
    const ir::Node& n = *g.elements;
    const region::Region r = *region_of(g, rows_line(sizes_)).region;
    const Schedule s = schedule_for(r);
    lanes_ = s.lanes;
    std::string fields, call;
    const auto member = [&](int source, const std::string& type) {
      fields += cat(" ", type, " m", members_.size(), ";");
      call += cat("p.m", members_.size(), ", ");
      members_.push_back(source);
    };
    for (const ir::Value v : n.inputs) {
      if (g.product_number(v) >= 0) {
        call += "products, ";
      } else {
        member(g.operand(v), cat("const ", memory_type(g.arg(v).dtype()), "*"));
      }
    }
    for (uint32_t i = 0; i < n.shapes.size(); ++i)
      member(-1 - g.result(n.result(i)), cat(memory_type(n.shapes[i].dtype()), "*"));
    hooks_ = cat("struct Params {", fields, " };\n",
                 print_row_function(r, s, "rows_region", std::vector<bool>(r.arguments.size(), false)),
                 "inline void finish_row(const Params& p, const T* products, int row) { rows_region(", call,
                 "row); }\n");
  }

  // 0: the product and a pass; 1, 2, ..: cuts. Without a GPU the best by the model.
  int best_of(const Request& r, const std::vector<RowsCut>& cuts) const {
    if (const auto wanted = option_int("RLX_CUDA_ROWS")) return int(std::min(*wanted, int64_t(cuts.size())));
    if (!device_.gpu()) return 1;
    if (2.0 * double(sizes_.m) * double(sizes_.n) * double(sizes_.k) < kLeastWork) return 0;
    const size_t count = std::min(cuts.size(), kMostWays);
    std::string key = cat("product with rows ", sizes_.dtype, " ", sizes_.m, " ", sizes_.n, " ", sizes_.k,
                          " ", sizes_.b_row, " ", sizes_.b_column, "\n", hooks_);
    for (size_t i = 0; i < count; ++i) key += cat("\n", cuts[i].text());
    return fastest_way(device_, r, plain_, key, count, [&]() -> OwnWays {
      auto own = std::make_shared<std::vector<ProductRows>>();
      for (size_t i = 0; i < count; ++i) own->emplace_back(device_, sizes_, cuts[i], lanes_, hooks_);
      return [this, own](size_t way, Stream_* stream, const Launch& l) { run_own((*own)[way], stream, l); };
    });
  }

  void run_own(const ProductRows& own, Stream_* stream, const Launch& l) const {
    std::vector<std::byte*> params;
    for (const int m : members_) params.push_back(member_address(l, m));
    own.run(*device_.gpu(), stream, params.data(), l.in[a_], l.in[b_]);
  }

  const Device& device_;
  PlainWay plain_;
  TurnsProduct sizes_;
  int a_ = 0, b_ = 0, lanes_ = 32;
  std::vector<int> members_;  // of Params: an operand (0, 1, ..) or a result (-1, -2, ..)
  std::string hooks_;
  std::optional<ProductRows> own_;
};

std::unique_ptr<Step> prepare(const Request& r) { return std::make_unique<ProductNormStep>(r); }

}  // namespace

void add_product_norms(KernelTable& table, const std::string& architecture) {
  if (architecture == "sm_90a") table.add<ops::Fused>({"product_rows", accepts, prepare});
}

}  // namespace rlx::cuda
