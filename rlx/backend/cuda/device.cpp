#include "rlx/backend/cuda/device.h"

#include <map>
#include <mutex>

#include "rlx/backend/cuda/driver/blas.h"
#include "rlx/backend/cuda/driver/fastest.h"
#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/backend/cuda/queue.h"
#include "rlx/base/error.h"

namespace rlx::cuda {
namespace {

constexpr int kOldestArchitecture = 80;

// Code for exactly this processor; 9.0 has instructions that only its own code may use.
std::string architecture_of(const Gpu& gpu) {
  return cat("sm_", gpu.major(), gpu.minor(), gpu.major() == 9 ? "a" : "");
}

/// Of a device that runs nothing.
class NoQueue final : public backend::Queue {
 public:
  explicit NoQueue(std::string_view device) : device_(device) {}
  void upload(std::byte*, const std::byte*, size_t) override { refuse(); }
  void download(std::byte*, const std::byte*, size_t) override { refuse(); }
  void run(const backend::Executable&, const backend::Frame&) override { refuse(); }
  void wait() override {}

 private:
  [[noreturn]] void refuse() const {
    throw environment_error("cuda: '", device_, "' is for looking at programs and runs nothing; run on cuda");
  }
  std::string_view device_;
};

// "139.8"
std::string gibibytes(size_t bytes) {
  const size_t tenths = bytes / (size_t(1) << 20) * 10 >> 10;
  return cat(tenths / 10, ".", tenths % 10);
}

}  // namespace

Device::Device(std::string architecture, const Gpu* gpu)
    : name_(gpu ? "cuda" : "cuda:" + architecture), functions_(std::move(architecture), gpu), gpu_(gpu) {
  add_attention(kernels_, functions_.architecture());
  add_cholesky(kernels_);
  add_scan_products(kernels_, functions_.architecture());
  add_control(kernels_);
  add_conv(kernels_);
  add_conv_groups(kernels_);
  add_cross_entropy(kernels_);
  add_encode_blocks(kernels_);
  add_factors(kernels_);
  add_fft(kernels_);
  add_index(kernels_);
  add_many_regions(kernels_);
  add_moves(kernels_);
  add_packed(kernels_);
  add_paged_attention(kernels_);
  add_product_groups(kernels_, functions_.architecture());
  add_product_elements(kernels_, functions_.architecture());
  add_products(kernels_);
  add_random(kernels_);
  add_recurrence(kernels_);
  add_regions(kernels_);
  add_casts(kernels_);  // what regions refuse
  add_complex(kernels_);
  add_resize(kernels_);
  add_rope(kernels_);
  add_rows_groups(kernels_);
  add_turned_groups(kernels_, functions_.architecture());
  add_running(kernels_);
  add_scatter(kernels_);
  add_scaled_products(kernels_);
  add_schemes(kernels_);
  add_solve(kernels_);
  add_sort(kernels_);
  add_splat(kernels_);
  add_sums_groups(kernels_);
  add_windows(kernels_);
  kernels_.add_last_resort(on_host_kernel());
}

std::string Device::description() const {
  if (!gpu_) return cat("kernels for ", functions_.architecture(), ", no GPU");
  size_t free = 0, total = 0;
  gpu_->use().MemGetInfo(&free, &total);
  const int driver = gpu_->driver_version();
  return cat(gpu_->name(), ", compute capability ", gpu_->major(), ".", gpu_->minor(), ", ",
             gpu_->multiprocessors(), " multiprocessors, ", gibibytes(free), " of ", gibibytes(total),
             " GiB free; driver ", driver / 1000, ".", driver % 1000 / 10, ", NVRTC ", compiler_version(),
             ", ", blas_version());
}

std::unique_ptr<backend::Step> Device::prepare(const backend::Kernel& kernel,
                                               const backend::Request& r) const {
  AskedTexts asked;
  auto step = kernel.prepare(r);
  step->sources = asked.take();
  return step;
}

std::unique_ptr<backend::Step> Device::prepare_copy(const backend::Arg& from, const backend::Arg& to,
                                                    int) const {
  AskedTexts asked;
  auto step = prepare_gpu_copy(*this, from, to);
  step->sources = asked.take();
  return step;
}

std::optional<ir::Graph> Device::grouped(const ir::Graph& g) const { return with_groups(g, *this); }

// The compiler reads one text at a time and works on many: all that a program needs, and all that is measured for it, go to it together.
std::shared_ptr<const backend::Executable> Device::with_choices(const Make& make) const {
  Postponed measurements;
  if (measurements.is_inside()) return make();  // the body of a loop: whoever builds that one measures
  auto program = make();
  if (measurements.count() == 0) return program;
  program.reset();  // its constants lie on the GPU
  try {
    functions_.compile_waiting();
  } catch (const Error&) {
    // Told when it is the one that is needed.
  }
  measurements.end();
  return make();
}

const backend::Memory& Device::memory() const { return gpu_ ? gpu_->memory() : backend::host_memory(); }

std::unique_ptr<backend::Queue> Device::make_queue() const {
  if (!gpu_) return std::make_unique<NoQueue>(name());
  return std::make_unique<GpuQueue>(*gpu_, functions_);
}

const Device& device() {
  static const Device* const made = [] {
    const Gpu& gpu = Gpu::first();
    if (const std::string why = compiler_problem(); !why.empty())
      throw environment_error("cuda: no CUDA device: ", gpu.name(), " is there, but ", why);
    return new Device(architecture_of(gpu), &gpu);
  }();
  return *made;
}

const Device& device_for(std::string_view architecture) {
  static std::mutex mutex;
  // Never destroyed: programs may live until the process ends.
  static auto& made = *new std::map<std::string, const Device*, std::less<>>;
  const int number = architecture_number(architecture);
  if (number < kOldestArchitecture ||
      (architecture != cat("sm_", number) && architecture != cat("sm_", number, "a")))
    throw invalid("device: 'cuda:", architecture, "': sm_90a for Hopper, or sm_80 or newer expected");
  const std::lock_guard lock(mutex);
  auto at = made.find(architecture);
  if (at == made.end()) at = made.emplace(architecture, new Device(std::string(architecture), nullptr)).first;
  return *at->second;
}

std::string device_problem() {
  try {
    device();
    return "";
  } catch (const Error& e) {
    return e.message();
  }
}

}  // namespace rlx::cuda
