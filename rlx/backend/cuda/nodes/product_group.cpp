// Products of few rows with one input, the region of rows in front of them and the operator behind them, or the rotations and caches that take their columns, as one kernel (groups/groups.h).
#include <algorithm>

#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/nodes/copied_tiles.h"
#include "rlx/backend/cuda/nodes/few_rows.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/backend/cuda/nodes/packed_rows.h"
#include "rlx/backend/cuda/nodes/product_hooks.h"
#include "rlx/backend/cuda/nodes/streamed_tiles.h"
#include "rlx/base/options.h"

namespace rlx::cuda {
namespace {

constexpr int kThreads = 256;  // of a block, in most kernels of products

/// One or two products of more rows than few, with a region of elements behind them (kernels/streamed_tiles.h, kernels/copied_tiles.h).
bool is_tiled(const ProductReading& g) {
  return g.elements && !g.rows && g.products.size() <= CopiedTiles::kMostSides &&
         g.row_count() > most_few_rows();
}

FewRows tiled_sizes(const ProductReading& g) {
  const Arg& w = g.arg(g.products.front()->inputs[1]);
  const bool fixed = std::all_of(g.products.begin(), g.products.end(),
                                 [&](const ir::Node* p) { return g.arg(p->inputs[1]).fixed; });
  return {.dtype = g.dtype(),
          .m = g.row_count(),
          .n = g.all_columns(),
          .k = g.depth(),
          .a_row = g.depth(),
          .c_row = g.all_columns(),
          .b_row = w.layout.strides[0],
          .b_column = w.layout.strides[1],
          .b_is_fixed = fixed};
}

/// What a processor has for products of more rows than few.
enum class Means : uint8_t { none, shared_memory, copy_engine };

std::string tiled_problem(const ProductReading& g, Means means) {
  if (means == Means::none) return "too little shared memory";
  for (const ir::Node* p : g.products) {
    if (!p->is<ops::Matmul>()) return "packed weights of many rows";
    if (g.arg(p->inputs[1]).layout.strides != g.arg(g.products.front()->inputs[1]).layout.strides)
      return "weights of different layouts";
  }
  if (!g.arg(g.input()).is_row_major()) return "the input is strided";
  const auto sides = int64_t(g.products.size());
  const bool copied = means == Means::copy_engine && CopiedTiles::suits(tiled_sizes(g), sides);
  if (!copied && (sides > 1 || !StreamedTiles::suits(tiled_sizes(g)))) return "another kernel is faster";
  return g.elements_problem();
}

// Whether what the region of rows keeps fits into the registers of so many threads.
bool row_function_fits(const ProductReading& g, int threads) {
  if (!g.rows) return true;
  const region::Region r = *g.region_of(*g.rows).region;
  for (const bool aligned : {true, false}) {
    if (r.count(region::Role::scratch) > 0 && !block_schedule(r, threads, aligned).in_registers) return false;
  }
  return true;
}

std::string problem_of(const ProductReading& g) {
  if (g.row_count() > most_few_rows()) return "many rows";
  const bool packed = g.products.front()->is<ops::DequantMatmul>();
  const int64_t piece = 16 / int64_t(dtype_size(g.dtype())), k = g.depth();
  if (!packed && k % piece != 0) return "rows of odd length";
  for (const ir::Node* p : g.products) {
    const Arg& w = g.arg(p->inputs[1]);
    if (packed ? !w.is_row_major() : w.layout.strides != std::vector<int64_t>{1, k})
      return "weights are strided";
  }
  if (packed) {
    const auto& a = g.products.front()->as<ops::DequantMatmul>();
    if (const std::string why = packed_rows_problem(a, g.dtype(), g.row_count(), k); !why.empty()) return why;
  }
  if (!g.rows && !g.arg(g.input()).is_row_major()) return "the input is strided";
  if (g.rows) {
    const region::Built built = g.region_of(*g.rows);
    if (!built) return built.refusal;
    const region::Region& r = *built.region;
    if (!r.has_reduction() || r.rows() != g.row_count() || r.columns() != k) return "rows of another shape";
    if (!row_function_fits(g, kThreads)) return "rows too long for registers";
  }
  return g.elements ? g.elements_problem() : std::string();
}

bool is_turned(const Request& r) { return r.node.as<ops::Fused>().body->name() == kTurnedGroup; }
// What becomes of the columns of a group of products with rotations and caches behind them.
std::optional<MovedColumns> moved_of(const ProductReading& g) {
  return is_turned(g.request()) ? std::optional<MovedColumns>(g) : std::nullopt;
}

// The same with rotations and caches behind it, for few rows.
Support accepts_turned(const Request& r) {
  if (!is_turned(r)) return Support::no("no products with moves of rows");
  if (option("RLX_CUDA_MOVES").value_or("1") == "0") return Support::no("RLX_CUDA_MOVES is 0");
  const ProductReading g(r);
  if (g.products.empty()) return Support::no("no products");
  for (const ir::Node* p : g.products) {
    if (g.operand(p->inputs[1]) < 0 || p->inputs[0] != g.input())
      return Support::no("no products of one input");
  }
  if (const std::string why = problem_of(g); !why.empty()) return Support::no(why);
  const MovedColumns moved(g);
  return moved.problem.empty() ? Support::yes() : Support::no(moved.problem);
}

template <Means kMeans>
Support accepts(const Request& r) {
  if (r.node.as<ops::Fused>().body->name() != kProductGroup) return Support::no("no group of products");
  for (const Arg& a : r.in) {
    if (!a.is_row_major() && a.shape.rank() != 2) return Support::no("an operand is strided");
  }
  const ProductReading g(r);
  if (g.elements && g.elements->shapes.size() > 1) return Support::no("elements of several results");
  const std::string why = is_tiled(g) ? tiled_problem(g, kMeans) : problem_of(g);
  return why.empty() ? Support::yes() : Support::no(why);
}

std::vector<std::byte*> addresses(const Launch& l, const std::vector<int>& members) {
  std::vector<std::byte*> out;
  for (const int m : members) out.push_back(m >= 0 ? l.in[m] : l.out[-1 - m]);
  return out;
}

/// Products of few rows and, in front of and behind them, whatever the group has.
class ProductGroupStep final : public Step {
 public:
  explicit ProductGroupStep(const Request& r)
      : device_(device_of(r)), node_(r.node), in_(r.in.begin(), r.in.end()) {
    node_.uses.clear();
    const ProductReading g(r);
    const std::optional<MovedColumns> moved = moved_of(g);
    is_packed_ = g.products.front()->is<ops::DequantMatmul>();
    rows_ = g.row_count();
    wide_ = load(r, true);
    load_phase(r);
    note = cat(g.rows ? "a region of rows, " : "", g.products.size(),
               g.products.size() == 1 ? " product" : " products",
               moved        ? cat(", ", moved->rows.moves.size(), " moves of rows")
               : g.elements ? ", a region of elements"
                            : "",
               ": ", g.row_count(), " x ", g.all_columns(), " x ", g.depth());
    if (!moved) return;
    moves_ = true;
    fault_ = fault_of(moved->rows.moves);
    copies_ = cache_copies(r, moved->rows.caches);
    in_place = moved->rows.caches;
  }

