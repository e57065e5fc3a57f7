// Loops with a condition. The number of steps is not known, so carries alternate between two places of the workspace and are
// copied to the results at the end.
#include "rlx/ops/control/while.h"

#include <cstring>

#include "rlx/backend/control/body.h"
#include "rlx/backend/control/loops.h"

namespace rlx::backend {
namespace {

class WhileStep final : public Step {
 public:
  explicit WhileStep(const Request& r)
      : attrs_(r.node.as<ops::While>()),
        condition_(r, *attrs_.cond, operands(r), *this),
        body_(r, *attrs_.body, operands(r), *this) {
    carries_ = size_t(attrs_.carries);
    count_ = r.in.size();
    for (size_t i = 0; i < carries_; ++i) {
      bytes_.push_back(size_t(r.out[i].shape.size_bytes()));
      places_.push_back(place_bytes_);
      place_bytes_ += aligned_size(bytes_.back());
    }
    flags_ = size_t(condition_.output(0).size_bytes());
    // Two places for the carries, the flags, and what the programs need one after the other.
    inside_ = 2 * place_bytes_ + aligned_size(flags_);
    workspace = inside_ + condition_.workspace() + body_.workspace();
  }

  std::vector<Plan> bodies() const override { return {condition_.plan(), body_.plan()}; }

  void run(const Launch& l) const override {
    std::byte* const ask = l.workspace + inside_;
    std::byte* const work = ask + condition_.workspace();
    std::byte* const flags = l.workspace + 2 * place_bytes_;
    std::byte **asked = condition_.leaf_addresses(ask), **leaves = body_.leaf_addresses(work);
    std::byte** const outputs = body_.output_addresses(work);
    for (size_t i = 0; i < count_; ++i) asked[i] = leaves[i] = l.in[i];
    condition_.output_addresses(ask)[0] = flags;
    const Shape& type = condition_.output(0);
    const int64_t elements = int64_t(flags_ / dtype_size(type.dtype()));
    for (int64_t step = 0; !attrs_.max_iterations || step < *attrs_.max_iterations; ++step) {
      condition_.run(l, ask, {.body = 0, .round = step});
      if (!all_nonzero(type.dtype(), flags, elements)) break;
      std::byte* const to = l.workspace + size_t(step % 2) * place_bytes_;
      for (size_t i = 0; i < carries_; ++i) outputs[i] = to + places_[i];
      body_.run(l, work, {.body = 1, .round = step});
      for (size_t i = 0; i < carries_; ++i) asked[i] = leaves[i] = outputs[i];
    }
    for (size_t i = 0; i < carries_; ++i) {
      if (bytes_[i] > 0) std::memcpy(l.out[i], leaves[i], bytes_[i]);
    }
  }

 private:
  static std::vector<int> operands(const Request& r) {
    std::vector<int> out(r.in.size(), -1);
    for (size_t i = size_t(r.node.as<ops::While>().carries); i < out.size(); ++i) out[i] = int(i);
    return out;
  }

  ops::While::Attrs attrs_;
  Body condition_, body_;
  size_t carries_ = 0, count_ = 0, place_bytes_ = 0, flags_ = 0, inside_ = 0;
  std::vector<size_t> bytes_, places_;
};

}  // namespace

std::unique_ptr<Step> prepare_while(const Request& r) { return std::make_unique<WhileStep>(r); }

}  // namespace rlx::backend
