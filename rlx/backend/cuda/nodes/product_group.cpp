// Products of few rows with one input, the region of rows in front of them and the operator behind them, as one kernel (groups/groups.h).
#include <algorithm>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/nodes/copied_tiles.h"
#include "rlx/backend/cuda/nodes/few_rows.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/backend/cuda/nodes/packed_rows.h"
#include "rlx/backend/cuda/nodes/product_reading.h"
#include "rlx/backend/cuda/nodes/streamed_tiles.h"
#include "rlx/backend/cuda/region/printer.h"

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

/// The text in front of a kernel of products, and where the members of its Params come from.
class Hooks {
 public:
  Hooks(const ProductReading& g, bool wide, int threads) : g_(g), threads_(threads) {
    if (g.rows) add_rows(wide);
    if (!is_tiled(g)) add_products();
    if (g.elements) add_elements();
    std::string fields;
    for (size_t i = 0; i < members_.size(); ++i) fields += cat("  ", types_[i], " m", i, ";\n");
    text_ = cat("struct Params {\n", fields, "};\n", functions_);
  }
  const std::string& text() const { return text_; }

  /// An operand (0, 1, ..) or a result (-1, -2, ..) of the node.
  const std::vector<int>& members() const { return members_; }

 private:
  std::string add(int source, std::string type) {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i] == source && types_[i] == type) return cat("p.m", i);
    }
    members_.push_back(source);
    types_.push_back(std::move(type));
    return cat("p.m", members_.size() - 1);
  }
  std::string operand(ir::Value v) {
    return add(g_.operand(v), cat("const ", memory_type(g_.arg(v).dtype()), "*"));
  }
  std::string result(ir::Value v, DType t) { return add(-1 - g_.result(v), cat(memory_type(t), "*")); }

  void add_rows(bool wide) {
    const ir::Node& n = *g_.rows;
    const region::Region r = *g_.region_of(n).region;
    std::vector<bool> once(r.arguments.size(), false);
    std::string call;
    for (const ir::Value v : n.inputs) call += operand(v) + ", ";
    for (uint32_t i = 0; i < n.shapes.size(); ++i) {
      const bool kept = n.result(i) == g_.input();
      once[n.inputs.size() + i] = !kept;
      call += (kept ? "kept" : result(n.result(i), n.shapes[i].dtype())) + ", ";
    }
    functions_ += print_row_function(r, block_schedule(r, threads_, wide), "rows_region", once);
    functions_ += cat("inline void make_rows(const Params& p, T* kept) {\n  for (int row = 0; row < ",
                      g_.row_count(), "; ++row) rows_region(", call, "row);\n");
    if (g_.result(g_.input()) >= 0) {
      const std::string to = result(g_.input(), g_.dtype());
      functions_ += cat("  __syncthreads();\n  for (int e = threadIdx.x; blockIdx.x == 0 && e < ",
                        g_.row_count() * g_.depth(), "; e += ", threads_, ") ", to, "[e] = kept[e];\n");
    }
    functions_ += "}\n";
  }

  // A line of conditions: the first product whose columns reach so far.
  template <class Each>
  std::string by_column(Each each) {
    std::string out;
    int64_t first = 0;
    for (size_t i = 0; i < g_.products.size(); ++i) {
      const int64_t end = first + ProductReading::columns(*g_.products[i]);
      const std::string own = each(*g_.products[i], cat("(column - ", first, ")"));
      out += i + 1 == g_.products.size() ? own : cat("column < ", end, " ? ", own, " : ");
      first = end;
    }
    return out;
  }

  void add_products() {
    const bool packed = g_.products.front()->is<ops::DequantMatmul>();
    const auto place = [&](const ir::Node& n, const std::string& column) {
      return cat(operand(n.inputs[1]), " + i64(", column, packed ? ") * kRowBytes" : ") * kDepth");
    };
    std::string where;
    if (g_.elements) {
      for (size_t i = 0; i < g_.products.size(); ++i) {
        const std::string own = place(*g_.products[i], "column");
        where += i + 1 == g_.products.size() ? own : cat("side == ", i, " ? ", own, " : ");
      }
    } else {
      where = by_column(place);
    }
    functions_ += cat("inline const ", packed ? "u8" : "T",
                      "* weights_of(const Params& p, int side, int column) { return ", where, "; }\n");
    if (!g_.rows) {
      functions_ += cat("inline const T* row_of(const Params& p, int row) { return ", operand(g_.input()),
                        " + row * i64(", g_.depth(), "); }\ninline void make_rows(const Params&, T*) {}\n");
    } else {
      functions_ += "inline const T* row_of(const Params&, int) { return nullptr; }\n";
    }
    if (g_.elements) return;
    const std::string to = by_column([&](const ir::Node& n, const std::string& column) {
      return cat("&", result(n.result(), n.shapes[0].dtype()), "[i64(row) * ", ProductReading::columns(n),
                 " + ", column, "]");
    });
    functions_ += cat(
        "inline void finish(const Params& p, int row, int column, const f32 (&sums)[1]) {\n  T* const to = ",
        to, ";\n  put(*to, sums[0]);\n}\n");
  }

  void add_elements() {
    const ir::Node& n = *g_.elements;
    const region::Region r = *g_.region_of(n).region;
    std::vector<bool> values(r.arguments.size(), false);
    std::string call;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      const int product = g_.product_number(n.inputs[i]);
      values[i] = product >= 0;
      call += cat(", ", product >= 0 ? cat("v", product) : operand(n.inputs[i]));
    }
    call += ", " + result(n.result(), n.shapes[0].dtype());
    functions_ += print_element_function(r, "elements_region", values);
    functions_ += cat("inline void finish(const Params& p, int row, int column, const f32 (&sums)[",
                      g_.products.size(), "]) {\n");
    for (size_t i = 0; i < g_.products.size(); ++i)
      functions_ += cat("  T v", i, ";\n  put(v", i, ", sums[", i, "]);\n");
    functions_ += cat("  elements_region(row * ", ProductReading::columns(*g_.products.front()), " + column",
                      call, ");\n}\n");
  }

  const ProductReading& g_;
  int threads_;
  std::vector<int> members_;
  std::vector<std::string> types_;
  std::string functions_, text_;
};