  void run(const Launch& l) const override {
    if (moves_) copies_(l);
    const bool aligned = std::all_of(wide_.members.begin(), wide_.members.end(),
                                     [&](int m) { return is_aligned(address(l, m)); });
    const Loaded& use = aligned ? wide_ : anywhere_.get([&] { return load_anywhere(); });
    std::vector<uint64_t> params = words(l, use.members);
    Chain* const chain = aligned && phase_ ? chain_of(l) : nullptr;
    if (!chain) return launch(use.kernel, stream_of(l), std::move(params));
    chain->add(phase_, words(l, phase_members_),
               [this, &kernel = use.kernel, params = std::move(params),
                &s = *static_cast<Stream*>(l.stream)] { launch(kernel, s, params); });
  }

 private:
  struct Loaded {
    ColumnProducts kernel;
    std::vector<int> members;
  };

  void launch(const ColumnProducts& kernel, const Stream& s, std::vector<uint64_t> params) const {
    if (is_packed_) return run_packed_rows(kernel, s, rows_, params.data());
    void* parameters[] = {params.data(), nullptr};
    kernel.function->launch(s.handle, kernel.grid, kernel.block, kernel.shared, parameters);
  }

  static std::byte* address(const Launch& l, int member) {
    return member >= 0 ? l.in[member] : l.out[-1 - member];
  }
  // Params.
  std::vector<uint64_t> words(const Launch& l, const std::vector<int>& members) const {
    std::vector<uint64_t> out;
    for (const int m : members) out.push_back(reinterpret_cast<uintptr_t>(address(l, m)));
    if (!moves_) return out;
    out.push_back(reinterpret_cast<uintptr_t>(static_cast<Stream*>(l.stream)->fault));
    out.push_back(fault_);
    return out;
  }

