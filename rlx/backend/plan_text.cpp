// Plans as text, and back.
//
//   plan of layer: 2 steps, arena 57600 bytes, largest live set 57600 bytes
//     leaf x: 128 bytes, number 0, steps 0 to 0
//     leaf s: 128 bytes, number 1, steps 1 to 1
//     leaf w: 256 bytes, number 2
//     activation h: 128 bytes at 0, steps 0 to 1
//     workspace "workspace of step 0": 57472 bytes at 128, steps 0 to 0
//     output n: 128 bytes in the place of s, number 0, steps 1 to 1
//     step 0: h f32[4,8] = matmul_gemm(x f32[4,8], w f32[8,8] packed)  // packed weights
//       h matmul, node 3, 512 operations, 512 bytes, scratch "workspace of step 0", from "net.cpp:7"
//     step 1: n f32[4,8] = region(s f32[4,8], h f32[4,8])
//       n add, node 4, 32 operations, 384 bytes, result 0 over operand 0
//
// Buffers count from 0 in the order of their lines; where several have one name, name@4 is buffer 4. A buffer without steps is not in
// use. Behind the buffer of a value stand +N, its bytes from there on, its type, [strides] where it is not row by row, and `as b` where it is
// the value of another buffer than the one it lies in. A copy has no node. Plans of bodies stand under their step.
#include <cctype>
#include <charconv>
#include <map>

#include "rlx/backend/plan.h"
#include "rlx/base/json_write.h"

namespace rlx::backend {
namespace {

constexpr std::string_view kByRule = ", by the reference rule";

bool in_arena(BufferKind k) { return k == BufferKind::activation || k == BufferKind::workspace; }

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("_.%/-#").find(c) != std::string_view::npos;
}

// Counts are whole numbers nearly always.
std::string written(double count) {
  return count == double(int64_t(count)) ? cat(int64_t(count)) : cat(count);
}

std::string written(std::string_view name) {
  for (const char c : name) {
    if (!is_plain(c)) return json_quote(name);
  }
  return name.empty() ? "\"\"" : std::string(name);
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void write(const Plan& plan, const std::string& indent) {
    std::map<std::string_view, int> count;
    for (const Plan::Buffer& b : plan.buffers) ++count[b.name];
    names_.clear();
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      const std::string& name = plan.buffers[i].name;
      names_.push_back(count[name] > 1 ? cat(written(name), "@", i) : written(name));
    }
    out_ += cat(indent, "plan of ", written(plan.graph), ": ", plan.steps.size(), " steps, arena ",
                plan.arena_bytes, " bytes, largest live set ", plan.live_bytes, " bytes\n");
    for (size_t i = 0; i < plan.buffers.size(); ++i) buffer(plan.buffers[i], i, indent);
    for (size_t i = 0; i < plan.steps.size(); ++i) step(plan.steps[i], i, indent);
  }

 private:
  void buffer(const Plan::Buffer& b, size_t number, const std::string& indent) {
    out_ += cat(indent, "  ", buffer_kind_name(b.kind), " ", names_[number], ": ", b.bytes, " bytes");
    if (in_arena(b.kind)) out_ += cat(" at ", b.offset);
    if (b.state >= 0) out_ += cat(" in the place of ", names_[size_t(b.state)]);
    if (!in_arena(b.kind)) out_ += cat(", number ", b.index);
    if (b.last >= 0) out_ += cat(", steps ", b.first, " to ", b.last);
    out_ += "\n";
  }

  std::string place(const Plan::Place& p) const {
    std::string out = names_[size_t(p.buffer)];
    if (p.offset != 0) out += cat("+", p.offset);
    out += cat(" ", p.shape);
    if (!p.layout.is_row_major(p.shape.dims())) out += cat(" [", join(p.layout.strides), "]");
    if (p.value >= 0 && p.value != p.buffer) out += cat(" as ", names_[size_t(p.value)]);
    return out;
  }

