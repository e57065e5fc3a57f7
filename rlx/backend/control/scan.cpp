// Loops of known length. Carries alternate between the results and a second place, so that the last step writes where the
// results belong; slices and stacked outputs are addresses into their sequences.
#include "rlx/ops/control/scan.h"

#include <cstring>

#include "rlx/backend/control/body.h"
#include "rlx/backend/control/loops.h"

namespace rlx::backend {
namespace {

class ScanStep final : public Step {
 public:
  explicit ScanStep(const Request& r) : attrs_(r.node.as<ops::Scan>()), body_(make_body(r)) {
    length_ = attrs_.length.value();
    carries_ = size_t(attrs_.carries);
    operands_ = r.in.size();
    for (size_t i = 0; i < r.out.size(); ++i) {
      const auto bytes = size_t(body_.output(i).size_bytes());
      bytes_.push_back(bytes);
      if (i < carries_) {
        spare_.push_back(spare_bytes_);
        spare_bytes_ += aligned_size(bytes);
      }
    }
    const size_t first_slice = carries_ + size_t(attrs_.consts);
    for (size_t i = first_slice; i < operands_; ++i)
      slices_.push_back(length_ > 0 ? size_t(r.in[i].shape.size_bytes() / length_) : 0);
    if (attrs_.gate == ops::ScanGate::sequence) flag_bytes_ = dtype_size(r.in[first_slice].dtype());
    workspace = spare_bytes_ + body_.workspace();
    note = cat(length_, " steps");
  }

  std::vector<Plan> bodies() const override { return {body_.plan()}; }

  void run(const Launch& l) const override {
    std::byte* const inside = l.workspace + spare_bytes_;
    std::byte **leaves = body_.leaf_addresses(inside), **outputs = body_.output_addresses(inside);
    const size_t first_slice = carries_ + size_t(attrs_.consts);
    for (size_t i = 0; i < first_slice; ++i) leaves[i] = l.in[i];
    if (attrs_.gate != ops::ScanGate::none) {
      for (size_t i = carries_; i < bytes_.size(); ++i) std::memset(l.out[i], 0, bytes_[i] * size_t(length_));
    }
    bool to_results = length_ % 2 == 1;
    for (int64_t step = 0; step < length_; ++step) {
      const int64_t t = attrs_.reverse ? length_ - 1 - step : step;
      if (attrs_.gate == ops::ScanGate::carry && leaves[0][0] == std::byte(0)) break;
      if (attrs_.gate == ops::ScanGate::sequence &&
          l.in[first_slice][size_t(t) * flag_bytes_] == std::byte(0))
        continue;
      for (size_t i = first_slice; i < operands_; ++i)
        leaves[i] = l.in[i] + size_t(t) * slices_[i - first_slice];
      for (size_t i = 0; i < carries_; ++i) outputs[i] = to_results ? l.out[i] : l.workspace + spare_[i];
      for (size_t i = carries_; i < bytes_.size(); ++i) outputs[i] = l.out[i] + size_t(t) * bytes_[i];
      body_.run(l, inside);
      for (size_t i = 0; i < carries_; ++i) leaves[i] = outputs[i];
      to_results = !to_results;
    }
    for (size_t i = 0; i < carries_; ++i) {  // no step ran, or some were skipped
      if (leaves[i] != l.out[i] && bytes_[i] > 0) std::memcpy(l.out[i], leaves[i], bytes_[i]);
    }
  }

 private:
  Body make_body(const Request& r) {
    std::vector<int> operands(r.in.size(), -1);
    for (int i = 0; i < attrs_.consts; ++i) operands[size_t(attrs_.carries + i)] = attrs_.carries + i;
    return Body(r, *attrs_.body, operands, *this);
  }

  ops::Scan::Attrs attrs_;
  Body body_;
  int64_t length_ = 0;
  size_t carries_ = 0, operands_ = 0, spare_bytes_ = 0, flag_bytes_ = 1;
  std::vector<size_t> bytes_, spare_, slices_;  // of one output of the body; places of carries; of one slice
};

}  // namespace

std::unique_ptr<Step> prepare_scan(const Request& r) { return std::make_unique<ScanStep>(r); }

}  // namespace rlx::backend