  static FewRows sizes_of(const ProductReading& g, const MovedColumns* moved) {
    const bool fixed = std::all_of(g.products.begin(), g.products.end(),
                                   [&](const ir::Node* p) { return g.arg(p->inputs[1]).fixed; });
    return {.dtype = g.dtype(),
            .m = g.row_count(),
            .n = moved ? moved->pairs() : g.all_columns(),
            .k = g.depth(),
            .b_is_fixed = fixed};
  }
  static int sides_of(const ProductReading& g, const MovedColumns* moved) {
    return moved ? 2 : g.elements ? int(g.products.size()) : 1;
  }
  static ColumnHooks hooks_of(const ProductReading& g, const MovedColumns* moved, const ProductHooks& hooks,
                              bool wide, int threads) {
    return {.text = hooks.text(),
            .sides = sides_of(g, moved),
            .wide = wide,
            .kept = g.rows != nullptr,
            .asks_ahead = moved != nullptr,
            .threads = threads};
  }

  Loaded load(const Request& r, bool wide) const {
    const ProductReading g(r);
    const std::optional<MovedColumns> columns = moved_of(g);
    const MovedColumns* const moved = columns ? &*columns : nullptr;
    const auto* packed = is_packed_ ? &g.products.front()->as<ops::DequantMatmul>() : nullptr;
    const FewRows sizes = sizes_of(g, moved);
    const int threads =
        packed ? packed_block_threads(device_, *packed, sizes, sides_of(g, moved), wide) : kThreads;
    const ProductHooks hooks(g, moved, wide, threads);
    const ColumnHooks how = hooks_of(g, moved, hooks, wide, threads);
    Loaded made{.kernel = {}, .members = hooks.members()};
    made.kernel = packed ? packed_rows(device_, *packed, sizes, how) : column_products(device_, sizes, how);
    return made;
  }
  // The same inside of a chain.
  void load_phase(const Request& r) {
    if (!makes_phases(device_.functions())) return;
    const ProductReading g(r);
    const std::optional<MovedColumns> columns = moved_of(g);
    const MovedColumns* const moved = columns ? &*columns : nullptr;
    if (!row_function_fits(g, kChainThreads)) return;
    const ProductHooks hooks(g, moved, true, kChainThreads);
    const ColumnHooks how = hooks_of(g, moved, hooks, true, kChainThreads);
    const auto* packed = is_packed_ ? &g.products.front()->as<ops::DequantMatmul>() : nullptr;
    phase_ = packed ? packed_phase(device_, *packed, sizes_of(g, moved), how)
                    : column_phase(device_, sizes_of(g, moved), how);
    phase_members_ = hooks.members();
  }
  Loaded load_anywhere() const {
    const backend::Builder builder(device_, 1);
    std::vector<Arg> out;
    for (const Shape& s : node_.shapes)
      out.push_back({.shape = s, .layout = backend::Layout::row_major(s.dims())});
    return load({.node = node_, .in = in_, .out = out, .builder = &builder}, false);
  }

