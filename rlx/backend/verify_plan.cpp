// Whether a plan is one that can run: sizes and lifetimes first, then step by step what lies where.
#include <algorithm>
#include <map>
#include <optional>

#include "rlx/backend/plan.h"

namespace rlx::backend {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int kArena = -1;  // memory that is no buffer's own

bool in_arena(const Plan::Buffer& b) {
  return b.kind == BufferKind::activation || b.kind == BufferKind::workspace;
}
int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Which value each byte of a memory holds.
class Contents {
 public:
  void write(ByteRange b, int value) {
    if (b.is_empty()) return;
    cut(b.begin), cut(b.end);
    runs_.erase(runs_.lower_bound(b.begin), runs_.lower_bound(b.end));
    runs_[b.begin] = {b.end, value};
  }
  /// What lies there instead of the value, kNothing where nothing was written.
  std::optional<int> other_than(ByteRange b, int value) const {
    int64_t at = b.begin;
    auto it = runs_.upper_bound(at);
    if (it != runs_.begin()) --it;
    for (; at < b.end && it != runs_.end(); ++it) {
      const auto& [end, held] = it->second;
      if (end <= at) continue;
      if (it->first > at) return kNothing;
      if (held != value) return held;
      at = end;
    }
    return at < b.end ? std::optional(kNothing) : std::nullopt;
  }
  static constexpr int kNothing = -1;

 private:
  // No run goes over this border afterwards.
  void cut(int64_t border) {
    auto it = runs_.lower_bound(border);
    if (it == runs_.begin()) return;
    --it;
    const auto [end, value] = it->second;
    if (end <= border) return;
    it->second.first = border;
    runs_[border] = {end, value};
  }

  std::map<int64_t, std::pair<int64_t, int>> runs_;  // from a byte to its end and value
};

class Verifier {
 public:
  explicit Verifier(const Plan& plan) : plan_(plan) {}

  std::vector<std::string> run() {
    if (!check_numbers()) return std::move(wrong_);
    check_buffers();
    check_sums();
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const Plan::Buffer& b = plan_.buffers[i];
      if (b.kind == BufferKind::leaf || b.kind == BufferKind::constant)
        memory_of(int(i)).write({0, b.bytes}, int(i));
    }
    for (size_t s = 0; s < plan_.steps.size(); ++s) step(int(s));
    for (size_t i = 0; i < plan_.buffers.size(); ++i) check_output(int(i));
    return std::move(wrong_);
  }

 private:
  template <class... Args>
  void tell(const Args&... args) {
    wrong_.push_back(cat(args...));
  }
  const Plan::Buffer& buffer(const Plan::Place& p) const { return plan_.buffers[size_t(p.buffer)]; }
  static int value_of(const Plan::Place& p) { return p.value < 0 ? p.buffer : p.value; }
  std::string name_of(int value) const {
    return value < int(plan_.buffers.size()) ? plan_.buffers[size_t(value)].name : cat("value ", value);
  }

  // Where the buffer lies: the arena, itself, or the state that it replaces.
  int memory_number(int b) const {
    const Plan::Buffer& it = plan_.buffers[size_t(b)];
    return in_arena(it) ? kArena : it.state >= 0 ? it.state : b;
  }
  Contents& memory_of(int b) { return memories_[memory_number(b)]; }
  ByteRange at(const Plan::Place& p) const {
    const Plan::Buffer& b = buffer(p);
    const ByteRange e = p.extent();
    const int64_t base = in_arena(b) ? b.offset : 0;
    return {base + e.begin, base + e.end};
  }

