#include "rlx/train/batches.h"

#include <algorithm>

#include "rlx/base/error.h"
#include "rlx/ir/leaves.h"

namespace rlx::train {
namespace {

// The data in the type of the input; empty with the reason where that changes numbers.
std::optional<Literal> converted(const Literal& value, DType to, std::string& why) {
  if (value.dtype() == to) return value;
  const bool floats = is_float(value.dtype()) && is_float(to);
  const bool integers = is_integer(value.dtype()) && is_integer(to);
  if (!floats && !integers) {
    why = cat("is ", value.dtype(), "; ", to, " is needed");
    return std::nullopt;
  }
  Literal out = value.cast(to);
  for (int64_t i = 0; integers && i < value.elements(); ++i) {
    if (out.integer_at(i) == value.integer_at(i)) continue;
    why = cat("holds ", value.integer_at(i), ", which is no ", to);
    return std::nullopt;
  }
  return out;
}

bool fits(const Shape& data, const Shape& one) {
  if (data.rank() != one.rank() + 1) return false;
  for (int i = 0; i < one.rank(); ++i) {
    if (decide_equal(data.dim(i + 1), one.dim(i)) == false) return false;
  }
  return true;
}

}  // namespace

Batches::Batches(const ir::Graph& loss, const NamedLiterals& data, int64_t accumulate,
                 const std::vector<std::string>& states) {
  std::vector<std::string> problems, known;
  std::optional<int64_t> count;
  for (const ir::NodeId id : loss.inputs()) {
    const std::string& name = ir::leaf_name(loss.node(id));
    const Shape& shape = loss.node(id).shapes[0];
    if (std::find(states.begin(), states.end(), name) != states.end()) continue;
    known.push_back(name);
    const auto it = data.find(name);
    if (it == data.end()) {
      problems.push_back(cat("input '", name, "' (", shape, ") has no data"));
      continue;
    }
    std::string why;
    const auto value = converted(it->second, shape.dtype(), why);
    if (!value) {
      problems.push_back(cat("data '", name, "' ", why));
    } else if (!fits(value->shape(), shape)) {
      problems.push_back(cat("data '", name, "' is ", value->shape(), "; input ", shape,
                             " needs an axis of batches in front"));
    } else if (count && *count != value->shape().dim(0).value()) {
      problems.push_back(
          cat("data '", name, "' has ", value->shape().dim(0).value(), " batches, others ", *count));
    } else {
      count = value->shape().dim(0).value();
      tensors_.push_back({name, *value, {}});
    }
  }
  for (const auto& [name, value] : data) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      problems.push_back(cat("data '", name, "' is no input of the graph"));
  }
  if (!problems.empty()) throw invalid("train: ", join(problems, "; "), "; the graph takes ", join(known));
  count_ = count.value_or(accumulate), per_step_ = accumulate;
  if (count_ < accumulate) throw invalid("train: ", count_, " batches for steps of ", accumulate);
  for (Tensor& t : tensors_) {
    const Shape& all = t.all.shape();
    std::vector<int64_t> dims;
    if (accumulate > 1) dims.push_back(accumulate);
    for (int i = 1; i < all.rank(); ++i) dims.push_back(all.dim(i).value());
    t.first = view_bytes(t.all.dtype(), t.all.bytes().data(), dims);
    inputs_.push_back({t.name, t.first});
  }
}

std::span<const Input> Batches::at(int64_t step) {
  const int64_t begin = int64_t(uint64_t(step) * uint64_t(per_step_) % uint64_t(count_));
  const int64_t in_front = std::min(per_step_, count_ - begin);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    Tensor& t = tensors_[i];
    inputs_[i].value = t.first;
    const size_t one = t.first.bytes() / size_t(per_step_);
    std::byte* const from = t.first.data + size_t(begin) * one;
    inputs_[i].value.data = from;
    if (in_front == per_step_) continue;
    t.joined.resize(t.first.bytes());  // the last batches and the first ones lie apart
    std::copy_n(from, size_t(in_front) * one, t.joined.begin());
    std::copy_n(t.first.data, size_t(per_step_ - in_front) * one,
                t.joined.begin() + std::ptrdiff_t(size_t(in_front) * one));
    inputs_[i].value.data = t.joined.data();
  }
  return inputs_;
}

}  // namespace rlx::train
