#include "rlx/backend/cuda/region/printer.h"

#include <algorithm>
#include <cmath>

#include "rlx/base/error.h"

namespace rlx::cuda {

using region::Argument;
using region::Instruction;
using region::Lane;
using region::Op;
using region::Region;
using region::Role;

namespace {

class Printer {
 public:
  Printer(const Region& r, const Schedule& s) : r_(r), s_(s) {
    cut_phases();
    int64_t most = r.rows() * std::max<int64_t>(r.columns(), 1);
    for (const Argument& a : r.arguments) {
      int64_t reach = 0;
      for (size_t d = 0; d < r.dims.size(); ++d)
        reach += std::abs(a.strides[d]) * std::max<int64_t>(r.dims[d] - 1, 0);
      most = std::max(most, reach);
    }
    index_ = most < (int64_t(1) << 30) ? "i32" : "i64";
  }

  std::string row_function(const std::string& name, const std::vector<bool>& once) {
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

  std::string element_function(const std::string& name, const std::vector<bool>& values) {
    text_ = cat("inline void ", name, "(", index_, " e");
    const std::string rest = parameters(values);
    text_ += cat(rest.empty() ? "" : ", ", rest.substr(0, rest.size() - std::min<size_t>(rest.size(), 2)),
                 ") {\n");
    values_ = values;
    print_elements();
    return text_ + "}\n";
  }

  std::string rows_with_sums(const std::string& name, const std::vector<bool>& summed, int64_t blocks) {
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

  PrintedRegion run() {
    PrintedRegion out;
    out.schedule = s_;
    if (s_.spread == Spread::elements) {
      const int64_t each = int64_t(256) * s_.vector;
      const int64_t count = r_.rows() * r_.columns();
      out.kernels.push_back({{"region", elements()}, {(count + each - 1) / each}, {256}});
      return out;
    }
    const int64_t blocks = (r_.rows() + s_.rows_per_block - 1) / s_.rows_per_block;
    const Grid block = s_.threads_along_rows ? Grid{32, s_.lanes} : Grid{s_.threads};
    if (s_.spread == Spread::split) {
      out.workspace = size_t(partials_bytes());
      out.kernels.push_back(
          {{"region_parts", rows_kernel("region_parts", Stage::parts)}, {blocks, s_.splits}, block});
      out.kernels.push_back(
          {{"region_join", rows_kernel("region_join", Stage::join)}, {(r_.rows() + 3) / 4}, {128}});
      return out;
    }
    out.workspace = s_.in_registers ? 0 : size_t(scratch_bytes());
    out.kernels.push_back({{"region", rows_kernel("region", Stage::whole)}, {blocks}, block});
    return out;
  }

 private:
  enum class Stage : uint8_t { whole, parts, join };

  struct Phase {
    std::vector<int> rows, elements;  // instructions, in order
  };

  // What the warps of a block found, joined in their order, one summed argument after the other.
  void print_sums_of_block(int warps, int64_t blocks) {
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
  bool is_summed(size_t a) const { return a < summed_.size() && summed_[a]; }

  const Instruction& at(int n) const { return r_.code[size_t(n)]; }
  const Argument& argument(const Instruction& i) const { return r_.arguments[size_t(i.argument)]; }

  void cut_phases() {
    phases_.emplace_back();
    for (int n = 0; n < int(r_.code.size()); ++n) {
      const Instruction& i = at(n);
      if (i.op == Op::barrier) {
        phases_.emplace_back();
      } else if (i.per_row && !is_reduction(i.op)) {
        phases_.back().rows.push_back(n);
      } else {
        phases_.back().elements.push_back(n);
      }
    }
  }

  // ---- expressions ----

  // Where a thread has several rows, w counts them: row values and what reductions gather are one number for each.
  std::string of_row(std::string_view name, int n) const { return cat(name, n, wide_ > 1 ? "[w]" : ""); }
  std::string value(int n) const { return at(n).per_row ? of_row("v", n) : cat("v", n); }
  std::string gathered(int n) const { return of_row("r", n); }

  std::string expression(const Instruction& i) const {
    return expression_text(r_, i, [&](int n) { return value(n); });
  }

  std::string read(const Instruction& i, const std::string& place) const {
    return cat("as_", region::lane_name(i.lane), "(", place, ")");
  }

  void line(const std::string& indent, const std::string& text) { text_ += indent + text + "\n"; }
  void define(const std::string& indent, int n, const std::string& e) {
    const bool declared = wide_ > 1 && at(n).per_row;
    line(indent, declared ? cat(value(n), " = ", e, ";")
                          : cat("const ", lane_type(at(n).lane), " ", value(n), " = ", e, ";"));
  }
  void declare_rows(std::string_view name, int n) {
    line("  ", cat(lane_type(at(n).lane), " ", name, n, "[", wide_, "];"));
  }
  std::string indent_of_rows() const { return wide_ > 1 ? "    " : "  "; }
  void begin_rows(const std::string& indent) {
    if (wide_ == 1) return;
    line(indent, "#pragma unroll");
    line(indent, cat("for (int w = 0; w < ", wide_, "; ++w) {"));
  }
  void end_rows(const std::string& indent) {
    if (wide_ > 1) line(indent, "}");
  }

  // ---- places ----

  /// i0, i1, .. of dimensions [from, to) out of a number that counts their elements; only those that
  /// arguments need.
  void print_indices(const std::string& indent, const std::string& name, const std::string& number,
                     size_t from, size_t to) {
    std::string rest = number;
    for (size_t d = to; d-- > from;) {
      const bool outermost = d == from;
      line(indent, cat("const ", index_, " ", name, d, " = ", rest,
                       outermost ? "" : cat(" % ", std::max<int64_t>(r_.dims[d], 1)), ";"));
      if (outermost) break;
      const std::string next = cat(name, "rest", d);
      line(indent,
           cat("const ", index_, " ", next, " = ", rest, " / ", std::max<int64_t>(r_.dims[d], 1), ";"));
      rest = next;
    }
  }
  std::string offset(const Argument& a, const std::string& name, size_t from, size_t to) const {
    std::string out;
    for (size_t d = from; d < to; ++d) {
      if (a.strides[d] == 0 || r_.dims[d] <= 1) continue;
      out += cat(out.empty() ? "" : " + ", name, d);
      if (a.strides[d] != 1) out += cat(" * ", index_, "(", a.strides[d], ")");
    }
    return out.empty() ? "0" : out;
  }
  std::string name_of(size_t a) const { return cat("a", a); }

  std::string parameters(const std::vector<bool>& values) const {
    std::string out;
    for (size_t a = 0; a < r_.arguments.size(); ++a) {
      const Argument& x = r_.arguments[a];
      if (x.role == Role::scratch || is_summed(a)) continue;
      const bool value = a < values.size() && values[a];
      out += cat(x.role == Role::in ? "const " : "", memory_type(x.dtype),
                 value ? (x.role == Role::in ? " " : "& ") : "* ", name_of(a), ", ");
    }
    return out;
  }
  std::string signature(const std::string& entry, int threads) const {
    return cat("extern \"C\" __global__ void __launch_bounds__(", threads, ") ", entry, "(", parameters({}),
               "char* workspace) {\n");
  }

  // ---- elements ----

  std::string elements() {
    text_ = signature("region", 256);
    const int64_t count = r_.rows() * r_.columns();
    line("  ",
         cat("const ", index_, " e = (", index_, "(blockIdx.x) * 256 + threadIdx.x) * ", s_.vector, ";"));
    line("  ", cat("if (e >= ", count, ") return;"));
    print_elements();
    return text_ + "}\n";
  }

  void print_elements() {
    const size_t rank = r_.dims.size();
    print_indices("  ", "i", "e", 0, rank);
    for (size_t a = 0; a < r_.arguments.size(); ++a)
      line("  ", cat("const ", index_, " o", a, " = ", offset(r_.arguments[a], "i", 0, rank), ";"));
    std::vector<int> all;
    for (const Phase& p : phases_) {
      all.insert(all.end(), p.rows.begin(), p.rows.end());
      all.insert(all.end(), p.elements.begin(), p.elements.end());
    }
    std::sort(all.begin(), all.end());
    print_body("  ", all, -1);
  }

  /// Instructions at the columns c .. c + vector - 1; o0, o1, .. are the offsets of the arguments there.
  /// `kept_phase`: which phase it is, for values kept in registers; -1 where none are.
  void print_body(const std::string& indent, const std::vector<int>& list, int phase) {
    const int v = s_.vector;
    std::vector<bool> loaded(r_.arguments.size()), stored(r_.arguments.size());
    for (const int n : list) {
      const Instruction& i = at(n);
      if (i.op != Op::load && i.op != Op::store) continue;
      const size_t a = size_t(i.argument);
      if (!is_vector(r_, r_.arguments[a], v) || is_summed(a)) continue;
      if (i.op == Op::load && !loaded[a] && !(phase > 0 && is_kept(a))) {
        line(indent, cat("const auto p", a, " = load<", v, ">(", name_of(a), " + o", a, ");"));
        loaded[a] = true;
      }
      if (i.op == Op::store && !stored[a]) {
        line(indent, cat("Pack<", memory_type(r_.arguments[a].dtype), ", ", v, "> q", a, ";"));
        stored[a] = true;
      }
    }
    if (v > 1) {
      line(indent, "#pragma unroll");
      line(indent, cat("for (int u = 0; u < ", v, "; ++u) {"));
    } else {
      line(indent, "{");
    }
    // A result may lie where an operand does: all is read before anything is written.
    const auto print = [&](auto wanted) {
      for (const int n : list) {
        if (wanted(at(n).op)) print_instruction(indent + "  ", n, phase);
      }
    };
    print([](Op op) { return op == Op::load; });
    print([](Op op) { return op != Op::load && op != Op::store; });
    print([](Op op) { return op == Op::store; });
    line(indent, "}");
    for (size_t a = 0; a < r_.arguments.size(); ++a) {
      if (stored[a]) line(indent, cat(guard(a), "store(", name_of(a), " + o", a, ", q", a, ");"));
    }
  }

  std::string guard(size_t a) const { return a < once_.size() && once_[a] ? "if (blockIdx.x == 0) " : ""; }

  bool in_pack(const Argument& x) const {
    return wide_ > 1 ? is_row_vector(r_, x, wide_) : is_vector(r_, x, s_.vector);
  }
  std::string pack_place(std::string_view name, size_t a) const {
    return cat(name, a, wide_ > 1 ? ".v[w]" : ".v[u]");
  }
  /// What is added to a place for row w of several.
  std::string row_step(const Argument& x) const {
    const int64_t stride = wide_ > 1 ? x.strides[size_t(r_.row_rank) - 1] : 0;
    return stride == 0 ? "" : stride == 1 ? " + w" : cat(" + w * ", index_, "(", stride, ")");
  }
  std::string element_place(const Argument& x, size_t a) const {
    if (a < values_.size() && values_[a]) return name_of(a);
    if (wide_ > 1) return cat(name_of(a), "[o", a, row_step(x), "]");
    const int64_t stride = x.role == Role::scratch ? 1 : x.strides[r_.dims.size() - 1];
    const std::string step = s_.vector == 1 || stride == 0 ? ""
                             : stride == 1                 ? " + u"
                                                           : cat(" + u * ", index_, "(", stride, ")");
    return cat(name_of(a), "[o", a, step, "]");
  }
  std::string kept_place(size_t a) const {
    return s_.vector == 1 ? cat("k", a, "[round]") : cat("k", a, "[round * ", s_.vector, " + u]");
  }

  void print_instruction(const std::string& indent, int n, int phase) {
    const Instruction& i = at(n);
    if (i.op == Op::load) {
      const size_t a = size_t(i.argument);
      const Argument& x = argument(i);
      const bool kept = is_kept(a) && phase >= 0;
      if (kept && (phase > 0 || x.role == Role::scratch)) return define(indent, n, read(i, kept_place(a)));
      const std::string from = in_pack(x) ? pack_place("p", a) : element_place(x, a);
      if (kept) line(indent, cat(kept_place(a), " = ", from, ";"));
      return define(indent, n, read(i, kept ? kept_place(a) : from));
    }
    if (i.op == Op::store) {
      const size_t a = size_t(i.argument);
      const Argument& x = argument(i);
      if (is_summed(a)) {
        const std::string sum =
            cat("s", a, s_.vector == 1 ? "[round]" : cat("[round * ", s_.vector, " + u]"));
        return line(indent, cat(sum, " = ", sum, " + ", value(i.operands[0]), ";"));
      }
      const std::string to = is_kept(a) && phase >= 0 ? kept_place(a)
                             : in_pack(x)             ? pack_place("q", a)
                                                      : element_place(x, a);
      const bool in_memory = !(is_kept(a) && phase >= 0) && !in_pack(x);
      return line(indent, cat(in_memory ? guard(a) : "", "put(", to, ", ", value(i.operands[0]), ");"));
    }
    if (is_reduction(i.op)) {
      return line(indent, cat(gathered(n), " = ", reduction_type(i.op), "::of(", gathered(n), ", ",
                              value(i.operands[0]), ");"));
    }
    define(indent, n, expression(i));
  }

  // ---- rows ----

  /// Kept in registers between phases: scratch rows, and inputs whose elements are loaded in the first
  /// phase and again later.
  bool is_kept(size_t a) const {
    if (!s_.in_registers) return false;
    if (r_.arguments[a].role == Role::scratch) return true;
    return (loads_in_phase(0, a) || !summed_.empty()) && later_loads(a);
  }
  /// Where rows follow each other, what later phases read is asked for in the first one too: no load may be moved in front of a store.
  void print_loads_ahead() {
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
  bool loads_in_phase(size_t phase, size_t a) const {
    return std::any_of(phases_[phase].elements.begin(), phases_[phase].elements.end(),
                       [&](int n) { return at(n).op == Op::load && size_t(at(n).argument) == a; });
  }
  bool later_loads(size_t a) const {
    for (size_t p = 1; p < phases_.size(); ++p) {
      if (loads_in_phase(p, a)) return true;
    }
    return false;
  }

  int64_t scratch_bytes() const {
    int64_t bytes = 0;
    for (const Argument& a : r_.arguments) {
      if (a.role == Role::scratch)
        bytes += (r_.rows() * r_.columns() * int64_t(dtype_size(a.dtype)) + 63) / 64 * 64;
    }
    return bytes;
  }
  // Of each reduction, one value for each part of each row, 8 bytes each.
  int64_t partials_bytes() const {
    int64_t count = 0;
    for (const Instruction& i : r_.code) count += is_reduction(i.op);
    return count * s_.splits * r_.rows() * 8;
  }

  bool along_rows(Stage stage) const { return s_.threads_along_rows && stage != Stage::join; }

  std::string joined(Stage stage, const Instruction& i, int n) const {
    const std::string_view op = reduction_type(i.op);
    if (stage == Stage::join || (!along_rows(stage) && s_.lanes == 32))
      return cat("over_warp<", op, ">(r", n, ")");
    if (along_rows(stage)) {
      if (s_.lanes == 1) return gathered(n);
      return cat("over_y<", op, ", ", s_.lanes, ">(", gathered(n), ", shared)");
    }
    return cat("over_block<", op, ", ", s_.threads / 32, ">(r", n, ", shared)");
  }

  void print_row_start(Stage stage) {
    if (along_rows(stage)) {
      if (s_.lanes > 1) line("  ", cat("__shared__ f64 shared[", 32 * s_.lanes, "];"));
      line("  ",
           cat("const ", index_, " place = (", index_, "(blockIdx.x) * 32 + threadIdx.x) * ", wide_, ";"));
      line("  ", cat("const bool live = place < ", r_.rows(), ";"));
      line("  ", cat("const ", index_, " row = live ? place : ", r_.rows() - wide_, ";"));
      line("  ", "const int lane = threadIdx.y;");
    } else if (stage == Stage::join || s_.lanes == 32) {
      line("  ", cat("const ", index_, " row = ", index_, "(blockIdx.x) * 4 + threadIdx.x / 32;"));
      line("  ", cat("if (row >= ", r_.rows(), ") return;"));
      line("  ", "const int lane = threadIdx.x % 32;");
      line("  ", "const bool live = true;");
    } else {
      line("  ", cat("__shared__ f64 shared[", s_.threads / 32, "];"));
      line("  ", cat("const ", index_, " row = blockIdx.x;"));
      line("  ", "const int lane = threadIdx.x;");
      line("  ", "const bool live = true;");
    }
    print_row_places();
  }

  void print_row_places() {
    print_indices("  ", "i", "row", 0, size_t(r_.row_rank));
    for (size_t a = 0; a < r_.arguments.size(); ++a) {
      const Argument& x = r_.arguments[a];
      if (x.role == Role::scratch) continue;
      line("  ", cat("const ", index_, " b", a, " = ", offset(x, "i", 0, size_t(r_.row_rank)), ";"));
    }
  }

  void print_scratch() {
    int64_t at = 0;
    for (size_t a = 0; a < r_.arguments.size(); ++a) {
      const Argument& x = r_.arguments[a];
      if (is_kept(a)) {
        line("  ", cat(memory_type(x.dtype), " k", a, "[", s_.rounds * s_.vector, "];"));
      } else if (x.role == Role::scratch) {
        line("  ",
             cat(memory_type(x.dtype), "* const ", name_of(a), " = reinterpret_cast<", memory_type(x.dtype),
                 "*>(workspace + i64(", at, ")) + i64(row) * ", r_.columns(), ";"));
        at += (r_.rows() * r_.columns() * int64_t(dtype_size(x.dtype)) + 63) / 64 * 64;
      }
    }
  }

  void print_row_values(const Phase& phase) {
    if (phase.rows.empty()) return;
    for (const int n : phase.rows) {
      if (wide_ > 1 && at(n).op != Op::store) declare_rows("v", n);
    }
    begin_rows("  ");
    const std::string indent = indent_of_rows();
    for (const int n : phase.rows) {
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

  void print_columns(const Phase& phase, int number, Stage stage) {
    const std::string stop = cat(r_.columns());
    const std::string pass = cat(index_, "(", int64_t(s_.lanes) * s_.vector, ")");
    const std::string first = stage == Stage::parts ? cat(index_, "(blockIdx.y) * ",
                                                          int64_t(s_.lanes) * s_.vector * s_.rounds, " + ")
                                                    : "";
    const bool whole = s_.in_registers || !summed_.empty();  // places in registers are known then
    line("  ", whole ? "#pragma unroll" : "#pragma unroll 4");
    line("  ", cat("for (int round = 0; round < ", s_.rounds, "; ++round) {"));
    line("    ", cat("const ", index_, " c = ", first, "round * ", pass, " + lane * ", s_.vector, ";"));
    line("    ", cat("if (c < ", stop, ") {"));
    print_indices("      ", "j", "c", size_t(r_.row_rank), r_.dims.size());
    for (size_t a = 0; a < r_.arguments.size(); ++a) {
      const Argument& x = r_.arguments[a];
      const std::string at = x.role == Role::scratch
                                 ? "c"
                                 : cat("b", a, " + ", offset(x, "j", size_t(r_.row_rank), r_.dims.size()));
      line("      ", cat("const ", index_, " o", a, " = ", at, ";"));
    }
    // A thread past the last row computes on a row that is there and writes nothing.
    if (!summed_.empty() && number == 0) print_loads_ahead();
    const bool guarded = s_.threads_along_rows;
    if (!guarded) {
      print_body("      ", phase.elements, number);
    } else {
      print_guarded(phase, number);
    }
    line("    ", "}");
    line("  ", "}");
  }

  void print_guarded(const Phase& phase, int number) {
    std::vector<int> values, stores;
    for (const int n : phase.elements) (at(n).op == Op::store ? stores : values).push_back(n);
    std::vector<bool> packed(r_.arguments.size());
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

  std::string part_place(int reduction, const std::string& part) const {
    return cat("parts[(i64(", reduction, ") * ", s_.splits, " + ", part, ") * ", r_.rows(), " + row",
               wide_ > 1 ? " + w" : "", "]");
  }

  // The parts of a row that blocks found, read by the lanes of a warp.
  void print_parts_read(int n, int reduction) {
    const Lane lane = at(n).lane;
    line("  ", cat("for (int part = lane; part < ", s_.splits, "; part += 32)"));
    line("    ", cat("r", n, " = ", reduction_type(at(n).op), "::of(r", n, ", reinterpret_cast<const ",
                     lane_type(lane), "&>(", part_place(reduction, "part"), "));"));
  }

  std::string rows_kernel(const std::string& entry, Stage stage) {
    wide_ = along_rows(stage) ? s_.row_vector : 1;
    text_ = signature(entry, stage == Stage::join ? 128 : s_.threads);
    print_row_start(stage);
    if (stage == Stage::whole) print_scratch();
    if (stage != Stage::whole) line("  ", "i64* const parts = reinterpret_cast<i64*>(workspace);");
    print_phases(stage);
    return text_ + "}\n";
  }

  void print_phases(Stage stage) {
    for (size_t p = 0; p < phases_.size(); ++p) {
      const Phase& phase = phases_[p];
      if (stage == Stage::join || p == 0 || stage == Stage::whole) {
        if (stage == Stage::parts) {
          print_row_values_without_stores(phase);
        } else {
          print_row_values(phase);
        }
      }
      if (phase.elements.empty()) continue;
      for (const int n : phase.elements) {
        if (is_reduction(at(n).op)) print_gathering(n);
      }
      if (stage != Stage::join) print_columns(phase, int(p), stage);
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
      if (stage == Stage::parts) break;
    }
  }

  // What a reduction begins with.
  void print_gathering(int n) {
    const std::string first = literal(at(n).lane, at(n).constant);
    if (wide_ == 1) return line("  ", cat(lane_type(at(n).lane), " r", n, " = ", first, ";"));
    declare_rows("r", n);
    begin_rows("  ");
    line("    ", cat(gathered(n), " = ", first, ";"));
    end_rows("  ");
  }

  void print_row_values_without_stores(const Phase& phase) {
    Phase values;
    for (const int n : phase.rows) {
      if (at(n).op != Op::store) values.rows.push_back(n);
    }
    print_row_values(values);
  }

  const Region& r_;
  const Schedule& s_;
  std::vector<Phase> phases_;
  std::vector<bool> once_, values_;  // of arguments, in functions
  std::vector<bool> summed_;         // arguments that are summed over all rows
  std::string text_, index_;
  int wide_ = 1;  // rows of a thread, in the kernel that is being printed
};

}  // namespace

PrintedRegion print_region(const Region& r, const Schedule& s) { return Printer(r, s).run(); }

Source print_rows_with_sums(const Region& r, const Schedule& s, const std::vector<bool>& summed,
                            int64_t blocks) {
  return {"rows_with_sums", Printer(r, s).rows_with_sums("rows_with_sums", summed, blocks)};
}

std::string print_row_function(const Region& r, const Schedule& s, const std::string& name,
                               const std::vector<bool>& once) {
  return Printer(r, s).row_function(name, once);
}

std::string print_element_function(const Region& r, const std::string& name,
                                   const std::vector<bool>& values) {
  const Schedule one;
  return Printer(r, one).element_function(name, values);
}

std::string print_vector_function(const Region& r, const Schedule& s, const std::string& name) {
  return Printer(r, s).element_function(name, {});
}

}  // namespace rlx::cuda
