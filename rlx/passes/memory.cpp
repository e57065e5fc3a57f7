#include "rlx/passes/memory.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace rlx::passes {
namespace {

struct Placed {
  int64_t begin, end;
  int first, last;
};

/// Buffers that have a place, by where they begin. Most are in use for a few steps: they are kept for each span of steps too, and a
/// buffer whose steps lie in one span meets only those of that span.
class PlacedBuffers {
 public:
  explicit PlacedBuffers(std::span<const Lifetime> buffers) {
    constexpr int kSpans = 64;
    int last = 0;
    for (const Lifetime& b : buffers) last = std::max(last, b.last);
    width_ = last / kSpans + 1;
    spans_.resize(size_t(last / width_) + 1);
    all_.reserve(buffers.size());
  }

  /// All that may be in use together with `b`, and others.
  std::span<const Placed> beside(const Lifetime& b) const {
    return b.first / width_ == b.last / width_ ? spans_[size_t(b.first / width_)] : all_;
  }
  void add(const Placed& p) {
    insert(all_, p);
    for (int s = p.first / width_; s <= p.last / width_; ++s) insert(spans_[size_t(s)], p);
  }

 private:
  static void insert(std::vector<Placed>& list, const Placed& p) {
    list.insert(std::upper_bound(list.begin(), list.end(), p,
                                 [](const Placed& x, const Placed& y) { return x.begin < y.begin; }),
                p);
  }

  int width_ = 1;  // steps of a span
  std::vector<Placed> all_;
  std::vector<std::vector<Placed>> spans_;
};

// Puts buffers one after the other, in the order given, into the smallest gap (or the lowest, for first fit) between
// those placed before that are in use at the same time.
Placement place_in_order(std::span<const Lifetime> buffers, const std::vector<size_t>& order,
                         int64_t alignment, bool best_fit) {
  Placement out;
  out.offsets.assign(buffers.size(), 0);
  PlacedBuffers placed(buffers);
  for (const size_t i : order) {
    const Lifetime& b = buffers[i];
    const int64_t bytes = (b.bytes + alignment - 1) / alignment * alignment;
    if (bytes == 0) continue;
    int64_t end_so_far = 0, best = -1, best_gap = 0;
    for (const Placed& p : placed.beside(b)) {
      if (p.last < b.first || b.last < p.first) continue;
      const int64_t gap = p.begin - end_so_far;
      if (gap >= bytes && (best < 0 || gap < best_gap)) {
        best = end_so_far;
        best_gap = gap;
        if (!best_fit) break;
      }
      end_so_far = std::max(end_so_far, p.end);
    }
    const int64_t at = best < 0 ? end_so_far : best;
    out.offsets[i] = at;
    out.bytes = std::max(out.bytes, at + bytes);
    placed.add({at, at + bytes, b.first, b.last});
  }
  return out;
}

int64_t largest_live_set(std::span<const Lifetime> buffers, int64_t alignment) {
  std::map<int, int64_t> change;  // at a step
  for (const Lifetime& b : buffers) {
    const int64_t bytes = (b.bytes + alignment - 1) / alignment * alignment;
    change[b.first] += bytes;
    change[b.last + 1] -= bytes;
  }
  int64_t now = 0, most = 0;
  for (const auto& [step, bytes] : change) most = std::max(most, now += bytes);
  return most;
}

}  // namespace

Placement place_buffers(std::span<const Lifetime> buffers, int64_t alignment) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t(0));
  const auto by = [&](auto key) {
    std::vector<size_t> sorted = order;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](size_t a, size_t b) { return key(buffers[a]) < key(buffers[b]); });
    return sorted;
  };
  const int64_t least = largest_live_set(buffers, alignment);
  Placement best;
  const auto attempt = [&](const std::vector<size_t>& sorted, bool best_fit) {
    if (!best.offsets.empty() && best.bytes == least) return;
    Placement p = place_in_order(buffers, sorted, alignment, best_fit);
    if (best.offsets.empty() || p.bytes < best.bytes) best = std::move(p);
  };
  attempt(by([](const Lifetime& b) { return b.first; }), false);
  attempt(by([](const Lifetime& b) { return -b.bytes; }), true);
  attempt(by([](const Lifetime& b) { return std::pair(-(b.last - b.first), -b.bytes); }), true);
  best.offsets.resize(buffers.size(), 0);
  best.live_bytes = least;
  return best;
}

}  // namespace rlx::passes
