#include "rlx/llm/grammar/automaton.h"

#include <algorithm>
#include <map>

#include "rlx/base/error.h"

namespace rlx::llm {

namespace {

// A grammar of this size is a mistake or an attack: {1,1000000} of something long.
constexpr size_t kMaxStates = 2'000'000;

// An automaton with moves that read nothing, as expressions are joined.
struct Loose {
  std::vector<Automaton::ByteMove> bytes;
  std::vector<std::pair<int, int32_t>> calls;  // rule and where to go on
  std::vector<Automaton::TokenMove> tokens;
  std::vector<int32_t> jumps;
};

}  // namespace

class Automaton::Builder {
 public:
  Builder(const RuleSet& rules, const std::string& where) : rules_(rules), where_(where) {
    for (const RuleSet::Rule& rule : rules.rules) {
      if (!rule.body) throw invalid(where, ": rule '", rule.name, "' is used and not defined");
      starts_.push_back(add());
      ends_.push_back(add());
    }
    for (size_t r = 0; r < rules.rules.size(); ++r) {
      const int32_t last = build(*rules.rules[r].body, starts_[r]);
      jump(last, ends_[r]);
    }
  }

  void finish(Automaton& out) {
    is_end_.assign(loose_.size(), false);
    for (const int32_t e : ends_) is_end_[size_t(e)] = true;
    refuse_left_recursion();
    out.states_.resize(loose_.size());
    for (size_t s = 0; s < loose_.size(); ++s) {
      const Loose& from = loose_[s];
      State& state = out.states_[s];
      for (const ByteMove& m : from.bytes) state.bytes.push_back({m.first, m.last, past_jumps(m.target)});
      for (const TokenMove& m : from.tokens) state.tokens.push_back({m.reference, past_jumps(m.target)});
      for (const auto& [rule, target] : from.calls)
        state.calls.push_back({starts_[size_t(rule)], only_ends(target) ? kDone : past_jumps(target)});
      for (const int32_t target : from.jumps) state.jumps.push_back(past_jumps(target));
      state.ends = is_end_[s];
    }
    out.start_ = starts_[size_t(rules_.root)];
    out.tokens_ = std::move(tokens_);
    measure(out);
    if (out.bytes_to_end(out.start_) >= kNever) throw invalid(where_, ": no text fits this grammar");
  }

 private:
  int32_t add() {
    if (loose_.size() >= kMaxStates)
      throw invalid(where_, ": the grammar needs more than ", kMaxStates, " states; repeat less");
    loose_.emplace_back();
    return int32_t(loose_.size()) - 1;
  }
  void jump(int32_t from, int32_t to) { loose_[size_t(from)].jumps.push_back(to); }

  // Builds `e` from state `at` on; the state behind it.
  int32_t build(const Expression& e, int32_t at) {
    switch (e.kind) {
      case Expression::Kind::text:
        for (const char c : e.text)
          at = byte(at, {static_cast<unsigned char>(c), static_cast<unsigned char>(c)});
        return at;
      case Expression::Kind::characters:
        return build_characters(e.characters, at);
      case Expression::Kind::sequence:
        for (const ExpressionPtr& part : e.parts) at = build(*part, at);
        return at;
      case Expression::Kind::choice: {
        const int32_t last = add();
        for (const ExpressionPtr& part : e.parts) {
          const int32_t first = add();
          jump(at, first);
          jump(build(*part, first), last);
        }
        return last;
      }
      case Expression::Kind::repeat:
        return build_repeat(e, at);
      case Expression::Kind::rule: {
        const int32_t last = add();
        loose_[size_t(at)].calls.emplace_back(e.rule, last);
        return last;
      }
      case Expression::Kind::token: {
        const int32_t last = add();
        loose_[size_t(at)].tokens.push_back({int32_t(tokens_.size()), last});
        tokens_.push_back(e.token);
        return last;
      }
    }
    return at;
  }

  int32_t byte(int32_t at, ByteRange range) {
    const int32_t next = add();
    loose_[size_t(at)].bytes.push_back({range.first, range.last, next});
    return next;
  }

