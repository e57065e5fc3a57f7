#include "rlx/backend/cuda/region/body_printer.h"

#include <algorithm>
#include <cmath>

namespace rlx::cuda {

using region::Op;
using region::Role;

BodyPrinter::BodyPrinter(const region::Region& r, const Schedule& s) : r_(r), s_(s) {
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

void BodyPrinter::cut_phases() {
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

bool BodyPrinter::is_kept(size_t a) const {
  if (!s_.in_registers) return false;
  if (r_.arguments[a].role == Role::scratch) return true;
  return (loads_in_phase(0, a) || !summed_.empty()) && later_loads(a);
}
bool BodyPrinter::loads_in_phase(size_t phase, size_t a) const {
  return std::any_of(phases_[phase].elements.begin(), phases_[phase].elements.end(),
                     [&](int n) { return at(n).op == Op::load && size_t(at(n).argument) == a; });
}
bool BodyPrinter::later_loads(size_t a) const {
  for (size_t p = 1; p < phases_.size(); ++p) {
    if (loads_in_phase(p, a)) return true;
  }
  return false;
}

void BodyPrinter::define(const std::string& indent, int n, const std::string& e) {
  const bool declared = wide_ > 1 && at(n).per_row;
  line(indent, declared ? cat(value(n), " = ", e, ";")
                        : cat("const ", lane_type(at(n).lane), " ", value(n), " = ", e, ";"));
}
void BodyPrinter::begin_rows(const std::string& indent) {
  if (wide_ == 1) return;
  line(indent, "#pragma unroll");
  line(indent, cat("for (int w = 0; w < ", wide_, "; ++w) {"));
}
void BodyPrinter::end_rows(const std::string& indent) {
  if (wide_ > 1) line(indent, "}");
}

std::string BodyPrinter::expression(const Instruction& i) const {
  return expression_text(r_, i, [&](int n) { return value(n); });
}
std::string BodyPrinter::read(const Instruction& i, const std::string& place) const {
  return cat("as_", region::lane_name(i.lane), "(", place, ")");
}

void BodyPrinter::print_indices(const std::string& indent, const std::string& name, const std::string& number,
                                size_t from, size_t to) {
  std::string rest = number;
  for (size_t d = to; d-- > from;) {
    const bool outermost = d == from;
    line(indent, cat("const ", index_, " ", name, d, " = ", rest,
                     outermost ? "" : cat(" % ", std::max<int64_t>(r_.dims[d], 1)), ";"));
    if (outermost) break;
    const std::string next = cat(name, "rest", d);
    line(indent, cat("const ", index_, " ", next, " = ", rest, " / ", std::max<int64_t>(r_.dims[d], 1), ";"));
    rest = next;
  }
}
std::string BodyPrinter::offset(const Argument& a, const std::string& name, size_t from, size_t to) const {
  std::string out;
  for (size_t d = from; d < to; ++d) {
    if (a.strides[d] == 0 || r_.dims[d] <= 1) continue;
    out += cat(out.empty() ? "" : " + ", name, d);
    if (a.strides[d] != 1) out += cat(" * ", index_, "(", a.strides[d], ")");
  }
  return out.empty() ? "0" : out;
}
bool BodyPrinter::in_pack(const Argument& x) const {
  return wide_ > 1 ? is_row_vector(r_, x, wide_) : is_vector(r_, x, s_.vector);
}
std::string BodyPrinter::pack_place(std::string_view name, size_t a) const {
  return cat(name, a, wide_ > 1 ? ".v[w]" : ".v[u]");
}
std::string BodyPrinter::row_step(const Argument& x) const {
  const int64_t stride = wide_ > 1 ? x.strides[size_t(r_.row_rank) - 1] : 0;
  return stride == 0 ? "" : stride == 1 ? " + w" : cat(" + w * ", index_, "(", stride, ")");
}
std::string BodyPrinter::element_place(const Argument& x, size_t a) const {
  if (a < values_.size() && values_[a]) return name_of(a);
  if (wide_ > 1) return cat(name_of(a), "[o", a, row_step(x), "]");
  const int64_t stride = x.role == Role::scratch ? 1 : x.strides[r_.dims.size() - 1];
  const std::string step = s_.vector == 1 || stride == 0 ? ""
                           : stride == 1                 ? " + u"
                                                         : cat(" + u * ", index_, "(", stride, ")");
  return cat(name_of(a), "[o", a, step, "]");
}
std::string BodyPrinter::kept_place(size_t a) const {
  return s_.vector == 1 ? cat("k", a, "[round]") : cat("k", a, "[round * ", s_.vector, " + u]");
}

std::string BodyPrinter::parameters(const std::vector<bool>& values) const {
  std::string out;
  for (size_t a = 0; a < r_.arguments.size(); ++a) {
    const Argument& x = r_.arguments[a];
    if (x.role == Role::scratch || is_summed(a)) continue;
    const bool value = a < values.size() && values[a];
    if (value && s_.vector > 1) {
      out += cat("const Pack<", memory_type(x.dtype), ", ", s_.vector, ">& ", name_of(a), ", ");
      continue;
    }
    out += cat(x.role == Role::in ? "const " : "", memory_type(x.dtype),
               value ? (x.role == Role::in ? " " : "& ") : "* ", name_of(a), ", ");
  }
  return out;
}
std::string BodyPrinter::signature(const std::string& entry, int threads) const {
  return cat("extern \"C\" __global__ void __launch_bounds__(", threads, ") ", entry, "(", parameters({}),
             "char* workspace) {\n");
}

std::string BodyPrinter::elements_kernel() {
  text_ = signature("region", 256);
  const int64_t count = r_.rows() * r_.columns();
  line("  ", cat("const ", index_, " e = (", index_, "(blockIdx.x) * 256 + threadIdx.x) * ", s_.vector, ";"));
  line("  ", cat("if (e >= ", count, ") return;"));
  print_elements();
  return text_ + "}\n";
}

std::string BodyPrinter::element_function(const std::string& name, const std::vector<bool>& values) {
  const std::string rest = parameters(values);
  text_ = cat("inline void ", name, "(", index_, " e", rest.empty() ? "" : ", ",
              rest.substr(0, rest.size() - std::min<size_t>(rest.size(), 2)), ") {\n");
  values_ = values;
  print_elements();
  return text_ + "}\n";
}

void BodyPrinter::print_elements() {
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

void BodyPrinter::print_body(const std::string& indent, const std::vector<int>& list, int phase) {
  const int v = s_.vector;
  std::vector<bool> loaded(r_.arguments.size()), stored(r_.arguments.size());
  for (const int n : list) {
    const Instruction& i = at(n);
    if (i.op != Op::load && i.op != Op::store) continue;
    const size_t a = size_t(i.argument);
    if (!is_vector(r_, r_.arguments[a], v) || is_summed(a)) continue;
    if (i.op == Op::load && !loaded[a] && !(phase > 0 && is_kept(a))) {
      const bool given = a < values_.size() && values_[a];
      line(indent, given ? cat("const auto& p", a, " = ", name_of(a), ";")
                         : cat("const auto p", a, " = ", values_.empty() ? "load<" : "load_fixed<", v, ">(",
                               name_of(a), " + o", a, ");"));
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

void BodyPrinter::print_instruction(const std::string& indent, int n, int phase) {
  const Instruction& i = at(n);
  if (i.op == Op::load) return print_load(indent, n, phase);
  if (i.op == Op::store) return print_store(indent, n, phase);
  if (is_reduction(i.op)) {
    return line(indent, cat(gathered(n), " = ", reduction_type(i.op), "::of(", gathered(n), ", ",
                            value(i.operands[0]), ");"));
  }
  define(indent, n, expression(i));
}

void BodyPrinter::print_load(const std::string& indent, int n, int phase) {
  const Instruction& i = at(n);
  const size_t a = size_t(i.argument);
  const Argument& x = argument(i);
  const bool kept = is_kept(a) && phase >= 0;
  if (kept && (phase > 0 || x.role == Role::scratch)) return define(indent, n, read(i, kept_place(a)));
  const std::string from = in_pack(x) ? pack_place("p", a) : element_place(x, a);
  if (kept) line(indent, cat(kept_place(a), " = ", from, ";"));
  define(indent, n, read(i, kept ? kept_place(a) : from));
}

void BodyPrinter::print_store(const std::string& indent, int n, int phase) {
  const Instruction& i = at(n);
  const size_t a = size_t(i.argument);
  const Argument& x = argument(i);
  if (is_summed(a)) {
    const std::string sum = cat("s", a, s_.vector == 1 ? "[round]" : cat("[round * ", s_.vector, " + u]"));
    return line(indent, cat(sum, " = ", sum, " + ", value(i.operands[0]), ";"));
  }
  const bool kept = is_kept(a) && phase >= 0;
  const std::string to = kept ? kept_place(a) : in_pack(x) ? pack_place("q", a) : element_place(x, a);
  const bool in_memory = !kept && !in_pack(x);
  line(indent, cat(in_memory ? guard(a) : "", "put(", to, ", ", value(i.operands[0]), ");"));
}

}  // namespace rlx::cuda
