#include "rlx/backend/cuda/nodes/product_hooks.h"

#include "rlx/backend/cuda/kernels/few_rows.h"
#include "rlx/backend/cuda/kernels/row_moves.h"
#include "rlx/backend/cuda/region/printer.h"

namespace rlx::cuda {

// ---- columns that move ----

MovedColumns::MovedColumns(const ProductReading& g)
    : products(g), rows(read_rows(g.request(), g.products)), problem(rows.problem) {
  for (const RowMove& m : rows.moves) {
    if (problem.empty()) check(m);
  }
  if (problem.empty() && rows.moves.empty()) problem = "nothing moves";
}

const ir::Node& MovedColumns::product_of(const RowMove& m) const {
  return *products.products[size_t(m.from) - products.request().in.size()];
}

int64_t MovedColumns::pairs() const {
  int64_t sum = 0;
  for (const RowMove& m : rows.moves) sum += m.x.sizes[2] * m.x.sizes[3] / 2;
  return sum;
}

// A row of the product holds all heads of a row of x.
void MovedColumns::check(const RowMove& m) {
  if (m.from < Member(products.request().in.size())) {
    problem = "rows of no product";
    return;
  }
  const auto& [size, stride] = m.x;
  const int64_t n = ProductReading::columns(product_of(m));
  const bool plain = (size[0] == 1 || stride[0] == size[1] * n) && (size[1] == 1 || stride[1] == n);
  if (!plain || size[0] * size[1] != products.row_count()) problem = "rows of another order";
  if (m.dtype != products.dtype()) problem = "rows of another type";
  if (size[3] % 2 != 0) problem = "an odd number of lanes";
}

// ---- texts ----

ProductHooks::ProductHooks(const ProductReading& g, const MovedColumns* moved, bool wide, int threads,
                           bool sums_only)
    : g_(g), wide_(wide), threads_(threads) {
  if (g.rows) add_region();
  if (!sums_only) add_input();
  if (moved) {
    add_moves(*moved);
  } else {
    if (!sums_only) add_products();
    if (g.elements) add_elements();
  }
  std::string fields;
  for (size_t i = 0; i < members_.size(); ++i) fields += cat("  ", types_[i], " m", i, ";\n");
  if (moved) fields += "  u64* fault;\n  u64 number;\n";
  text_ = cat("struct Params {\n", fields, "};\n", functions_);
}

std::string ProductHooks::add(int source, std::string type) {
  for (size_t i = 0; i < members_.size(); ++i) {
    if (members_[i] == source && types_[i] == type) return cat("p.m", i);
  }
  members_.push_back(source);
  types_.push_back(std::move(type));
  return cat("p.m", members_.size() - 1);
}
std::string ProductHooks::operand(ir::Value v) {
  return add(g_.operand(v), cat("const ", memory_type(g_.arg(v).dtype()), "*"));
}
std::string ProductHooks::result(ir::Value v, DType t) {
  return add(-1 - g_.result(v), cat(memory_type(t), "*"));
}

// The region in front of the products.
void ProductHooks::add_region() {
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
  functions_ += print_row_function(r, block_schedule(r, threads_, wide_), "rows_region", once);
  functions_ += cat("inline void make_rows(const Params& p, T* kept) {\n  for (int row = 0; row < ",
                    g_.row_count(), "; ++row) rows_region(", call, "row);\n");
  if (g_.result(g_.input()) >= 0) {
    const std::string to = result(g_.input(), g_.dtype());
    functions_ += cat("  __syncthreads();\n  for (int e = threadIdx.x; blockIdx.x == 0 && e < ",
                      g_.row_count() * g_.depth(), "; e += ", threads_, ") ", to, "[e] = kept[e];\n");
  }
  functions_ += "}\n";
}

void ProductHooks::add_input() {
  if (g_.rows) {
    functions_ += "inline const T* row_of(const Params&, int) { return nullptr; }\n";
  } else {
    functions_ += cat("inline const T* row_of(const Params& p, int row) { return ", operand(g_.input()),
                      " + row * i64(", g_.depth(), "); }\ninline void make_rows(const Params&, T*) {}\n");
  }
}

// A column of the weights of a product.
std::string ProductHooks::place(const ir::Node& product, const std::string& column) {
  return cat(operand(product.inputs[1]), " + i64(", column,
             product.is<ops::DequantMatmul>() ? ") * kRowBytes" : ") * kDepth");
}

// A line of conditions: the first product whose columns reach so far.
template <class Each>
std::string ProductHooks::by_column(Each each) {
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

void ProductHooks::add_products() {
  const bool packed = g_.products.front()->is<ops::DequantMatmul>();
  std::string where;
  if (g_.elements) {
    for (size_t i = 0; i < g_.products.size(); ++i) {
      const std::string own = place(*g_.products[i], "column");
      where += i + 1 == g_.products.size() ? own : cat("side == ", i, " ? ", own, " : ");
    }
  } else {
    where = by_column([&](const ir::Node& n, const std::string& column) { return place(n, column); });
  }
  functions_ += cat("inline const ", packed ? "u8" : "T",
                    "* weights_of(const Params& p, int side, int column) { return ", where, "; }\n");
  if (g_.elements) return;
  const std::string to = by_column([&](const ir::Node& n, const std::string& column) {
    return cat("&", result(n.result(), n.shapes[0].dtype()), "[i64(row) * ", ProductReading::columns(n),
               " + ", column, "]");
  });
  functions_ += cat(
      "inline void finish(const Params& p, int row, int column, const f32 (&sums)[1]) {\n  T* const to = ",
      to, ";\n  put(*to, sums[0]);\n}\n");
}

void ProductHooks::add_elements() {
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

// `column` counts pairs. Of a pair the place of its row in what a rotation reads, the pair of the tables and the row of a cache are asked for ahead.
void ProductHooks::add_moves(const MovedColumns& moved) {
  std::string where, first_asked, next_asked, finish;
  int64_t first = 0;
  for (const RowMove& m : moved.rows.moves) {
    const int64_t lanes = m.x.sizes[3], each = lanes / 2, end = first + m.x.sizes[2] * each;
    const bool apart = m.turns && !m.interleaved;
    const std::string pair = cat("(column - ", first, ")"), head = cat(pair, " / ", each),
                      lane = apart ? cat(pair, " % ", each) : cat(pair, " % ", each, " * 2");
    const std::string begin = cat("  if (column < ", end, ") {\n");
    const std::string rows = cat("    const u32 row = u32(text) % ", m.x.sizes[1], "u, batch = u32(text) / ",
                                 m.x.sizes[1], "u;\n");
    // Weights.
    where += cat(begin, "    return ",
                 place(moved.product_of(m), cat(head, " * ", m.x.strides[2], " + ", lane, " + ",
                                                apart ? cat("side * ", each) : "side", " + ", m.column)),
                 ";\n  }\n");
    // What is asked for.
    const bool placed = m.turns && m.positions != kNoMember;
    first_asked += begin;
    if (placed)
      first_asked += cat(rows, "    out.place = i64(",
                         add(m.positions, cat("const ", memory_type(m.position_type), "*")), "[",
                         m.positions_by_batch ? cat("batch * ", m.x.sizes[1], "u + ") : "", "row]);\n");
    if (m.starts != kNoMember)
      first_asked += cat("    out.start = i64(",
                         add(m.starts, cat("const ", memory_type(m.starts_type), "*")), "[1]);\n");
    first_asked += "    return;\n  }\n";
    next_asked += begin;
    if (m.turns) {
      const std::string type = cat("const ", memory_type(m.table_type), "*");
      next_asked +=
          cat(placed ? "" : rows, "    const i64 at = ",
              placed ? cat("out.place < 0 || out.place >= ", m.table_rows, " ? 0 : out.place") : "row",
              ", from = at * ", m.table_columns, " + ", pair, " % ", each, ";\n    out.c = as_f32(",
              add(m.cosines, type), "[from]), out.s = as_f32(", add(m.sines, type), "[from]);\n");
    }
    next_asked += "    return;\n  }\n";
    // The end.
    finish += cat(begin, rows, "    const int head = ", head, ", lane = ", lane, ";\n");
    if (placed)
      finish += cat("    if (ahead.place < 0 || ahead.place >= ", m.table_rows,
                    ") { *p.fault = (p.number << 40) + u64(",
                    m.positions_by_batch ? cat("batch * ", m.x.sizes[1], "u + ") : "", "row); return; }\n");
    if (m.turns)
      finish += cat("    turn_pair(as_f32(a), as_f32(b), ahead.c, ", m.inverse ? "-1.0f" : "1.0f",
                    " * ahead.s, a, b);\n");
    std::string shift;
    if (m.starts != kNoMember) {
      finish += cat("    const i64 start = ahead.start < 0 ? 0 : ahead.start > ", m.room, " ? ", m.room,
                    " : ahead.start;\n");
      shift = cat(" + start * ", m.to_strides[1]);
    }
    finish += cat("    T* const to = ", add(m.to, "T*"), " + i64(batch) * ", m.to_strides[0],
                  " + i64(row) * ", m.to_strides[1], " + i64(head) * ", m.to_strides[2], shift,
                  " + lane;\n    to[0] = a, to[", apart ? each : 1, "] = b;\n    return;\n  }\n");
    first = end;
  }
  functions_ += cat(
      kRowMoves, "inline const ", g_.products.front()->is<ops::DequantMatmul>() ? "u8" : "T",
      "* weights_of(const Params& p, int side, int column) {\n", where, "  return nullptr;\n}\n",
      "struct Ahead { i64 place = 0, start = 0; f32 c = 1, s = 0; };\n",
      "inline void ask_first(const Params& p, int text, int column, Ahead& out) {\n", first_asked,
      "}\ninline void ask_next(const Params& p, int text, int column, Ahead& out) {\n", next_asked,
      "}\ninline void finish(const Params& p, int text, int column, const f32 (&sums)[2], const Ahead& ahead) {\n",
      "  T a, b;\n  put(a, sums[0]);\n  put(b, sums[1]);\n", finish, "}\n");
}

}  // namespace rlx::cuda