  int32_t build_characters(const CharacterSet& set, int32_t at) {
    const int32_t last = add();
    // Sequences that agree in front share states, so that a class of many ranges stays small.
    std::map<std::vector<std::pair<int, int>>, int32_t> prefixes;
    for (const std::vector<ByteRange>& sequence : byte_sequences(set)) {
      int32_t from = at;
      std::vector<std::pair<int, int>> prefix;
      for (size_t i = 0; i < sequence.size(); ++i) {
        const ByteRange r = sequence[i];
        if (i + 1 == sequence.size()) {
          loose_[size_t(from)].bytes.push_back({r.first, r.last, last});
          break;
        }
        prefix.emplace_back(r.first, r.last);
        const auto [found, fresh] = prefixes.try_emplace(prefix, 0);
        if (fresh) found->second = byte(from, r);
        from = found->second;
      }
    }
    return last;
  }

  int32_t build_repeat(const Expression& e, int32_t at) {
    const Expression& part = *e.parts[0];
    for (int64_t i = 0; i < e.least; ++i) at = build(part, at);
    if (e.most < 0) {
      const int32_t loop = add();
      jump(at, loop);
      jump(build(part, loop), loop);
      const int32_t last = add();  // nothing built later may leave from inside the loop
      jump(loop, last);
      return last;
    }
    const int32_t last = add();
    for (int64_t i = e.least; i < e.most; ++i) {
      jump(at, last);
      const int32_t first = add();
      jump(at, first);
      at = build(part, first);
    }
    jump(at, last);
    return last;
  }

  // Whether a state does nothing but jump to one other.
  bool only_jumps(int32_t s) const {
    const Loose& l = loose_[size_t(s)];
    return !is_end_[size_t(s)] && l.bytes.empty() && l.calls.empty() && l.tokens.empty() &&
           l.jumps.size() == 1;
  }

  // The first state from here on that does more than jump. Of jumps in a circle (a loop over nothing) it is one of them.
  int32_t past_jumps(int32_t s) {
    past_.resize(loose_.size(), kUnknown);
    std::vector<int32_t> way;
    for (; past_[size_t(s)] == kUnknown && only_jumps(s); s = loose_[size_t(s)].jumps[0]) {
      past_[size_t(s)] = s;
      way.push_back(s);
    }
    const int32_t last = past_[size_t(s)] == kUnknown ? s : past_[size_t(s)];
    for (const int32_t w : way) past_[size_t(w)] = last;
    return last;
  }

  // Whether there is nothing left to do from here on but to be done: a call that goes on here needs no return.
  bool only_ends(int32_t s) { return is_end_[size_t(past_jumps(s))]; }