  void step(const Plan::Step& s, size_t number, const std::string& indent) {
    std::vector<std::string> in, to;
    for (size_t k = 0; k < s.in.size(); ++k)
      in.push_back(place(s.in[k]) + (k < s.packed.size() && s.packed[k] ? " packed" : ""));
    for (const Plan::Place& p : s.out) to.push_back(place(p));
    out_ += cat(indent, "  step ", number, ": ", join(to), " = ", written(s.kernel), "(", join(in), ")");
    if (!s.note.empty()) out_ += cat("  // ", s.note);
    out_ += cat("\n", indent, "    ", written(s.name), " ", written(s.op));
    if (s.node != ir::kNoNode) out_ += cat(", node ", s.node);
    out_ += cat(", ", written(s.cost.operations), " operations, ", written(s.cost.bytes), " bytes");
    if (s.workspace >= 0) out_ += cat(", scratch ", names_[size_t(s.workspace)]);
    for (const InPlace& p : s.in_place) out_ += cat(", result ", p.result, " over operand ", p.operand);
    if (s.by_rule) out_ += kByRule;
    if (!s.origin.empty()) out_ += cat(", from ", json_quote(s.origin));
    out_ += "\n";
    for (const Plan& body : s.bodies) Writer(out_).write(body, indent + "    ");
  }

  std::string& out_;
  std::vector<std::string> names_;  // of buffers, told apart
};

