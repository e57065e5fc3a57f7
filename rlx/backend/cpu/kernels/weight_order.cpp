#include "rlx/backend/cpu/kernels/weight_order.h"

#include <algorithm>
#include <memory>

#include "rlx/base/read_ahead.h"

namespace rlx::cpu {
namespace {

// kMostAhead: more than can be read between two products, and not more than a second cache holds.
constexpr size_t kTries = 4;
constexpr size_t kMostAhead = size_t(512) << 10;

}  // namespace

WeightOrder& WeightOrder::here() {
  static thread_local const auto order = std::make_unique<WeightOrder>();
  return *order;
}

// Addresses are compared, never followed: weights may have been freed since.
WeightOrder::Place& WeightOrder::place(const std::byte* data) {
  const auto key = uint64_t(reinterpret_cast<uintptr_t>(data)) >> 6;
  const size_t first = key * 0x9e3779b97f4a7c15u >> 54;
  for (size_t i = first; i < first + kTries; ++i) {
    Place& p = places_[i % kPlaces];
    if (p.data == data || p.data == nullptr) return p;
  }
  return places_[first];
}

WeightOrder::Weights WeightOrder::reads(Weights now) {
  announce_read(nullptr, 0);
  if (last_ != nullptr) {
    Place& before = place(last_);
    if (before.data == last_) before.next = now;
  }
  last_ = now.data;
  Place& here = place(now.data);
  if (here.data != now.data) here = {now.data, {}};
  return here.next;
}

void announce(const WeightOrder::Weights& w) { announce_read(w.data, std::min(w.bytes, kMostAhead)); }

}  // namespace rlx::cpu