  const Device& device_;
  ir::Node node_;
  std::vector<Arg> in_;
  bool is_packed_ = false, moves_ = false;
  int64_t rows_ = 1;
  uint64_t fault_ = 0;
  std::function<void(const Launch&)> copies_;
  Loaded wide_;
  PhaseRef phase_;
  std::vector<int> phase_members_;
  OnFirstUse<Loaded> anywhere_;
};

/// One product of five to 32 rows and what happens to its elements.
class TiledGroupStep final : public Step {
 public:
  explicit TiledGroupStep(const Request& r) : device_(device_of(r)) {
    const ProductReading g(r);
    sizes_ = tiled_sizes(g);
    a_ = g.operand(g.input()), b_ = g.operand(g.products.front()->inputs[1]);
    const ProductHooks hooks(g, nullptr, true, kThreads, true);
    members_ = hooks.members(), text_ = hooks.text();
    aligned_ = StreamedTiles::make(device_, sizes_, text_, true);
    note = cat("weights that stream, a region of elements: ", sizes_.m, " x ", sizes_.n, " x ", sizes_.k);
  }

  void run(const Launch& l) const override {
    std::vector<std::byte*> params = addresses(l, members_);
    const bool fits = StreamedTiles::fits(l.in[a_], l.in[b_]);
    const auto& use =
        fits ? aligned_ : anywhere_.get([&] { return StreamedTiles::make(device_, sizes_, text_, false); });
    use->run_with(stream_of(l), params.data(), l.in[a_], l.in[b_]);
  }

 private:
  const Device& device_;
  FewRows sizes_;
  int a_ = 0, b_ = 0;
  std::vector<int> members_;
  std::string text_;
  std::optional<StreamedTiles> aligned_;
  OnFirstUse<std::optional<StreamedTiles>> anywhere_;
};

/// One or two products of five to 64 rows with large weights and what happens to their elements.
class CopiedGroupStep final : public Step {
 public:
  explicit CopiedGroupStep(const Request& r) : device_(device_of(r)) {
    const ProductReading g(r);
    sizes_ = tiled_sizes(g);
    a_ = g.operand(g.input());
    for (const ir::Node* p : g.products) b_.push_back(g.operand(p->inputs[1]));
    const ProductHooks hooks(g, nullptr, true, kThreads, true);
    members_ = hooks.members(), text_ = hooks.text();
    aligned_ = CopiedTiles::make(device_, sizes_, int64_t(b_.size()), text_);
    workspace = aligned_->workspace();
    note = cat("weights by the copy engine, ", aligned_->tiling().text(), ", ", b_.size(),
               b_.size() == 1 ? " product" : " products", ", a region of elements: ", sizes_.m, " x ",
               sizes_.n, " x ", sizes_.k);
  }

  void run(const Launch& l) const override {
    std::vector<std::byte*> params = addresses(l, members_);
    const std::array<const void*, CopiedTiles::kMostSides> b{l.in[b_.front()], l.in[b_.back()]};
    Stream_* const stream = stream_of(l).handle;
    if (CopiedTiles::fits(l.in[a_], b[0]) && CopiedTiles::fits(l.in[a_], b[1]))
      return aligned_->run_with(stream, params.data(), l.in[a_], b, l.workspace);
    anywhere_.get([&] { return PlainColumns(device_, sizes_, int64_t(b_.size()), text_); })
        .run_with(stream, params.data(), l.in[a_], b);
  }

 private:
  const Device& device_;
  FewRows sizes_;
  int a_ = 0;
  std::vector<int> b_, members_;
  std::string text_;
  std::optional<CopiedTiles> aligned_;
  OnFirstUse<PlainColumns> anywhere_;
};

std::unique_ptr<Step> prepare(const Request& r) {
  const ProductReading g(r);
  if (!is_tiled(g)) return std::make_unique<ProductGroupStep>(r);
  if (g.products.size() == 1 && StreamedTiles::suits(tiled_sizes(g)))
    return std::make_unique<TiledGroupStep>(r);
  return std::make_unique<CopiedGroupStep>(r);
}

}  // namespace

void add_product_groups(KernelTable& table, const std::string& architecture) {
  const bool tiles = shared_memory_of(architecture) >= StreamedTiles::kLeastShared;
  table.add<ops::Fused>({"turned_rows", accepts_turned, prepare});
  table.add<ops::Fused>({"product_group",
                         architecture == kHopper ? accepts<Means::copy_engine>
                         : tiles                 ? accepts<Means::shared_memory>
                                                 : accepts<Means::none>,
                         prepare});
}

}  // namespace rlx::cuda
