#include <algorithm>
#include <bitset>

#include "rlx/base/error.h"
#include "rlx/base/hash.h"
#include "rlx/llm/grammar/matcher.h"

namespace rlx::llm {

// Places at once in which a text may be. Rules that call each other twice and may be empty have 2^depth of them.
static constexpr size_t kMostPlaces = size_t(1) << 16;

MatchStates::MatchStates(std::shared_ptr<const Automaton> automaton) : automaton_(std::move(automaton)) {
  // A range of bytes that no move divides is read alike everywhere.
  std::bitset<257> divided;
  for (size_t s = 0; s < automaton_->size(); ++s)
    for (const Automaton::ByteMove& m : automaton_->state(int32_t(s)).bytes)
      divided.set(m.first), divided.set(size_t(m.last) + 1);
  for (int b = 0, first = 0; b < 256; ++b) {
    if (divided[size_t(b)]) first = b;
    alike_first_[b] = static_cast<unsigned char>(first);
  }
  start_ = intern({{automaton_->start(), kNoFrame}});
}

int32_t MatchStates::frame(int32_t state, int32_t below) {
  const uint64_t key = uint64_t(uint32_t(state)) << 32 | uint32_t(below);
  const auto [found, fresh] = frame_ids_.try_emplace(key, int32_t(frames_.size()));
  if (fresh)
    frames_.push_back(
        {state, below,
         automaton_->bytes_to_end(state) + (below == kNoFrame ? 0 : frames_[size_t(below)].distance)});
  return found->second;
}

int64_t MatchStates::distance_of(const Item& item) const {
  return automaton_->bytes_to_end(item.state) +
         (item.frame == kNoFrame ? 0 : frames_[size_t(item.frame)].distance);
}

int32_t MatchStates::intern(std::vector<Item> places) {
  Entry entry;
  entry.distance = Automaton::kNever;
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  std::unordered_map<uint64_t, bool> seen;
  const auto visit = [&](Item item) {
    if (distance_of(item) >= Automaton::kNever) return;  // nothing leads to an end from there
    if (seen.try_emplace(uint64_t(uint32_t(item.state)) << 32 | uint32_t(item.frame), true).second)
      places.push_back(item);
    if (places.size() > kMostPlaces) {
      throw invalid(
          "grammar: a text can be read in more than ", kMostPlaces,
          " ways at once; fewer rules that may be empty, or alternatives that begin alike, are needed");
    }
  };
  std::vector<Item> first;
  first.swap(places);
  for (const Item& item : first) visit(item);
  for (size_t i = 0; i < places.size(); ++i) {
    const Item item = places[i];
    const Automaton::State& s = automaton_->state(item.state);
    entry.distance = std::min(entry.distance, distance_of(item));
    if (!s.bytes.empty() || !s.tokens.empty()) entry.items.push_back(item);
    for (const int32_t j : s.jumps) visit({j, item.frame});
    for (const Automaton::Call& c : s.calls)
      visit({c.rule_start, c.target == Automaton::kDone ? item.frame : frame(c.target, item.frame)});
    if (!s.ends) continue;
    if (item.frame == kNoFrame)
      entry.complete = true;
    else
      visit({frames_[size_t(item.frame)].state, frames_[size_t(item.frame)].below});
  }
  if (entry.items.empty() && !entry.complete) return kDead;
  std::sort(entry.items.begin(), entry.items.end());
  Hasher hasher;
  hasher.add(entry.complete);
  for (const Item& item : entry.items)
    hasher.add(uint64_t(uint32_t(item.state)) << 32 | uint32_t(item.frame));
  const uint64_t hash = hasher.finish().lo;
  for (auto [at, end] = ids_.equal_range(hash); at != end; ++at)
    if (all_[size_t(at->second)].items == entry.items && all_[size_t(at->second)].complete == entry.complete)
      return at->second;
  std::fill(std::begin(entry.next), std::end(entry.next), kUnknown);
  const auto id = int32_t(all_.size());
  ids_.emplace(hash, id);
  all_.push_back(std::move(entry));
  return id;
}

int32_t MatchStates::find_next(int32_t state, unsigned char byte) {
  std::vector<Item> places;
  for (const Item& item : all_[size_t(state)].items)
    for (const Automaton::ByteMove& m : automaton_->state(item.state).bytes)
      if (m.first <= byte && byte <= m.last) places.push_back({m.target, item.frame});
  const int32_t next = places.empty() ? kDead : intern(std::move(places));
  for (size_t b = alike_first_[byte]; b < 256 && alike_first_[b] == alike_first_[byte]; ++b)
    all_[size_t(state)].next[b] = next;
  return next;
}

const std::vector<std::pair<int32_t, int32_t>>& MatchStates::token_moves(int32_t state) {
  if (!all_[size_t(state)].tokens) {
    std::vector<std::pair<int32_t, int32_t>> moves;
    const std::vector<Item> items = all_[size_t(state)].items;
    for (const Item& item : items)
      for (const Automaton::TokenMove& m : automaton_->state(item.state).tokens)
        if (const int32_t next = intern({{m.target, item.frame}}); next != kDead)
          moves.emplace_back(m.reference, next);
    all_[size_t(state)].tokens = std::move(moves);
  }
  return *all_[size_t(state)].tokens;
}

int32_t MatchStates::forget_but(int32_t state) {
  const std::vector<Item> items = all_[size_t(state)].items;
  const bool complete = all_[size_t(state)].complete;
  const std::vector<Frame> old = std::move(frames_);
  frames_.clear();
  frame_ids_.clear();
  all_.clear();
  ids_.clear();
  // Frames are made bottom first; each lies above one with a smaller number.
  std::unordered_map<int32_t, int32_t> moved{{kNoFrame, kNoFrame}};
  std::vector<int32_t> path;
  std::vector<Item> places;
  for (const Item& item : items) {
    path.clear();
    for (int32_t f = item.frame; !moved.contains(f); f = old[size_t(f)].below) path.push_back(f);
    for (; !path.empty(); path.pop_back()) {
      const Frame& f = old[size_t(path.back())];
      moved[path.back()] = frame(f.state, moved.at(f.below));
    }
    places.push_back({item.state, moved.at(item.frame)});
  }
  start_ = intern({{automaton_->start(), kNoFrame}});
  // States read by bytes alone: what they reach without reading is among the items already.
  Entry entry;
  entry.items = std::move(places);
  std::sort(entry.items.begin(), entry.items.end());
  entry.complete = complete;
  entry.distance = complete ? 0 : Automaton::kNever;
  for (const Item& item : entry.items) entry.distance = std::min(entry.distance, distance_of(item));
  std::fill(std::begin(entry.next), std::end(entry.next), kUnknown);
  all_.push_back(std::move(entry));
  return int32_t(all_.size()) - 1;
}

}  // namespace rlx::llm
