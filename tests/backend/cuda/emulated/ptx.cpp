// Inline PTX becomes C++: an instruction is a call with its operands in order, registers are variables, labels and branches stay.
#include <functional>
#include <optional>

#include "scan.h"
#include "text.h"

namespace emulated {
namespace {

bool starts(const std::string& s, const std::string& with) { return s.compare(0, with.size(), with) == 0; }
bool holds(const std::string& s, const std::string& part) { return s.find(part) != std::string::npos; }

struct Instruction {
  std::string name;                // cp.async.cg.shared.global
  std::vector<std::string> parts;  // of the name
  std::vector<std::vector<std::string>>
      operands;  // a vector or an address with its indices is one, of several words

  bool has(const std::string& part) const {
    for (const std::string& p : parts)
      if (p == part) return true;
    return false;
  }
  std::string last() const { return parts.back(); }
};

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> out;
  size_t begin = 0;
  while (begin <= name.size()) {
    const size_t end = std::min(name.find('.', begin), name.size());
    out.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

std::string c_type(const std::string& ptx) {
  static const std::pair<const char*, const char*> kTypes[] = {{"b8", "unsigned char"},
                                                               {"u8", "unsigned char"},
                                                               {"s8", "signed char"},
                                                               {"b16", "unsigned short"},
                                                               {"u16", "unsigned short"},
                                                               {"s16", "short"},
                                                               {"b32", "unsigned"},
                                                               {"u32", "unsigned"},
                                                               {"s32", "int"},
                                                               {"f32", "float"},
                                                               {"f64", "double"},
                                                               {"b64", "unsigned long long"},
                                                               {"u64", "unsigned long long"},
                                                               {"s64", "long long"},
                                                               {"pred", "bool"}};
  for (const auto& [name, type] : kTypes)
    if (ptx == name) return type;
  return "";
}

std::string call(const std::string& function, const Instruction& in) {
  std::string out = "emulated::ptx::" + function + "(";
  bool first = true;
  for (const auto& operand : in.operands) {
    for (const std::string& word : operand) {
      if (word == "_") continue;  // a result that nobody wants
      out += (first ? "" : ", ") + word;
      first = false;
    }
  }
  return out + ")";
}

std::string in_order(const std::string& function,
                     std::initializer_list<const std::vector<std::string>*> operands) {
  Instruction moved;
  for (const auto* o : operands) moved.operands.push_back(*o);
  return call(function, moved);
}

// What an operand of matrix units is called in `device`, or nothing.
std::string element(const std::string& type) {
  static const std::pair<const char*, const char*> kKnown[] = {{"f16", "Half"},  {"bf16", "Bfloat"},
                                                               {"tf32", "Tf32"}, {"s8", "Byte"},
                                                               {"e4m3", "E4M3"}, {"e5m2", "E5M2"}};
  for (const auto& [ptx, text] : kKnown)
    if (type == ptx) return std::string("emulated::ptx::") + text;
  return "";
}
bool is_fp8(const std::string& type) { return type == "e4m3" || type == "e5m2"; }
// Both operands as arguments of a template; those of fp8 may differ.
std::string elements(const std::string& a, const std::string& b) {
  const bool fit = a == b || (is_fp8(a) && is_fp8(b));
  return !fit || element(a).empty() ? "" : element(a) + ", " + element(b);
}

std::string product(const Instruction& in) {  // mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
  if (in.parts.size() != 10 || !starts(in.parts[3], "m16n8k")) return "";
  const std::string depth = in.parts[3].substr(6), type = in.parts[7], both = elements(type, in.parts[8]);
  if (both.empty() || in.parts[6] != in.parts[9]) return "";
  if (in.parts[6] != (type == "s8" ? "s32" : "f32") || (is_fp8(type) && depth != "32")) return "";
  return call("mma<" + both + ", " + depth + ">", in);
}

std::string group_product(const Instruction& in) {  // wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
  if (in.parts.size() != 8 || !starts(in.parts[4], "m64n") || in.parts[5] != "f32") return "";
  const std::string shape = in.parts[4], type = in.parts[6], both = elements(type, in.parts[7]);
  const size_t k = shape.find('k');
  const std::string columns = shape.substr(4, k - 4);
  const bool known = type == "f16" || type == "bf16" || is_fp8(type);
  if (both.empty() || !known || shape.substr(k) != (is_fp8(type) ? "k32" : "k16") || in.operands.size() < 6)
    return "";
  std::string out = "{ float* const sums[] = {";
  for (const std::string& d : in.operands[0]) out += "&" + d + ", ";
  const bool registers = in.operands[1].size() == 4;
  out += std::string("}; emulated::ptx::wgmma_") + (registers ? "registers" : "shared") + "<" + both + ", " +
         columns + ">(sums";
  for (size_t i = 1; i < in.operands.size(); ++i)
    for (const std::string& word : in.operands[i]) out += ", " + word;
  // Products of 8 bits have no words for turned operands: both lie along the sum.
  if (is_fp8(type)) out += registers ? ", 0" : ", 0, 0";
  return out + "); }";
}

std::string memory(const Instruction& in, bool loads) {  // ld.global.nc.L1::no_allocate.v4.u32 {..}, [..]
  const std::string type = c_type(in.last());
  if (type.empty() || in.operands.size() != 2) return "";
  bool shared = false;
  for (const std::string& p : in.parts) shared = shared || starts(p, "shared");
  const std::string function =
      std::string(loads ? "load_" : "store_") + (shared ? "shared" : "global") + "<" + type + ">";
  return loads ? in_order(function, {&in.operands[1], &in.operands[0]}) : call(function, in);
}

std::string translate(const Instruction& in) {
  const std::string& n = in.name;
  for (const char* nothing :
       {"griddepcontrol.", "prefetch", "cp.async.bulk.prefetch", "fence", "membar", "discard",
        "applypriority", "setmaxnreg", "wgmma.fence", "wgmma.commit_group", "wgmma.wait_group", "nop"})
    if (starts(n, nothing)) return call("nothing", in);
  if (starts(n, "cvt.")) {
    if (holds(n, "sat") || holds(n, "relu") || in.parts.size() < 3) return "";
    const std::string to = in.parts[in.parts.size() - 2], from = in.last();
    const std::string pair = to + "_" + from;
    const bool rounds =
        pair == "f32_f16" || pair == "f32_bf16" || (pair == "tf32_f32" ? in.has("rna") : in.has("rn"));
    for (const char* known : {"f16_f32", "bf16_f32", "f32_f16", "f32_bf16", "f16x2_f32", "bf16x2_f32",
                              "tf32_f32", "f16x2_e4m3x2"})
      if (pair == known && rounds) return call("cvt_" + pair, in);
    return "";
  }
  if (n == "max.f16x2" || n == "max.bf16x2") return call("max_" + in.last(), in);
  if (n == "fma.rn.f16x2" || n == "fma.rn.bf16x2") return call("fma_" + in.last(), in);
  if (in.last() == "f32") {
    static const std::pair<const char*, const char*> kFunctions[] = {{"ex2.approx", "ex2"},
                                                                     {"lg2.approx", "lg2"},
                                                                     {"rcp.approx", "rcp"},
                                                                     {"rcp.rn", "rcp"},
                                                                     {"rsqrt.approx", "rsqrt_approx"},
                                                                     {"sqrt.", "sqrt_approx"},
                                                                     {"tanh.approx", "tanh_approx"},
                                                                     {"sin.approx", "sin_approx"},
                                                                     {"cos.approx", "cos_approx"},
                                                                     {"fma.rn", "fma_f32"}};
    for (const auto& [prefix, function] : kFunctions)
      if (starts(n, prefix)) return call(function, in);
  }
  if (starts(n, "mov.") && in.operands.size() == 2) {
    if (in.operands[0].size() == 2) return call("unpack2", in);
    if (in.operands[1].size() == 2) return call("pack2", in);
    const std::string type = c_type(in.last());
    return type.empty() ? "" : call("mov<" + type + ">", in);
  }
  if (starts(n, "setp.") && in.parts.size() == 3 && in.operands.size() == 3) {
    static const std::pair<const char*, const char*> kSigns[] = {{"eq", "=="}, {"ne", "!="}, {"lt", "<"},
                                                                 {"le", "<="}, {"gt", ">"},  {"ge", ">="}};
    for (const auto& [word, sign] : kSigns) {
      const std::string type = c_type(in.last());
      if (in.parts[1] != word || type.empty()) continue;
      return in.operands[0][0] + " = emulated::ptx::get<" + type + ">(" + in.operands[1][0] + ") " + sign +
             " emulated::ptx::get<" + type + ">(" + in.operands[2][0] + ")";
    }
    return "";
  }
  static const std::pair<const char*, const char*> kIntegers[] = {
      {"add.", "+"}, {"sub.", "-"},  {"and.", "&"},  {"or.", "|"},
      {"xor.", "^"}, {"shl.", "<<"}, {"shr.", ">>"}, {"mul.lo.", "*"}};
  for (const auto& [prefix, sign] : kIntegers) {
    const std::string type = c_type(in.last());
    if (!starts(n, prefix) || in.operands.size() != 3 || type.empty()) continue;
    return "emulated::ptx::put(" + in.operands[0][0] + ", " + type + "(emulated::ptx::get<" + type + ">(" +
           in.operands[1][0] + ") " + sign + " emulated::ptx::get<" + type + ">(" + in.operands[2][0] + ")))";
  }
  if (starts(n, "lop3.b32")) return call("lop3", in);
  if (n == "prmt.b32") return call("prmt", in);
  if (n == "dp4a.s32.s32") return call("dp4a_s32", in);
  if (n == "dp4a.u32.s32") return call("dp4a_u32_s32", in);
  if (n == "dp2a.lo.s32.s32") return call("dp2a_low_s32", in);
  if (starts(n, "ld.")) return memory(in, true);
  if (starts(n, "st.")) return memory(in, false);
  if (starts(n, "red.") && in.has("global") && in.has("add") && !c_type(in.last()).empty())
    return call("add_global<" + c_type(in.last()) + ">", in);
  if (starts(n, "cvta.to.shared")) return call("to_shared", in);
  if (n == "cp.async.commit_group") return call("copy_commit", in);
  if (n == "cp.async.wait_group") return call("copy_wait", in);
  if (n == "cp.async.wait_all") return call("copy_wait_all", in);
  if (starts(n, "cp.async.mbarrier.arrive.noinc")) return call("mbarrier_copies_arrive", in);
  if (starts(n, "cp.async.bulk.tensor.") && holds(n, "shared::cluster.global") &&
      holds(n, "mbarrier::complete_tx::bytes") && !holds(n, "im2col")) {
    Instruction plain = in;
    if (holds(n, "cache_hint")) plain.operands.pop_back();
    const char* const blocks = holds(n, "multicast::cluster") ? "_to_blocks" : "";
    return call("copy_tensor_" + in.parts[4].substr(0, 1) + blocks, plain);
  }
  if (starts(n, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes") &&
      !holds(n, "multicast") && in.operands.size() == 4)
    return call("copy_bulk", in);
  if (starts(n, "cp.async.ca.shared") || starts(n, "cp.async.cg.shared")) {
    Instruction plain = in;
    if (holds(n, "cache_hint") && plain.operands.size() > 3) plain.operands.pop_back();
    return call("copy_async", plain);
  }
  const auto matrices = [&](const char* function, const std::vector<std::string>& address,
                            const std::vector<std::string>& registers) {
    const std::string count = in.has("x4") ? "4" : in.has("x2") ? "2" : "1";
    return in_order(std::string(function) + "<" + count + ", " + (in.has("trans") ? "true" : "false") + ">",
                    {&address, &registers});
  };
  if (starts(n, "ldmatrix.sync.aligned.m8n8") && in.last() == "b16")
    return matrices("ldmatrix", in.operands[1], in.operands[0]);
  if (starts(n, "stmatrix.sync.aligned.m8n8") && in.last() == "b16")
    return matrices("stmatrix", in.operands[0], in.operands[1]);
  if (starts(n, "mma.sync.aligned.")) return product(in);
  if (starts(n, "wgmma.mma_async.")) return group_product(in);
  if (starts(n, "mbarrier.")) {
    if (in.has("shared::cluster") && !starts(n, "mbarrier.arrive.shared::cluster")) return "";
    if (starts(n, "mbarrier.init")) return call("mbarrier_init", in);
    if (starts(n, "mbarrier.inval")) return call("mbarrier_inval", in);
    if (starts(n, "mbarrier.arrive.expect_tx")) return call("mbarrier_arrive_expect", in);
    if (starts(n, "mbarrier.expect_tx")) return call("mbarrier_expect", in);
    if (starts(n, "mbarrier.arrive.noComplete") || starts(n, "mbarrier.arrive_drop")) return "";
    if (starts(n, "mbarrier.arrive")) return call("mbarrier_arrive", in);
    if (holds(n, "wait.parity")) return call("mbarrier_wait_parity", in);
    return "";
  }
  if (starts(n, "mapa.")) return call("mapa", in);
  if (starts(n, "barrier.cluster.arrive")) return call("cluster_arrive", in);
  if (starts(n, "barrier.cluster.wait")) return call("cluster_wait", in);
  if (n == "bar.warp.sync") return call("bar_warp", in);
  if (n == "bar.sync" || starts(n, "barrier.sync") || starts(n, "barrier.cta.sync")) return call("bar", in);
  if (n == "bar.arrive" || starts(n, "barrier.arrive") || starts(n, "barrier.cta.arrive"))
    return call("bar_arrive", in);
  return "";
}

/// One asm statement.
class Statement {
 public:
  Statement(std::vector<std::string> operands, int number)
      : operands_(std::move(operands)), number_(std::to_string(number)) {}

  std::string translated(const std::string& body) {
    std::string out = "do { ";
    for (std::string rest = body; !(rest = trimmed(rest)).empty();) {
      if (rest[0] == '{' || rest[0] == '}') {
        out += std::string(1, rest[0]) + " ";
        rest.erase(0, 1);
        continue;
      }
      if (starts(rest, "//")) {
        rest.erase(0, std::min(rest.find('\n'), rest.size()));
        continue;
      }
      if (const std::string label = label_of(rest); !label.empty()) {
        out += place(label) + ": ; ";
        rest.erase(0, rest.find(':') + 1);
        continue;
      }
      const size_t end = std::min(rest.find(';'), rest.size());
      out += one(trimmed(rest.substr(0, end))) + "; ";
      rest.erase(0, end + 1);
    }
    return out + "} while (0)";
  }

 private:
  static std::string label_of(const std::string& s) {
    size_t end = 0;
    while (end < s.size() && (in_word(s[end]) || s[end] == '$')) ++end;
    const size_t colon = behind_space(s, end);
    const bool is =
        end > 0 && colon < s.size() && s[colon] == ':' && (colon + 1 >= s.size() || s[colon + 1] != ':');
    return is ? s.substr(0, end) : "";
  }
  std::string place(const std::string& label) const { return "emulated_label_" + label + "_" + number_; }
  std::string variable(const std::string& name) const { return "emulated_register_" + name; }

  std::string one(const std::string& text) {
    if (starts(text, ".reg")) return declared(text);
    if (text[0] == '@') {
      const size_t space = text.find_first_of(" \t\n");
      std::string predicate = text.substr(1, space - 1);
      const bool negative = predicate[0] == '!';
      if (negative) predicate.erase(0, 1);
      return std::string("if (") + (negative ? "!" : "") + word(predicate) + ") { " +
             one(trimmed(text.substr(space))) + "; }";
    }
    const size_t space = std::min(text.find_first_of(" \t\n"), text.size());
    Instruction in;
    in.name = text.substr(0, space);
    in.parts = parts_of(in.name);
    if (in.parts[0] == "bra") return "goto " + place(trimmed(text.substr(space)));
    for (const std::string& operand : split_outside(text.substr(space), ','))
      in.operands.push_back(words(operand));
    const std::string out = translate(in);
    if (out.empty()) throw NotEmulated("the PTX instruction '" + in.name + "' is not emulated: " + text);
    return out;
  }

  std::string declared(const std::string& text) {
    const size_t dot = text.find('.', 4);
    const size_t space = std::min(text.find_first_of(" \t", dot), text.size());
    const std::string type = c_type(text.substr(dot + 1, space - dot - 1));
    if (type.empty() || holds(text, "<"))
      throw NotEmulated("the PTX declaration '" + text + "' is not emulated");
    std::string out = type + " ";
    bool first = true;
    for (const std::string& name : split_outside(text.substr(space), ',')) {
      out += (first ? "" : ", ") + variable(name);
      first = false;
    }
    return out;
  }

  // {a, b} and [a, {b, c}] are several words.
  std::vector<std::string> words(const std::string& operand) {
    std::vector<std::string> out;
    if (operand.empty()) return out;
    if (operand[0] != '{' && operand[0] != '[') return {word(operand)};
    for (const std::string& inside : split_outside(operand.substr(1, operand.size() - 2), ','))
      for (std::string& w : words(inside)) out.push_back(std::move(w));
    return out;
  }

  // %3 is an operand of the statement, %name a special register, a name a register, the rest numbers; a + 16 is possible in addresses.
  std::string word(const std::string& text) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const char c = text[at];
      if (c == '%') {
        size_t end = at + 1;
        if (end < text.size() && text[end] == '%') ++end;
        const size_t begin = end;
        while (end < text.size() && (in_word(text[end]) || text[end] == '.')) ++end;
        const std::string name = text.substr(begin, end - begin);
        if (!name.empty() && std::isdigit(static_cast<unsigned char>(name[0]))) {
          const size_t number = std::stoul(name);
          if (number >= operands_.size()) throw NotEmulated("an asm statement has no operand %" + name);
          out += operands_[number];
        } else {
          out += special(name);
        }
        at = end;
      } else if (std::isdigit(static_cast<unsigned char>(c))) {
        size_t end = at;
        while (end < text.size() && in_word(text[end])) ++end;
        const std::string number = text.substr(at, end - at);
        out += number.size() == 10 && number[0] == '0' && (number[1] == 'f' || number[1] == 'F')
                   ? "__uint_as_float(0x" + number.substr(2) + "u)"
                   : number;
        at = end;
      } else if (in_word(c)) {
        size_t end = at;
        while (end < text.size() && in_word(text[end])) ++end;
        const std::string name = text.substr(at, end - at);
        out += name == "_" ? name : variable(name);
        at = end;
      } else {
        out += c;
        ++at;
      }
    }
    return out;
  }
  static std::string special(const std::string& name) {
    static const std::pair<const char*, const char*> kKnown[] = {
        {"cluster_ctarank", "emulated::ptx::special_cluster_ctarank()"},
        {"cluster_nctarank", "emulated::ptx::special_cluster_nctarank()"},
        {"laneid", "emulated::ptx::special_laneid()"},
        {"tid.x", "threadIdx.x"},
        {"tid.y", "threadIdx.y"},
        {"ctaid.x", "blockIdx.x"},
        {"ctaid.y", "blockIdx.y"},
        {"ctaid.z", "blockIdx.z"},
        {"ntid.x", "blockDim.x"},
        {"nctaid.x", "gridDim.x"}};
    for (const auto& [ptx, text] : kKnown)
      if (name == ptx) return text;
    throw NotEmulated("the PTX register '%" + name + "' is not emulated");
  }

  std::vector<std::string> operands_;
  std::string number_;
};

std::string unescaped(const std::string& literal) {
  std::string out;
  for (size_t i = 1; i + 1 < literal.size(); ++i) {
    if (literal[i] != '\\') {
      out += literal[i];
      continue;
    }
    const char c = literal[++i];
    out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
  }
  return out;
}

/// Neighbouring string literals from `at` on, as one; `at` goes behind them.
std::string literals(const std::string& s, size_t& at) {
  std::string out;
  for (at = behind_space(s, at); at < s.size() && s[at] == '"'; at = behind_space(s, at)) {
    const size_t end = behind_quote(s, at);
    out += unescaped(s.substr(at, end - at));
    at = end;
  }
  return out;
}

/// What stands in the brackets of an asm statement.
std::string statement(const std::string& inside, int number) {
  size_t at = 0;
  const std::string body = literals(inside, at);
  const std::string rest = at < inside.size() ? inside.substr(at) : "";
  const std::vector<std::string> sections = split_outside(rest, ':');  // the first is empty
  std::vector<std::string> operands;
  for (size_t s = 1; s < sections.size() && s <= 2; ++s) {
    for (const std::string& operand : split_outside(sections[s], ',')) {
      const size_t open = operand.find('(', operand.rfind('"', operand.find('(')));
      if (open == std::string::npos) throw NotEmulated("an operand of asm: " + operand);
      operands.push_back("(" + operand.substr(open + 1, behind_bracket(operand, open) - open - 2) + ")");
    }
  }
  return Statement(std::move(operands), number).translated(body);
}

}  // namespace

std::string without_asm(const std::string& text) {
  std::string out;
  size_t from = 0;
  for (int number = 0;; ++number) {
    const size_t at = find_word(text, "asm", from);
    if (at == std::string::npos) return out + text.substr(from);
    size_t open = behind_space(text, at + 3);
    if (text.compare(open, 8, "volatile") == 0) open = behind_space(text, open + 8);
    if (open >= text.size() || text[open] != '(') throw NotEmulated("asm without brackets");
    const size_t end = behind_bracket(text, open);
    out += text.substr(from, at - from) + statement(text.substr(open + 1, end - open - 2), number);
    from = end;
  }
}

}  // namespace emulated
