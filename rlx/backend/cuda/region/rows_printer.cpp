#include "rlx/backend/cuda/region/rows_printer.h"

#include <algorithm>

namespace rlx::cuda {

using region::Op;
using region::Role;

std::string RowsPrinter::rows_kernel(const std::string& entry, Stage stage) {
  wide_ = along_rows(stage) ? s_.row_vector : 1;
  text_ = signature(entry, stage == Stage::join ? 128 : s_.threads);
  print_row_start(stage);
  if (stage == Stage::whole) print_scratch();
  if (stage != Stage::whole) line("  ", "i64* const parts = reinterpret_cast<i64*>(workspace);");
  print_phases(stage);
  return text_ + "}\n";
}

std::string RowsPrinter::row_function(const std::string& name, const std::vector<bool>& once) {
  once_ = once;
  text_ = cat("inline void ", name, "(", parameters({}), index_, " row) {\n");
  line("  ", cat("__shared__ f64 shared[", s_.threads / 32, "];"));
  line("  ", "const int lane = threadIdx.x;");
  line("  ", "const bool live = true;");
  print_row_places();
  print_scratch();
  print_phases(Stage::whole);
  return text_ + "}\n";
}

std::string RowsPrinter::rows_with_sums(const std::string& name, const std::vector<bool>& summed,
                                        int64_t blocks) {
  summed_ = summed;
  const int warps = s_.threads / 32, each = s_.rounds * s_.vector;
  text_ = signature(name, s_.threads);
  line("  ", "const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;");
  line("  ", "const bool live = true;");
  for (size_t a = 0; a < summed.size(); ++a) {
    if (!summed[a]) continue;
    line("  ", cat("f32 s", a, "[", each, "];"));
    line("  ", "#pragma unroll");
    line("  ", cat("for (int i = 0; i < ", each, "; ++i) s", a, "[i] = 0.0f;"));
  }
  line("  ", cat("for (", index_, " row = ", index_, "(blockIdx.x) * ", warps, " + warp; row < ", r_.rows(),
                 "; row += ", index_, "(", blocks * warps, ")) {"));
  print_row_places();
  print_scratch();
  print_phases(Stage::whole);
  line("  ", "}");
  print_sums_of_block(warps, blocks);
  return text_ + "}\n";
}

int64_t RowsPrinter::bytes_of_scratch(const Argument& a) const {
  return (r_.rows() * r_.columns() * int64_t(dtype_size(a.dtype)) + 63) / 64 * 64;
}
int64_t RowsPrinter::scratch_bytes() const {
  int64_t bytes = 0;
  for (const Argument& a : r_.arguments) {
    if (a.role == Role::scratch) bytes += bytes_of_scratch(a);
  }
  return bytes;
}
// Of each reduction, one value for each part of each row, 8 bytes each.
int64_t RowsPrinter::partials_bytes() const {
  int64_t count = 0;
  for (const Instruction& i : r_.code) count += is_reduction(i.op);
  return count * s_.splits * r_.rows() * 8;
}

std::string RowsPrinter::joined(Stage stage, const Instruction& i, int n) const {
  const std::string_view op = reduction_type(i.op);
  if (stage == Stage::join) return cat("over_warp<", op, ">(r", n, ")");
  if (!along_rows(stage) && s_.lanes <= 32) return cat("over_warp<", op, ", ", s_.lanes, ">(r", n, ")");
  if (along_rows(stage)) {
    if (s_.lanes == 1) return gathered(n);
    return cat("over_y<", op, ", ", s_.lanes, ">(", gathered(n), ", shared)");
  }
  return cat("over_block<", op, ", ", s_.threads / 32, ">(r", n, ", shared)");
}
std::string RowsPrinter::part_place(int reduction, const std::string& part) const {
  return cat("parts[(i64(", reduction, ") * ", s_.splits, " + ", part, ") * ", r_.rows(), " + row",
             wide_ > 1 ? " + w" : "", "]");
}

void RowsPrinter::declare_rows(std::string_view name, int n) {
  line("  ", cat(lane_type(at(n).lane), " ", name, n, "[", wide_, "];"));
}

void RowsPrinter::print_row_start(Stage stage) {
  if (along_rows(stage)) {
    if (s_.lanes > 1) line("  ", cat("__shared__ f64 shared[", 32 * s_.lanes, "];"));
    line("  ",
         cat("const ", index_, " place = (", index_, "(blockIdx.x) * 32 + threadIdx.x) * ", wide_, ";"));
    line("  ", cat("const bool live = place < ", r_.rows(), ";"));
    line("  ", cat("const ", index_, " row = live ? place : ", r_.rows() - wide_, ";"));
    line("  ", "const int lane = threadIdx.y;");
  } else if (stage == Stage::join || s_.lanes <= 32) {
    const int lanes = stage == Stage::join ? 32 : s_.lanes;
    line("  ", cat("const ", index_, " row = ", index_, "(blockIdx.x) * ", 128 / lanes, " + threadIdx.x / ",
                   lanes, ";"));
    line("  ", cat("if (row >= ", r_.rows(), ") return;"));
    line("  ", cat("const int lane = threadIdx.x % ", lanes, ";"));
    line("  ", "const bool live = true;");
  } else {
    line("  ", cat("__shared__ f64 shared[", s_.threads / 32, "];"));
    line("  ", cat("const ", index_, " row = blockIdx.x;"));
    line("  ", "const int lane = threadIdx.x;");
    line("  ", "const bool live = true;");
  }
  print_row_places();
}

void RowsPrinter::print_row_places() {
  print_indices("  ", "i", "row", 0, size_t(r_.row_rank));
  for (size_t a = 0; a < r_.arguments.size(); ++a) {
    const Argument& x = r_.arguments[a];
    if (x.role == Role::scratch) continue;
    line("  ", cat("const ", index_, " b", a, " = ", offset(x, "i", 0, size_t(r_.row_rank)), ";"));
  }
}

void RowsPrinter::print_scratch() {
  int64_t at = 0;
  for (size_t a = 0; a < r_.arguments.size(); ++a) {
    const Argument& x = r_.arguments[a];
    if (is_kept(a)) {
      line("  ", cat(memory_type(x.dtype), " k", a, "[", s_.rounds * s_.vector, "];"));
    } else if (x.role == Role::scratch) {
      line("  ", cat(memory_type(x.dtype), "* const ", name_of(a), " = reinterpret_cast<",
                     memory_type(x.dtype), "*>(workspace + i64(", at, ")) + i64(row) * ", r_.columns(), ";"));
      at += bytes_of_scratch(x);
    }
  }
}

void RowsPrinter::print_phases(Stage stage) {
  for (size_t p = 0; p < phases_.size(); ++p) {
    const Phase& phase = phases_[p];
    std::vector<int> rows = phase.rows;
    if (stage == Stage::parts) std::erase_if(rows, [&](int n) { return at(n).op == Op::store; });
    print_row_values(rows);
    if (!phase.elements.empty()) {
      for (const int n : phase.elements) {
        if (is_reduction(at(n).op)) print_gathering(n);
      }
      if (stage != Stage::join) print_columns(phase, int(p), stage);
      print_reductions(phase, stage);
      if (stage == Stage::parts) return;  // what follows needs whole rows
    }
  }
}

void RowsPrinter::print_row_values(const std::vector<int>& rows) {
  if (rows.empty()) return;
  for (const int n : rows) {
    if (wide_ > 1 && at(n).op != Op::store) declare_rows("v", n);
  }
  begin_rows("  ");
  const std::string indent = indent_of_rows();
  for (const int n : rows) {
    const Instruction& i = at(n);
    const auto place = [&] {
      return cat(name_of(size_t(i.argument)), "[b", i.argument, row_step(argument(i)), "]");
    };
    if (i.op == Op::load) {
      define(indent, n, read(i, place()));
    } else if (i.op == Op::store) {
      line(indent, cat(guard(size_t(i.argument)), "if (live && lane == 0) put(", place(), ", ",
                       value(i.operands[0]), ");"));
    } else {
      define(indent, n, expression(i));
    }
  }
  end_rows("  ");
}

void RowsPrinter::print_columns(const Phase& phase, int number, Stage stage) {
  const std::string pass = cat(index_, "(", int64_t(s_.lanes) * s_.vector, ")");
  const std::string first =
      stage == Stage::parts ? cat(index_, "(blockIdx.y) * ", int64_t(s_.lanes) * s_.vector * s_.rounds, " + ")
                            : "";
  const bool whole = s_.in_registers || !summed_.empty();  // places in registers are known then
  const std::vector<size_t> asked = asked_ahead(phase, stage);
  if (!asked.empty()) print_ask(asked, cat(first, "lane * ", s_.vector));
  line("  ", whole ? "#pragma unroll" : "#pragma unroll 4");
  line("  ", cat("for (int round = 0; round < ", s_.rounds, "; ++round) {"));
  line("    ", cat("const ", index_, " c = ", first, "round * ", pass, " + lane * ", s_.vector, ";"));
  line("    ", cat("if (c < ", r_.columns(), ") {"));
  print_indices("      ", "j", "c", size_t(r_.row_rank), r_.dims.size());
  for (size_t a = 0; a < r_.arguments.size(); ++a) {
    const Argument& x = r_.arguments[a];
    const std::string at = x.role == Role::scratch
                               ? "c"
                               : cat("b", a, " + ", offset(x, "j", size_t(r_.row_rank), r_.dims.size()));
    line("      ", cat("const ", index_, " o", a, " = ", at, ";"));
  }
  if (!summed_.empty() && number == 0) print_loads_ahead();
  for (const size_t a : asked) line("      ", cat("const auto p", a, " = n", a, ";"));
  if (!asked.empty()) line("      ", cat("if (round + 1 < ", s_.rounds, ") ask(c + ", pass, ");"));
  if (s_.threads_along_rows) {
    print_live_body(phase, number, asked);
  } else {
    print_body("      ", phase.elements, number);
  }
  line("    ", "}");
  line("  ", "}");
}

// Where rounds store, a compiler leaves the loads of the next one behind the stores: they are asked for in front of them.
std::vector<size_t> RowsPrinter::asked_ahead(const Phase& phase, Stage stage) const {
  std::vector<size_t> out;
  if (!along_rows(stage) || wide_ == 1 || s_.rounds == 1) return out;
  bool stores = false;
  for (const int n : phase.elements) {
    stores = stores || at(n).op == Op::store;
    const auto a = size_t(at(n).argument);
    if (at(n).op == Op::load && !is_kept(a) && in_pack(argument(at(n))) &&
        std::ranges::find(out, a) == out.end())
      out.push_back(a);
  }
  if (!stores) out.clear();
  return out;
}

void RowsPrinter::print_ask(const std::vector<size_t>& arguments, const std::string& first) {
  for (const size_t a : arguments)
    line("  ", cat("Pack<", memory_type(r_.arguments[a].dtype), ", ", wide_, "> n", a, ";"));
  line("  ", cat("const auto ask = [&](", index_, " c) {"));
  line("    ", cat("if (c >= ", r_.columns(), ") return;"));
  print_indices("    ", "j", "c", size_t(r_.row_rank), r_.dims.size());
  for (const size_t a : arguments)
    line("    ", cat("n", a, " = load_ahead<", wide_, ">(", name_of(a), " + (b", a, " + ",
                     offset(r_.arguments[a], "j", size_t(r_.row_rank), r_.dims.size()), "));"));
  line("  ", "};");
  line("  ", cat("ask(", first, ");"));
}

// A thread past the last row computes on a row that is there and writes nothing.
void RowsPrinter::print_live_body(const Phase& phase, int number, const std::vector<size_t>& asked) {
  std::vector<int> values, stores;
  for (const int n : phase.elements) (at(n).op == Op::store ? stores : values).push_back(n);
  std::vector<bool> packed(r_.arguments.size());
  for (const size_t a : asked) packed[a] = true;
  for (const int n : phase.elements) {
    const Op op = at(n).op;
    if ((op != Op::load && op != Op::store) || wide_ == 1 || !in_pack(argument(at(n)))) continue;
    const size_t a = size_t(at(n).argument);
    if (packed[a]) continue;
    packed[a] = true;
    line("      ", op == Op::load
                       ? cat("const auto p", a, " = load<", wide_, ">(", name_of(a), " + o", a, ");")
                       : cat("Pack<", memory_type(argument(at(n)).dtype), ", ", wide_, "> q", a, ";"));
  }
  if (wide_ > 1) {
    begin_rows("      ");
  } else {
    line("      ", "{");
  }
  for (const int n : values) print_instruction("        ", n, number);
  for (const int n : stores) {
    line("        ", "if (live) {");
    print_instruction("          ", n, number);
    line("        ", "}");
  }
  line("      ", "}");
  for (size_t a = 0; a < packed.size(); ++a) {
    if (packed[a] && r_.arguments[a].role == Role::out)
      line("      ", cat("if (live) store(", name_of(a), " + o", a, ", q", a, ");"));
  }
}

// Where rows follow each other, what later phases read is asked for in the first one too: no load may be moved in front of a store.
void RowsPrinter::print_loads_ahead() {
  for (size_t a = 0; a < r_.arguments.size(); ++a) {
    const Argument& x = r_.arguments[a];
    if (x.role != Role::in || !is_kept(a) || loads_in_phase(0, a)) continue;
    const bool vector = is_vector(r_, x, s_.vector);
    if (vector)
      line("      ", cat("const auto p", a, " = load<", s_.vector, ">(", name_of(a), " + o", a, ");"));
    line("      ", "#pragma unroll");
    line("      ", cat("for (int u = 0; u < ", s_.vector, "; ++u) ", kept_place(a), " = ",
                       vector ? pack_place("p", a) : element_place(x, a), ";"));
  }
}

// What a reduction begins with.
void RowsPrinter::print_gathering(int n) {
  const std::string first = literal(at(n).lane, at(n).constant);
  if (wide_ == 1) return line("  ", cat(lane_type(at(n).lane), " r", n, " = ", first, ";"));
  declare_rows("r", n);
  begin_rows("  ");
  line("    ", cat(gathered(n), " = ", first, ";"));
  end_rows("  ");
}

void RowsPrinter::print_reductions(const Phase& phase, Stage stage) {
  int reduction = 0;
  for (const int n : phase.elements) {
    if (!is_reduction(at(n).op)) continue;
    if (stage == Stage::join) print_parts_read(n, reduction);
    if (wide_ > 1) declare_rows("v", n);
    begin_rows("  ");
    define(indent_of_rows(), n, joined(stage, at(n), n));
    if (stage == Stage::parts) {
      line(indent_of_rows(), cat("if (live && lane == 0) reinterpret_cast<", lane_type(at(n).lane), "&>(",
                                 part_place(reduction, "blockIdx.y"), ") = ", value(n), ";"));
    }
    end_rows("  ");
    ++reduction;
  }
}

// The parts of a row that blocks found, read by the lanes of a warp.
void RowsPrinter::print_parts_read(int n, int reduction) {
  line("  ", cat("for (int part = lane; part < ", s_.splits, "; part += 32)"));
  line("    ", cat("r", n, " = ", reduction_type(at(n).op), "::of(r", n, ", reinterpret_cast<const ",
                   lane_type(at(n).lane), "&>(", part_place(reduction, "part"), "));"));
}

// What the warps of a block found, joined in their order, one summed argument after the other.
void RowsPrinter::print_sums_of_block(int warps, int64_t blocks) {
  line("  ", cat("__shared__ f32 shared[", warps, "][", r_.columns(), "];"));
  line("  ", "f32* const parts = reinterpret_cast<f32*>(workspace);");
  int64_t number = 0;
  for (size_t a = 0; a < summed_.size(); ++a) {
    if (!is_summed(a)) continue;
    line("  ", "__syncthreads();");
    line("  ", "#pragma unroll");
    line("  ", cat("for (int i = 0; i < ", s_.rounds * s_.vector, "; ++i) {"));
    line("    ", cat("const int c = i / ", s_.vector, " * ", 32 * s_.vector, " + lane * ", s_.vector,
                     " + i % ", s_.vector, ";"));
    line("    ", cat("if (c < ", r_.columns(), ") shared[warp][c] = s", a, "[i];"));
    line("  ", "}");
    line("  ", "__syncthreads();");
    line("  ", cat("for (int c = threadIdx.x; c < ", r_.columns(), "; c += ", s_.threads, ") {"));
    line("    ", "f32 sum = shared[0][c];");
    line("    ", cat("for (int w = 1; w < ", warps, "; ++w) sum = sum + shared[w][c];"));
    line("    ",
         cat("parts[(i64(", number++, ") * ", blocks, " + blockIdx.x) * ", r_.columns(), " + c] = sum;"));
    line("  ", "}");
  }
}

}  // namespace rlx::cuda