  // Numbers of buffers and of operands; nothing else can be asked where they are wrong.
  bool check_numbers() {
    const auto is_buffer = [&](int b) { return b >= 0 && b < int(plan_.buffers.size()); };
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const Plan::Buffer& b = plan_.buffers[i];
      if (b.state < 0) continue;
      const bool is_leaf = is_buffer(b.state) && plan_.buffers[size_t(b.state)].kind == BufferKind::leaf;
      if (b.kind != BufferKind::output || !is_leaf) {
        tell(b.name, ": lies in the memory of buffer ", b.state, "; outputs may, in that of a leaf");
      } else if (plan_.buffers[size_t(b.state)].bytes != b.bytes) {
        tell(b.name, ": ", b.bytes, " bytes in the memory of ", plan_.buffers[size_t(b.state)].name,
             ", which has ", plan_.buffers[size_t(b.state)].bytes);
      }
    }
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const Plan::Step& step = plan_.steps[s];
      for (const auto* places : {&step.in, &step.out}) {
        for (const Plan::Place& p : *places) {
          if (!is_buffer(p.buffer)) tell("step ", s, ": there is no buffer ", p.buffer);
        }
      }
      if (step.workspace >= 0 && !is_buffer(step.workspace))
        tell("step ", s, ": there is no buffer ", step.workspace);
      for (const InPlace& p : step.in_place) {
        if (size_t(p.operand) >= step.in.size() || size_t(p.result) >= step.out.size())
          tell("step ", s, ": result ", p.result, " in the place of operand ", p.operand, ", of ",
               step.out.size(), " and ", step.in.size());
      }
    }
    return wrong_.empty();
  }

  void check_buffers() {
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      const Plan::Buffer& b = plan_.buffers[i];
      if (!in_arena(b) || b.last < 0) continue;
      if (b.offset % kAlignment != 0)
        tell(b.name, ": offset ", b.offset, " is not a multiple of ", kAlignment);
      if (b.offset < 0 || b.offset + b.bytes > plan_.arena_bytes)
        tell(b.name, ": ends at ", b.offset + b.bytes, ", the arena at ", plan_.arena_bytes);
      for (size_t k = 0; k < i; ++k) {
        const Plan::Buffer& o = plan_.buffers[k];
        if (!in_arena(o) || o.last < 0) continue;
        const bool together = o.first <= b.last && b.first <= o.last;
        if (together && ByteRange{b.offset, b.offset + b.bytes}.meets({o.offset, o.offset + o.bytes}))
          tell(b.name, " and ", o.name, " overlap and are in use at the same time");
      }
    }
  }

  // The largest set in use at one step, as lifetimes say.
  void check_sums() {
    std::map<int, int64_t> change;
    for (const Plan::Buffer& b : plan_.buffers) {
      if (!in_arena(b) || b.last < 0) continue;
      change[b.first] += aligned(b.bytes);
      change[b.last + 1] -= aligned(b.bytes);
    }
    int64_t now = 0, most = 0;
    for (const auto& [step, bytes] : change) most = std::max(most, now += bytes);
    if (plan_.live_bytes != most)
      tell("the largest live set is said to be ", plan_.live_bytes, " bytes; buffers in use together have ",
           most);
  }

  void check_place(int s, const Plan::Place& p, std::string_view what) {
    const Plan::Buffer& b = buffer(p);
    const ByteRange e = p.extent();
    if (!e.is_empty() && (e.begin < 0 || e.end > b.bytes))
      tell("step ", s, ": ", what, " ", b.name, " touches bytes ", e.begin, " to ", e.end, " of ", b.bytes);
    if (s < b.first || s > b.last)
      tell("step ", s, ": ", what, " ", b.name, " is in use from step ", b.first, " to ", b.last);
  }

  void step(int s) {
    const Plan::Step& step = plan_.steps[size_t(s)];
    if (step.workspace >= 0) {
      const Plan::Buffer& b = plan_.buffers[size_t(step.workspace)];
      if (s < b.first || s > b.last)
        tell("step ", s, ": ", b.name, " is in use from step ", b.first, " to ", b.last);
      memory_of(step.workspace).write({b.offset, b.offset + b.bytes}, step.workspace);
    }
    for (size_t i = 0; i < step.in.size(); ++i) {
      if (i < step.packed.size() && step.packed[i]) continue;
      const Plan::Place& p = step.in[i];
      check_place(s, p, "operand");
      if (const auto other = memory_of(p.buffer).other_than(at(p), value_of(p))) {
        tell("step ", s, ": operand ", name_of(value_of(p)),
             *other == Contents::kNothing ? " was never written"
                                          : cat(" was overwritten by ", name_of(*other)));
      }
    }
    for (size_t i = 0; i < step.out.size(); ++i) {
      const Plan::Place& p = step.out[i];
      check_place(s, p, "result");
      const BufferKind kind = buffer(p).kind;
      if (kind == BufferKind::leaf || kind == BufferKind::constant)
        tell("step ", s, ": result ", buffer(p).name, " is not to be written");
      check_apart(s, i);
      memory_of(p.buffer).write(at(p), value_of(p));
    }
    for (const Plan& body : step.bodies) {
      for (const std::string& w : verify_plan(body)) tell("step ", s, ": ", w);
    }
  }

  bool lie_alike(const Plan::Place& x, const Plan::Place& y) const {
    const auto in_order = [](const Plan::Place& p) { return p.layout.is_row_major(p.shape.dims()); };
    return at(x) == at(y) && x.shape == y.shape && in_order(x) && in_order(y);
  }

  // A result meets no other result, and an operand only as one that it may replace.
  void check_apart(int s, size_t result) {
    const Plan::Step& step = plan_.steps[size_t(s)];
    const Plan::Place& y = step.out[result];
    const auto meets = [&](const Plan::Place& p) {
      return memory_number(p.buffer) == memory_number(y.buffer) && at(p).meets(at(y));
    };
    for (size_t k = 0; k < result; ++k) {
      if (meets(step.out[k]))
        tell("step ", s, ": results ", name_of(value_of(step.out[k])), " and ", name_of(value_of(y)),
             " overlap");
    }
    for (size_t i = 0; i < step.in.size(); ++i) {
      const bool packed = i < step.packed.size() && step.packed[i];
      const Plan::Place& x = step.in[i];
      if (packed || !meets(x)) continue;
      const bool may = std::ranges::any_of(step.in_place, [&](const InPlace& p) {
        return size_t(p.operand) == i && size_t(p.result) == result;
      });
      if (!may || !lie_alike(x, y))
        tell("step ", s, ": result ", name_of(value_of(y)), " lies on operand ", name_of(value_of(x)), ", ",
             may ? "not as it does" : "which the step reads while it writes");
    }
  }

  // At the end. The last of several values in one buffer has the number of the buffer.
  void check_output(int i) {
    const Plan::Buffer& b = plan_.buffers[size_t(i)];
    if (b.kind != BufferKind::output) return;
    if (const auto other = memory_of(i).other_than({0, b.bytes}, i))
      tell("output ", b.name,
           *other == Contents::kNothing ? " is never written"
                                        : cat(" holds ", name_of(*other), " at the end"));
  }

  const Plan& plan_;
  std::vector<std::string> wrong_;
  std::map<int, Contents> memories_;
};

}  // namespace

std::vector<std::string> verify_plan(const Plan& plan) { return Verifier(plan).run(); }

}  // namespace rlx::backend
