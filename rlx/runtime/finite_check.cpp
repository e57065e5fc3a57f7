#include "rlx/runtime/finite_check.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "rlx/base/float16.h"

namespace rlx {
namespace {

using backend::Plan;

// The number at an address: the worse of the two parts of a complex one.
double number_at(DType t, const std::byte* p) {
  const auto read = [p](auto value) {
    std::memcpy(&value, p, sizeof value);
    return value;
  };
  switch (t) {
    case DType::f32:
      return read(float{});
    case DType::f64:
      return read(double{});
    case DType::f16:
      return f16_to_f32(read(uint16_t{}));
    case DType::bf16:
      return bf16_to_f32(read(uint16_t{}));
    case DType::c64: {
      float parts[2];
      std::memcpy(parts, p, sizeof parts);
      return std::isfinite(parts[0]) ? parts[1] : parts[0];
    }
    default:
      return 0;
  }
}

bool has_bad_values(DType t) {
  return t == DType::f32 || t == DType::f64 || t == DType::f16 || t == DType::bf16 || t == DType::c64;
}

bool is_wanted(double x, bool infinities) { return !std::isnan(x) && !(infinities && std::isinf(x)); }

// Long rows without a bad value, which is nearly all of them, pass quickly.
template <class T>
int64_t first_bad_in_row(const std::byte* data, int64_t elements, bool infinities) {
  constexpr int64_t kBlock = 1024;
  for (int64_t at = 0; at < elements; at += kBlock) {
    const int64_t end = std::min(at + kBlock, elements);
    bool fine = true;
    for (int64_t e = at; e < end; ++e) {
      T x;
      std::memcpy(&x, data + e * int64_t(sizeof x), sizeof x);
      fine &= infinities ? x - x == 0 : x == x;
    }
    if (fine) continue;
    for (int64_t e = at; e < end; ++e) {
      T x;
      std::memcpy(&x, data + e * int64_t(sizeof x), sizeof x);
      if (!is_wanted(double(x), infinities)) return e;
    }
  }
  return -1;
}

// The row-major number of the first element that is not wanted, or -1.
int64_t first_bad(const Plan::Place& place, const std::byte* data, bool infinities) {
  const DType type = place.shape.dtype();
  if (data == nullptr || !has_bad_values(type)) return -1;
  const auto bytes = int64_t(dtype_size(type));
  const int64_t elements = place.shape.elements();
  if (place.layout.is_row_major(place.shape.dims())) {
    if (type == DType::f32) return first_bad_in_row<float>(data, elements, infinities);
    if (type == DType::f64) return first_bad_in_row<double>(data, elements, infinities);
  }
  for (int64_t e = 0; e < elements; ++e) {
    int64_t rest = e, at = 0;
    for (int i = place.shape.rank(); i-- > 0;) {
      const int64_t size = place.shape.dim(i).value();
      at += rest % size * place.layout.strides[size_t(i)];
      rest /= size;
    }
    if (!is_wanted(number_at(type, data + at * bytes), infinities)) return e;
  }
  return -1;
}

/// The elements between the first and the last in memory, in either direction of its axes: how many stand before the first by its strides.
struct Reach {
  int64_t before = 0, behind = 0;
};
Reach reach_of(const Plan::Place& place) {
  Reach out;
  for (int i = 0; i < place.shape.rank(); ++i) {
    const int64_t last = (place.shape.dim(i).value() - 1) * place.layout.strides[size_t(i)];
    (last < 0 ? out.before : out.behind) += std::abs(last);
  }
  return out;
}

}  // namespace

int64_t FiniteCheck::first_bad(const Plan::Place& place, const std::byte* data) {
  const bool infinities = wanted_ == Wanted::finite;
  if (memory_.on_host() || data == nullptr || !has_bad_values(place.shape.dtype()) ||
      place.shape.elements() == 0)
    return rlx::first_bad(place, data, infinities);
  const auto size = int64_t(dtype_size(place.shape.dtype()));
  const Reach reach = reach_of(place);
  fetched_.resize(size_t((reach.before + 1 + reach.behind) * size));
  memory_.download(fetched_.data(), data - reach.before * size, fetched_.size());
  return rlx::first_bad(place, fetched_.data() + reach.before * size, infinities);
}

// Before the step: its result may take the place of an operand.
void FiniteCheck::before(const Plan::Step& step, const backend::Launch& launch) {
  levels_.resize(depth_);
  bool fine = true;
  for (size_t i = 0; fine && i < step.in.size(); ++i) fine = first_bad(step.in[i], launch.in[i]) < 0;
  levels_.push_back({&step, fine, {}});
}

void FiniteCheck::after(const Plan::Step& step, const backend::Launch& launch) {
  if (!levels_[depth_].operands_are_fine) return;
  for (size_t i = 0; i < step.out.size(); ++i) {
    const int64_t at = first_bad(step.out[i], launch.out[i]);
    if (at < 0) continue;
    throw invalid("check-nan: ", path(), step.op, " (", step.kernel, ") makes ",
                  wanted_ == Wanted::finite ? "NaN or infinity" : "NaN", " at element ", at, " of result ", i,
                  ", ", step.out[i].shape, ", from operands without");
  }
}

bool FiniteCheck::enter(const backend::BodyRun& which) {
  levels_[depth_++].inside = which;
  return true;
}

void FiniteCheck::leave() { --depth_; }

// "scan %12, step 17: %5 "; nothing for a step outside of bodies, whose node the run names.
std::string FiniteCheck::path() const {
  std::string out;
  for (size_t i = 0; i < depth_; ++i) {
    const Level& l = levels_[i];
    out += cat(l.step->op, " ", l.step->name);
    if (l.inside.round >= 0) out += cat(", step ", l.inside.round);
    if (l.inside.rows > 0) out += cat(", rows from ", l.inside.row, " on");
    out += ": ";
  }
  if (depth_ > 0 && !levels_[depth_].step->name.empty()) out += levels_[depth_].step->name + " ";
  return out;
}

}  // namespace rlx
