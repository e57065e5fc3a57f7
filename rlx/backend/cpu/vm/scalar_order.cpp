// In what order the operations of a scalar program run.
#include <algorithm>
#include <utility>

#include "rlx/backend/cpu/vm/scalars.h"

namespace rlx::cpu {
namespace {

// A function takes about as long as so many additions.
constexpr int kFunctionDepth = 8;

}  // namespace

// Operations by their numbers; each stands behind those that make its operands.
class ScalarProgram::Order {
 public:
  explicit Order(const ScalarProgram& program)
      : code_(program.code_),
        count_(int(code_.size())),
        maker_(program.slots(), -1),
        depth_(code_.size(), 1),
        is_read_(code_.size(), false),
        done_(code_.size(), false) {
    for (int i = 0; i < count_; ++i) maker_[size_t(code_[size_t(i)].to)] = i;
    for (int i = 0; i < count_; ++i) {
      for (const int m : makers(i)) {
        depth_[size_t(i)] = std::max(depth_[size_t(i)], depth_[size_t(m)] + 1);
        is_read_[size_t(m)] = true;
      }
      if (code_[size_t(i)].kernel != nullptr) depth_[size_t(i)] += kFunctionDepth;
    }
  }

  // What a carry waits for comes first, the longest way of all in one go; what else reads the old number of a carry stands in front
  // of it, where a carry's place is free again when its next number is made. Then what nobody reads, backwards.
  std::vector<Code> of(std::span<const Carry> carries) {
    std::vector<std::pair<int, int>> goals;  // operation, the place of the old number
    for (const Carry& c : carries) {
      if (maker_[size_t(c.next)] >= 0) goals.emplace_back(maker_[size_t(c.next)], c.old);
    }
    std::stable_sort(goals.begin(), goals.end(), [&](const auto& x, const auto& y) {
      return depth_[size_t(x.first)] > depth_[size_t(y.first)];
    });
    for (const auto& [goal, old] : goals) {
      const std::vector<bool> tied = related(goal);
      for (int i = 0; i < count_; ++i) {
        const Code& c = code_[size_t(i)];
        if (!tied[size_t(i)] && (c.a == old || c.b == old || c.c == old)) put(i);
      }
      put(goal);
    }
    for (int i = 0; i < count_; ++i) {
      if (!is_read_[size_t(i)]) put(i);
    }
    return std::move(ordered_);
  }

 private:
  std::vector<int> makers(int i) const {
    const Code& c = code_[size_t(i)];
    std::vector<int> out;
    for (const int slot : {c.a, c.b, c.c}) {
      if (slot >= 0 && maker_[size_t(slot)] >= 0) out.push_back(maker_[size_t(slot)]);
    }
    return out;
  }

  // Operands first, of several the one with the longest way behind it last.
  void put(int goal) {
    std::vector<int> waiting = {
        goal};  // a stack: an operation is looked at again when its operands are there
    while (!waiting.empty()) {
      const int i = waiting.back();
      int next = -1;
      for (const int m : makers(i)) {
        if (!done_[size_t(m)] && (next < 0 || depth_[size_t(m)] < depth_[size_t(next)])) next = m;
      }
      if (next >= 0 && !done_[size_t(i)]) {
        waiting.push_back(next);
        continue;
      }
      if (!done_[size_t(i)]) ordered_.push_back(code_[size_t(i)]);
      done_[size_t(i)] = true;
      waiting.pop_back();
    }
  }

  // What waits for `of`, and what it waits for: one pass each.
  std::vector<bool> related(int of) const {
    std::vector<bool> out(code_.size(), false);
    out[size_t(of)] = true;
    for (int i = of + 1; i < count_; ++i) {
      for (const int m : makers(i)) out[size_t(i)] = out[size_t(i)] || out[size_t(m)];
    }
    for (int i = of; i >= 0; --i) {
      if (!out[size_t(i)]) continue;
      for (const int m : makers(i)) out[size_t(m)] = true;
    }
    return out;
  }

  const std::vector<Code>& code_;
  int count_;
  std::vector<int> maker_;  // by slot; -1: none
  std::vector<int> depth_;  // operations on the longest way to this one
  std::vector<bool> is_read_, done_;
  std::vector<Code> ordered_;
};

void ScalarProgram::chain(std::span<const Carry> carries) {
  code_ = Order(*this).of(carries);
  for (size_t i = 1; i < code_.size(); ++i) {
    Code& c = code_[i];
    const int last = code_[i - 1].to;
    c.run = c.forms[int(c.a == last) + 2 * int(c.b == last) + 4 * int(c.c == last)];
  }
}

}  // namespace rlx::cpu
