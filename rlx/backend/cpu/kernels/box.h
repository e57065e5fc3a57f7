// Walking a box of positions in several strided arrays at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rlx::cpu {

/// Axes are added outermost first. Offsets are found by addition; only the start of a walk divides.
template <int arrays>
class Box {
 public:
  using Strides = std::array<int64_t, size_t(arrays)>;
  static constexpr int kMaxRank = 9;

  void add(int64_t size, const Strides& strides) {
    size_[rank_] = size;
    stride_[rank_++] = strides;
    count_ *= size;
  }
  int64_t count() const { return count_; }

  /// body(offset in each array) for the positions [begin, end) in row-major order.
  template <class Body>
  void walk(int64_t begin, int64_t end, Body body) const {
    int64_t index[kMaxRank], rest = begin;
    Strides offset{};
    for (int d = rank_ - 1; d >= 0; --d) {
      index[d] = rest % size_[d];
      rest /= size_[d];
      for (size_t a = 0; a < arrays; ++a) offset[a] += index[d] * stride_[d][a];
    }
    for (int64_t i = begin; i < end; ++i) {
      body(offset);
      for (int d = rank_ - 1; d >= 0; --d) {
        for (size_t a = 0; a < arrays; ++a) offset[a] += stride_[d][a];
        if (++index[d] < size_[d]) break;
        for (size_t a = 0; a < arrays; ++a) offset[a] -= size_[d] * stride_[d][a];
        index[d] = 0;
      }
    }
  }

 private:
  int rank_ = 0;
  int64_t size_[kMaxRank];
  Strides stride_[kMaxRank];
  int64_t count_ = 1;
};

}  // namespace rlx::cpu
