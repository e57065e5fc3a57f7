// How the linear algebra kernels go over a batch: matrices split over threads, work for each thread.
#pragma once

#include <algorithm>
#include <optional>

#include "rlx/backend/cpu/kernels/linalg.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

/// Behind the finds of the threads, one for each: elements of T as work for each thread.
template <class T>
size_t workspace_bytes(int threads, int64_t elements) {
  return round_up(size_t(threads) * sizeof(Singular)) +
         size_t(threads) * round_up(size_t(elements) * sizeof(T));
}

/// one(i, work) for every matrix i, about `work_each` multiply-adds; the first for which it does not return
/// -1.
template <class T, class One>
std::optional<Singular> each_matrix(Team team, int64_t batch, double work_each, int64_t elements,
                                    std::byte* workspace, One one) {
  constexpr double serial_work = 30000;  // below: a second thread costs more than it brings
  const int64_t grain = std::max<int64_t>(1, int64_t(serial_work / std::max(1.0, work_each)));
  const int parts = int(std::min<int64_t>(team.threads(), ceil_div(batch, grain)));
  auto* found = reinterpret_cast<Singular*>(workspace);
  std::byte* areas = workspace + round_up(size_t(team.threads()) * sizeof(Singular));
  team.run(parts, [&](int part) {
    const Range r = split_range(batch, 1, parts, part);
    T* work = reinterpret_cast<T*>(areas + size_t(part) * round_up(size_t(elements) * sizeof(T)));
    found[part] = {-1, -1};
    for (int64_t i = r.begin; i < r.end; ++i) {
      const int64_t index = one(i, work);
      if (index >= 0 && found[part].matrix < 0) found[part] = {i, index};
    }
  });
  for (int part = 0; part < parts; ++part) {
    if (found[part].matrix >= 0) return found[part];
  }
  return std::nullopt;
}

/// body(float()) or body(double()).
template <class Body>
auto with_real(DType dtype, const char* where, Body body) {
  if (dtype == DType::f32) return body(float());
  if (dtype == DType::f64) return body(double());
  throw invalid(where, ": dtype is ", dtype, "; it must be f32 or f64");
}

}  // namespace rlx::cpu