std::vector<std::byte*> addresses(const Launch& l, const std::vector<int>& members) {
  std::vector<std::byte*> out;
  for (const int m : members) out.push_back(m >= 0 ? l.in[m] : l.out[-1 - m]);
  return out;
}

class ProductGroupStep final : public Step {
 public:
  explicit ProductGroupStep(const Request& r)
      : device_(device_of(r)), node_(r.node), in_(r.in.begin(), r.in.end()) {
    node_.uses.clear();
    const ProductReading g(r);
    is_packed_ = g.products.front()->is<ops::DequantMatmul>();
    rows_ = g.row_count();
    wide_ = load(r, true);
    load_phase(r);
    note = cat(g.rows ? "a region of rows, " : "", g.products.size(),
               g.products.size() == 1 ? " product" : " products", g.elements ? ", a region of elements" : "",
               ": ", g.row_count(), " x ", g.all_columns(), " x ", g.depth());
  }

  void run(const Launch& l) const override {
    const bool aligned = std::all_of(wide_.members.begin(), wide_.members.end(),
                                     [&](int m) { return is_aligned(address(l, m)); });
    const Loaded& use = aligned ? wide_ : anywhere_.get([&] { return load_anywhere(); });
    std::vector<const std::byte*> params;
    for (const int m : use.members) params.push_back(address(l, m));
    Chain* const chain = aligned && phase_ ? chain_of(l) : nullptr;
    if (!chain) return launch(use.kernel, stream_of(l), params);
    std::vector<const std::byte*> words;
    for (const int m : phase_members_) words.push_back(address(l, m));
    chain->add(phase_, words_of(words),
               [this, &kernel = use.kernel, params = std::move(params),
                &s = *static_cast<Stream*>(l.stream)] { launch(kernel, s, params); });
  }

