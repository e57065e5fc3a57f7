#include "rlx/backend/cuda/nodes/conv_steps.h"

#include <limits>

#include "rlx/backend/cuda/kernels/conv_parts.h"
#include "rlx/backend/cuda/kernels/conv_places.h"
#include "rlx/backend/cuda/nodes/element_kernel.h"
#include "rlx/ops/conv/conv.h"

namespace rlx::cuda {
namespace {

constexpr size_t kAlignment = ConvPlan::kAlignment;

class PartsStep final : public Step {
 public:
  PartsStep(const Request& r, const ConvNode& node, PlanConv plan)
      : x_(node.x), w_(node.w), members_(node.results.members), bytes_(size_t(r.out[0].shape.size_bytes())) {
    std::vector<ConvPart> parts = conv_parts(r);
    size_t rest = 0;
    Turned turned = Turned::no;
    for (ConvPart& p : parts) {
      if (p.inputs * p.taps() == 0) {
        fills_ = true;
        continue;
      }
      p.turned = turned;
      plans_.push_back(plan(device_of(r), p, node.results));
      const ConvPlan& added = plans_.back();
      if (added.x != Turned::no) turned = added.x;
      turned_ = std::max(turned_, ConvPlan::aligned(added.turned));
      rest = std::max(rest, ConvPlan::aligned(added.packed) + added.sums);
    }
    workspace = turned_ + rest + kAlignment;
    note = plans_.empty() ? "zeros" : plans_.front().note;
    if (plans_.size() > 1) note += cat("; ", plans_.size(), " classes of results");
  }

  void run(const Launch& l) const override {
    Stream& s = stream_of(l);
    if (fills_) check(s.gpu.use().MemsetD8Async(device_pointer(l.out[0]), 0, bytes_, s.handle), "a fill");
    const size_t over = reinterpret_cast<uintptr_t>(l.workspace) % kAlignment;
    std::byte* const turned = l.workspace + (over == 0 ? 0 : kAlignment - over);
    std::vector<std::byte*> results;  // Params
    for (const int m : members_) results.push_back(m >= 0 ? l.in[m] : l.out[-1 - m]);
    for (const ConvPlan& p : plans_) p.run(s.handle, l.in[x_], l.in[w_], turned, turned + turned_, results);
  }

 private:
  int x_, w_;
  std::vector<int> members_;
  std::vector<ConvPlan> plans_;
  size_t bytes_, turned_ = 0;
  bool fills_ = false;
};

// Offsets and sizes in the kernels have 32 bits.
bool is_small(const Arg& x) {
  int64_t span = 1;
  for (int i = 0; i < x.shape.rank(); ++i)
    span += (x.shape.dim(i).value() - 1) * std::abs(x.layout.strides[size_t(i)]);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  return span < kMost && x.shape.elements() < kMost;
}

}  // namespace

void ConvPlan::run(Stream_* stream, std::byte* x, std::byte* w, std::byte* workspace, std::byte* rest,
                   std::vector<std::byte*> results) const {
  std::byte* places[] = {x, w, nullptr, rest, rest + aligned(packed), workspace};
  for (const ConvLaunch& k : launches) {
    std::vector<void*> parameters;
    for (const ConvArg a : k.args)
      parameters.push_back(a == ConvArg::y ? static_cast<void*>(results.data()) : places + size_t(a));
    k.function->launch(stream, k.grid, k.block, k.shared, parameters.data());
  }
}

ConvResults plain_results(DType dtype) {
  const std::string type(memory_type(dtype));
  return {cat("struct Params { ", type, "* y; };\nconstexpr bool kPlain = true;\ninline ", type,
              "* plain_results(const Params& p) { return p.y; }\n"
              "template <class V> void finish(const Params& p, i64 at, V sum) { put(p.y[at], sum); }\n"),
          {-1}};
}

ConvNode plain_conv(const Request& r) { return {0, 1, plain_results(r.out[0].dtype())}; }

std::unique_ptr<Step> conv_step(const Request& r, const ConvNode& node, PlanConv plan) {
  if (r.out[0].shape.elements() == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  return std::make_unique<PartsStep>(r, node, plan);
}

PlanConv conv_plan_for(const Request& r) { return accepts_few(r) ? plan_conv_few : plan_conv_tiles; }

std::string conv_head(const ConvPart& p, const ConvResults& results, const std::string& constants) {
  const char* const acc = p.dtype == DType::f64 ? "f64" : "f32";
  return cat("typedef ", memory_type(p.dtype), " T;\ntypedef ", acc, " Acc;\n#define kRead as_", acc, "\n",
             constants_of(p), constants, results.text, kConvPlaces);
}

ConvLaunch conv_sum(const Device& device, int64_t sums, const std::string& head) {
  return {device.functions().get({"conv_sum", head + kConvSum}),
          blocks_for(sums),
          {256},
          0,
          {ConvArg::sums, ConvArg::y}};
}

Support accepts_conv_parts(const Request& r) {
  const DType t = r.in[0].dtype();
  if (!is_float(t) || is_storage_only(t) || r.in[1].dtype() != t)
    return Support::no("a convolution of ", t, " and ", r.in[1].dtype());
  constexpr int64_t kMostBlocks = 65535;  // along y
  const int64_t channels = r.out[0].shape.dim(1).value();
  if (channels > kMostBlocks) return Support::no(channels, " channels; at most ", kMostBlocks);
  for (const Arg* x : {&r.in[0], &r.in[1], &r.out[0]}) {
    if (!is_small(*x)) return Support::no(x->shape, " has more elements than 30 bits count");
  }
  constexpr size_t kMostParts = 64;  // each is a kernel or two
  if (const size_t parts = conv_parts(r).size(); parts > kMostParts)
    return Support::no(parts, " classes of results between gaps of the input; at most ", kMostParts);
  return Support::yes();
}

}  // namespace rlx::cuda
