// Which weights follow which: the products of a model read theirs in the same order in every run, so that what came next last time is
// announced (rlx/base/read_ahead.h) while one product ends, and threads that wait for the steps between two products read it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rlx::cpu {

/// Of one calling thread.
class WeightOrder {
 public:
  /// Those of the thread that calls.
  static WeightOrder& here();

  struct Weights {
    const std::byte* data = nullptr;
    size_t bytes = 0;
  };
  /// These are read now: they follow those of the call before. What was announced is done with. What followed them last time;
  /// nothing when they are new.
  Weights reads(Weights);

 private:
  static constexpr size_t kPlaces =
      1024;  // more than a model has matrices; where there are more, some are forgotten
  struct Place {
    const std::byte* data = nullptr;
    Weights next;
  };
  Place& place(const std::byte* data);

  Place places_[kPlaces];
  const std::byte* last_ = nullptr;
};

/// Announces the first of these bytes.
void announce(const WeightOrder::Weights&);

}  // namespace rlx::cpu