 private:
  struct Loaded {
    ColumnProducts kernel;
    std::vector<int> members;
  };

  void launch(const ColumnProducts& kernel, const Stream& s, std::vector<const std::byte*> params) const {
    if (is_packed_) return run_packed_rows(kernel, s, rows_, params.data());
    void* parameters[] = {params.data(), nullptr};
    kernel.function->launch(s.handle, kernel.grid, kernel.block, kernel.shared, parameters);
  }

  static std::byte* address(const Launch& l, int member) {
    return member >= 0 ? l.in[member] : l.out[-1 - member];
  }

  static int sides_of(const ProductReading& g) { return g.elements ? int(g.products.size()) : 1; }
  static FewRows sizes_of(const ProductReading& g) {
    const bool fixed = std::all_of(g.products.begin(), g.products.end(),
                                   [&](const ir::Node* p) { return g.arg(p->inputs[1]).fixed; });
    return {
        .dtype = g.dtype(), .m = g.row_count(), .n = g.all_columns(), .k = g.depth(), .b_is_fixed = fixed};
  }
  static ColumnHooks hooks_of(const ProductReading& g, const Hooks& hooks, bool wide, int threads) {
    return {.text = hooks.text(),
            .sides = sides_of(g),
            .wide = wide,
            .kept = g.rows != nullptr,
            .threads = threads};
  }

  Loaded load(const Request& r, bool wide) const {
    const ProductReading g(r);
    const auto* packed = is_packed_ ? &g.products.front()->as<ops::DequantMatmul>() : nullptr;
    const FewRows sizes = sizes_of(g);
    const int threads = packed ? packed_block_threads(device_, *packed, sizes, sides_of(g), wide) : kThreads;
    const Hooks hooks(g, wide, threads);
    const ColumnHooks how = hooks_of(g, hooks, wide, threads);
    Loaded made{.kernel = {}, .members = hooks.members()};
    made.kernel = packed ? packed_rows(device_, *packed, sizes, how) : column_products(device_, sizes, how);
    return made;
  }
  // The same inside of a chain.
  void load_phase(const Request& r) {
    if (!makes_phases(device_.functions())) return;
    const ProductReading g(r);
    if (!row_function_fits(g, kChainThreads)) return;
    const Hooks hooks(g, true, kChainThreads);
    const ColumnHooks how = hooks_of(g, hooks, true, kChainThreads);
    const auto* packed = is_packed_ ? &g.products.front()->as<ops::DequantMatmul>() : nullptr;
    phase_ =
        packed ? packed_phase(device_, *packed, sizes_of(g), how) : column_phase(device_, sizes_of(g), how);
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
  bool is_packed_ = false;
  int64_t rows_ = 1;
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
    const Hooks hooks(g, true, kThreads);
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
    const Hooks hooks(g, true, kThreads);
    members_ = hooks.members(), text_ = hooks.text();
    aligned_ = CopiedTiles::make(device_, sizes_, int64_t(b_.size()), text_);
    note = cat("weights by the copy engine, ", aligned_->tiling().text(), ", ", b_.size(),
               b_.size() == 1 ? " product" : " products", ", a region of elements: ", sizes_.m, " x ",
               sizes_.n, " x ", sizes_.k);
  }

  void run(const Launch& l) const override {
    std::vector<std::byte*> params = addresses(l, members_);
    const std::array<const void*, CopiedTiles::kMostSides> b{l.in[b_.front()], l.in[b_.back()]};
    Stream_* const stream = stream_of(l).handle;
    if (CopiedTiles::fits(l.in[a_], b[0]) && CopiedTiles::fits(l.in[a_], b[1]))
      return aligned_->run_with(stream, params.data(), l.in[a_], b);
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
  table.add<ops::Fused>({"product_group",
                         architecture == CopiedTiles::kArchitecture ? accepts<Means::copy_engine>
                         : tiles                                    ? accepts<Means::shared_memory>
                                                                    : accepts<Means::none>,
                         prepare});
}

}  // namespace rlx::cuda