  // Rules that can be done without reading; then, for every rule, those it calls before it has read anything.
  void refuse_left_recursion() {
    const size_t n = rules_.rules.size();
    std::vector<bool> empty(n, false);
    std::vector<std::vector<int>> first(n);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t r = 0; r < n; ++r) {
        std::vector<int> called;
        const bool ends = walk_before_reading(starts_[r], empty, called);
        if (ends != empty[r]) empty[r] = true, changed = true;
        first[r] = std::move(called);
      }
    }
    std::vector<char> mark(n, 0);  // 1: on the way, 2: done
    std::vector<std::pair<int, size_t>> way;
    for (size_t root = 0; root < n; ++root) {
      if (mark[root]) continue;
      way.assign(1, {int(root), 0});
      mark[root] = 1;
      while (!way.empty()) {
        auto& [rule, next] = way.back();
        if (next == first[size_t(rule)].size()) {
          mark[size_t(rule)] = 2;
          way.pop_back();
          continue;
        }
        const int callee = first[size_t(rule)][next++];
        if (mark[size_t(callee)] == 1)
          throw invalid(
              where_, ": rule '", rules_.rules[size_t(callee)].name,
              "' may call itself before it has read anything (left recursion); write it as a repetition");
        if (mark[size_t(callee)] == 0) mark[size_t(callee)] = 1, way.emplace_back(callee, 0);
      }
    }
  }

  bool walk_before_reading(int32_t start, const std::vector<bool>& empty, std::vector<int>& called) {
    std::vector<int32_t> todo{start};
    std::vector<bool> seen(loose_.size(), false);
    seen[size_t(start)] = true;
    bool ends = false;
    const auto visit = [&](int32_t s) {
      if (!seen[size_t(s)]) seen[size_t(s)] = true, todo.push_back(s);
    };
    while (!todo.empty()) {
      const int32_t s = todo.back();
      todo.pop_back();
      ends |= bool(is_end_[size_t(s)]);
      for (const int32_t next : loose_[size_t(s)].jumps) visit(next);
      for (const auto& [rule, target] : loose_[size_t(s)].calls) {
        if (std::find(called.begin(), called.end(), rule) == called.end()) called.push_back(rule);
        if (empty[size_t(rule)]) visit(target);
      }
    }
    return ends;
  }

  // Shortest ways to the end, by relaxation until nothing changes: distances of rules depend on each other.
  void measure(Automaton& out) {
    std::vector<int64_t>& d = out.distance_;
    d.assign(out.states_.size(), kNever);
    const std::vector<int32_t> order = targets_first(out.states_);
    for (bool changed = true; changed;) {
      changed = false;
      for (const int32_t i : order) {
        const State& s = out.states_[size_t(i)];
        int64_t best = s.ends ? 0 : kNever;
        for (const ByteMove& m : s.bytes) best = std::min(best, d[size_t(m.target)] + 1);
        for (const TokenMove& m : s.tokens) best = std::min(best, d[size_t(m.target)] + 1);
        for (const int32_t j : s.jumps) best = std::min(best, d[size_t(j)]);
        for (const Call& c : s.calls)
          best = std::min(best, d[size_t(c.rule_start)] + out.bytes_to_end(c.target));
        if (best < d[size_t(i)]) d[size_t(i)] = best, changed = true;
      }
    }
  }

  static std::vector<int32_t> targets_of(const State& s) {
    std::vector<int32_t> out(s.jumps.begin(), s.jumps.end());
    for (const ByteMove& m : s.bytes) out.push_back(m.target);
    for (const TokenMove& m : s.tokens) out.push_back(m.target);
    for (const Call& c : s.calls) {
      out.push_back(c.rule_start);
      if (c.target != kDone) out.push_back(c.target);
    }
    return out;
  }

  // All states in the order in which a walk through the moves leaves them: each behind its targets, except along loops and
  // recursion, so that one sweep settles all but these.
  static std::vector<int32_t> targets_first(const std::vector<State>& states) {
    struct Visit {
      int32_t state;
      std::vector<int32_t> targets;  // not yet seen to
    };
    std::vector<int32_t> out;
    std::vector<bool> met(states.size());
    std::vector<Visit> path;
    const auto meet = [&](int32_t s) {
      if (met[size_t(s)]) return;
      met[size_t(s)] = true;
      path.push_back({s, targets_of(states[size_t(s)])});
    };
    for (size_t first = 0; first < states.size(); ++first) {
      meet(int32_t(first));
      while (!path.empty()) {
        Visit& v = path.back();
        if (v.targets.empty()) {
          out.push_back(v.state);
          path.pop_back();
          continue;
        }
        const int32_t next = v.targets.back();
        v.targets.pop_back();
        meet(next);
      }
    }
    return out;
  }

  const RuleSet& rules_;
  const std::string& where_;
  std::vector<Loose> loose_;
  static constexpr int32_t kUnknown = -2;
  std::vector<int32_t> starts_, ends_;
  std::vector<int32_t> past_;  // of each state: past_jumps, once it was asked for
  std::vector<bool> is_end_;
  std::vector<TokenReference> tokens_;
};

Automaton::Automaton(const RuleSet& rules, const std::string& where) { Builder(rules, where).finish(*this); }

}  // namespace rlx::llm