/// Words of one line after the other.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Plan read() {
    Plan plan = read_plan(0);
    if (!text_.empty()) refuse("the end of the text");
    return plan;
  }

 private:
  template <class... Wanted>
  [[noreturn]] void refuse(const Wanted&... wanted) const {
    const std::string_view line = text_.substr(0, text_.find('\n'));
    throw invalid("plan: line ", line_, ": ", cat(wanted...), " expected, found ",
                  line.empty() ? "the end of the line" : cat("'", line.substr(0, 40), "'"));
  }

  bool take(std::string_view words) {
    if (!text_.starts_with(words)) return false;
    text_.remove_prefix(words.size());
    return true;
  }
  void expect(std::string_view words) {
    if (!take(words)) refuse("'", words, "'");
  }
  void end_line() {
    if (!text_.starts_with('\n')) refuse("the end of the line");
    text_.remove_prefix(1);
    ++line_;
  }
  // Whether the line is indented so far and goes on with these words.
  bool begins(size_t indent, std::string_view words) const {
    return text_.size() >= indent &&
           text_.substr(0, indent).find_first_not_of(' ') == std::string_view::npos &&
           text_.substr(indent).starts_with(words);
  }

  template <class Number>
  Number number() {
    Number out{};
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), out);
    if (error != std::errc()) refuse("a number");
    text_.remove_prefix(size_t(end - text_.data()));
    return out;
  }

  std::string name() {
    size_t end = 0;
    if (text_.starts_with('"')) {
      for (end = 1; end < text_.size() && text_[end] != '"' && text_[end] != '\n'; ++end)
        end += text_[end] == '\\';
      if (end >= text_.size() || text_[end] != '"') refuse("the end of a name in quotes");
      const Json quoted = Json::parse(std::string(text_.substr(0, end + 1)), cat("plan: line ", line_));
      text_.remove_prefix(end + 1);
      return std::string(quoted.string());
    }
    while (end < text_.size() && is_plain(text_[end])) ++end;
    if (end == 0) refuse("a name");
    const std::string out(text_.substr(0, end));
    text_.remove_prefix(end);
    return out;
  }

  // A buffer that a line above named, or that any line of the plan names.
  int buffer(const std::vector<Plan::Buffer>& buffers) {
    const auto before = text_;
    const std::string wanted = name();
    const auto wrong = [&](const auto&... what) {
      text_ = before;
      refuse(what...);
    };
    if (take("@")) {
      const auto at = number<size_t>();
      if (at >= buffers.size() || buffers[at].name != wanted) wrong("a buffer of the plan");
      return int(at);
    }
    int found = -1;
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (buffers[i].name != wanted) continue;
      if (found >= 0)
        wrong("the number of one of the buffers called '", wanted, "', as ", wanted, "@", i, ",");
      found = int(i);
    }
    if (found < 0) wrong("a buffer of the plan");
    return found;
  }

  Plan read_plan(size_t indent) {
    Plan plan;
    if (!begins(indent, "plan of ")) refuse("'plan of' behind ", indent, " spaces");
    text_.remove_prefix(indent);
    expect("plan of "), plan.graph = name(), expect(": ");
    const auto steps = number<size_t>();
    expect(" steps, arena "), plan.arena_bytes = number<int64_t>();
    expect(" bytes, largest live set "), plan.live_bytes = number<int64_t>(), expect(" bytes"), end_line();
    // States are named before or behind the lines of their outputs.
    std::vector<std::pair<size_t, std::string_view>> states;
    while (begins(indent + 2, "") && !begins(indent + 2, "step ") && !begins(indent + 2, " ") &&
           text_.size() > indent + 2)
      read_buffer(plan, indent, steps, states);
    const auto rest = text_;
    for (const auto& [output, at] : states) text_ = at, plan.buffers[output].state = buffer(plan.buffers);
    text_ = rest;
    while (begins(indent + 2, "step ")) plan.steps.push_back(read_step(plan, indent));
    if (plan.steps.size() != steps) refuse(steps, " steps, of which ", plan.steps.size(), " are there,");
    return plan;
  }

  void read_buffer(Plan& plan, size_t indent, size_t steps,
                   std::vector<std::pair<size_t, std::string_view>>& states) {
    text_.remove_prefix(indent + 2);
    Plan::Buffer b{};
    bool known = false;
    for (int k = 0; k <= int(BufferKind::workspace) && !known; ++k) {
      b.kind = BufferKind(k);
      known = take(cat(buffer_kind_name(b.kind), " "));
    }
    if (!known) refuse("a kind of buffer");
    b.name = name();
    if (take("@") && number<size_t>() != plan.buffers.size()) refuse("the number ", plan.buffers.size());
    expect(": "), b.bytes = number<int64_t>(), expect(" bytes");
    if (in_arena(b.kind)) expect(" at "), b.offset = number<int64_t>();
    if (take(" in the place of ")) {
      states.emplace_back(plan.buffers.size(), text_);
      name();
      if (take("@")) number<size_t>();
    }
    if (!in_arena(b.kind)) expect(", number "), b.index = number<int>();
    b.first = int(steps), b.last = -1;
    if (take(", steps ")) b.first = number<int>(), expect(" to "), b.last = number<int>();
    end_line();
    plan.buffers.push_back(std::move(b));
  }

  Plan::Place read_place(const Plan& plan) {
    Plan::Place p{.buffer = buffer(plan.buffers)};
    if (take("+")) p.offset = number<int64_t>();
    expect(" ");
    size_t at = 0;
    p.shape = parse_shape(text_.substr(0, text_.find('\n')), at);
    if (!p.shape.is_static()) refuse("a type of known sizes");
    text_.remove_prefix(at);
    p.layout = Layout::row_major(p.shape.dims());
    if (take(" [")) {
      p.layout.strides.clear();
      for (bool more = !take("]"); more; more = !take("]")) {
        if (!p.layout.strides.empty()) expect(", ");
        p.layout.strides.push_back(number<int64_t>());
      }
      if (int(p.layout.strides.size()) != p.shape.rank()) refuse(p.shape.rank(), " strides of ", p.shape);
    }
    if (take(" as ")) p.value = buffer(plan.buffers);
    return p;
  }

  Plan::Step read_step(const Plan& plan, size_t indent) {
    Plan::Step s;
    text_.remove_prefix(indent + 2);
    expect("step ");
    if (number<size_t>() != plan.steps.size()) refuse("step ", plan.steps.size());
    expect(":");
    while (!take(" = ")) {
      expect(s.out.empty() ? " " : ", ");
      s.out.push_back(read_place(plan));
    }
    s.kernel = name(), expect("(");
    while (!take(")")) {
      if (!s.in.empty()) expect(", ");
      s.in.push_back(read_place(plan));
      s.packed.push_back(take(" packed"));
    }
    if (take("  // ")) {
      s.note = text_.substr(0, text_.find('\n'));
      text_.remove_prefix(s.note.size());
    }
    end_line();
    if (!begins(indent + 4, "")) refuse("the node of the step behind ", indent + 4, " spaces");
    text_.remove_prefix(indent + 4);
    s.name = name(), expect(" "), s.op = name();
    if (take(", node ")) s.node = number<ir::NodeId>();
    expect(", "), s.cost.operations = number<double>();
    expect(" operations, "), s.cost.bytes = number<double>(), expect(" bytes");
    if (take(", scratch ")) s.workspace = buffer(plan.buffers);
    while (take(", result ")) {
      const int result = number<int>();
      expect(" over operand ");
      s.in_place.emplace_back(number<int>(), result);
    }
    s.by_rule = take(kByRule);
    if (take(", from ")) s.origin = name();
    end_line();
    while (begins(indent + 4, "plan of ")) s.bodies.push_back(read_plan(indent + 4));
    return s;
  }

  std::string_view text_;
  size_t line_ = 1;
};

}  // namespace

std::string Plan::text() const {
  std::string out;
  Writer(out).write(*this, "");
  return out;
}

Plan Plan::parse(std::string_view text) { return Reader(text).read(); }

}  // namespace rlx::backend
