// What every kernel test needs: each level, several thread counts, data at odd addresses, plain comparisons.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "rlx/backend/cpu/isa.h"
#include "rlx/base/philox.h"
#include "rlx/base/pool.h"

namespace rlx::cpu::test {

/// body(team) at every level of this machine with 1, 2 and 3 threads; failures name level and threads.
template <class Body>
void at_every_level(Body body) {
  static Pool pools[3] = {Pool(1), Pool(2), Pool(3)};
  const Isa before = current_isa();
  for (Isa isa : available_isas()) {
    use_isa(isa);
    for (Pool& pool : pools) {
      SCOPED_TRACE(std::string(isa_name(isa)) + ", threads " + std::to_string(pool.threads()));
      body(Team(pool));
    }
  }
  use_isa(before);
}

/// An array that begins `offset` elements behind a 64-byte border and ends with the allocation, so that a
/// read or write outside is seen by the address sanitizer.
template <class T>
class Array {
 public:
  explicit Array(int64_t n, int offset = 0) : n_(n) {
    const size_t bytes = (size_t(n) + size_t(offset)) * sizeof(T);
    base_ = static_cast<T*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64));
    data_ = base_ + offset;
    for (int64_t i = 0; i < n; ++i) data_[i] = T();
  }
  Array& operator=(Array&& other) noexcept {
    std::swap(base_, other.base_), std::swap(data_, other.data_), std::swap(n_, other.n_);
    return *this;
  }
  Array(Array&& other) noexcept : base_(other.base_), data_(other.data_), n_(other.n_) {
    other.base_ = nullptr;
  }
  Array(const Array& other) : Array(other.n_, int(other.data_ - other.base_)) {
    for (int64_t i = 0; i < n_; ++i) data_[i] = other.data_[i];
  }
  ~Array() { std::free(base_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }
  int64_t size() const { return n_; }

 private:
  T* base_;
  T* data_;
  int64_t n_;
};

/// Uniform in [low, high), reproducible by seed.
inline Array<float> random_array(int64_t n, uint64_t seed, float low = -1, float high = 1, int offset = 0) {
  Array<float> a(n, offset);
  for (int64_t i = 0; i < n; ++i) {
    a[i] = low + (high - low) * uniform_from_bits(philox_block(seed, 0, uint64_t(i / 4))[size_t(i % 4)]);
  }
  return a;
}

/// |got - want| <= tolerance for every element, NaN equal to NaN; reports the first that fails.
template <class Got, class Want>
void expect_near(const Got* got, const Want* want, int64_t n, double tolerance,
                 const std::string& what = "") {
  for (int64_t i = 0; i < n; ++i) {
    const double g = double(got[i]), w = double(want[i]);
    if (std::isnan(g) && std::isnan(w)) continue;
    if (g == w) continue;
    if (!(std::abs(g - w) <= tolerance)) {
      ADD_FAILURE() << what << " element " << i << " of " << n << ": got " << g << ", want " << w
                    << ", tolerance " << tolerance;
      return;
    }
  }
}

}  // namespace rlx::cpu::test
