// Nodes without a kernel: operands come to the host, the reference rule runs there, results go back.
#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/backend/reference.h"
#include "rlx/base/aligned.h"

namespace rlx::cuda {
namespace {

class OnHostStep final : public Step {
 public:
  explicit OnHostStep(const Request& r) : inside_(backend::reference_kernel().prepare(r)) {
    for (const Arg& a : r.in) sizes_.push_back(size_t(a.shape.size_bytes()));
    for (const Arg& a : r.out) sizes_.push_back(size_t(a.shape.size_bytes()));
    operands_ = r.in.size();
    needs_host = by_rule = true;
    note = "on the host, by the reference rule";
  }

  void run(const Launch& l) const override {
    const Stream& s = stream_of(l);
    const Driver& d = s.gpu.use();
    std::vector<AlignedBytes> held;
    std::vector<std::byte*> addresses;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      held.push_back(allocate_aligned(std::max<size_t>(sizes_[i], 1)));
      addresses.push_back(held.back().get());
      if (i < operands_ && sizes_[i] > 0)
        check(d.MemcpyDtoHAsync(addresses[i], device_pointer(l.in[i]), sizes_[i], s.handle),
              "fetching an operand");
    }
    check(d.StreamSynchronize(s.handle), "queued work");
    Launch here{.team = l.team, .in = addresses.data(), .out = addresses.data() + operands_};
    inside_->run(here);
    for (size_t i = operands_; i < sizes_.size(); ++i) {
      if (sizes_[i] > 0)
        check(d.MemcpyHtoDAsync(device_pointer(l.out[i - operands_]), addresses[i], sizes_[i], s.handle),
              "sending a result");
    }
    check(d.StreamSynchronize(s.handle), "queued work");
  }

 private:
  std::unique_ptr<Step> inside_;
  std::vector<size_t> sizes_;  // bytes of operands, then of results
  size_t operands_ = 0;
};

}  // namespace

Kernel on_host_kernel() {
  return {"on_host", backend::reference_kernel().accepts,
          [](const Request& r) -> std::unique_ptr<Step> { return std::make_unique<OnHostStep>(r); }};
}

}  // namespace rlx::cuda
