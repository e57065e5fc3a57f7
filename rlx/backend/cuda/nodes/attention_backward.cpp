// All gradients of attention of f16 and bf16 heads. What is not taken here is taken apart into products.
#include <algorithm>

#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/fault.h"
#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/kernels/attention.h"
#include "rlx/backend/cuda/kernels/attention_backward.h"
#include "rlx/backend/cuda/kernels/attention_backward_pipeline.h"
#include "rlx/backend/cuda/kernels/attention_gradients.h"
#include "rlx/backend/cuda/kernels/matrix_groups.h"
#include "rlx/backend/cuda/nodes/head_maps.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/shape/concat.h"

namespace rlx::cuda {
namespace {

/// As Gradients of the kernels.
struct GradientParameters {
  const std::byte *dy, *lse, *delta;
  std::byte *dq, *dk, *dv;
  HeadStrides ys, dqs, dks, dvs;
};

constexpr int kExtra = 6;       // operands before the mask
constexpr int kManyRows = 256;  // of queries and keys, that are worth blocks of more rows
constexpr int kManyItems =
    3;  // for each processor: then blocks of keys seldom wait for those of the same head

Support accepts(const Request& r) {
  const auto& a = r.node.as<ops::AttentionBackward>();
  const DType t = r.in[0].dtype();
  if (t != DType::f16 && t != DType::bf16) return Support::no("heads of ", t);
  if (a.has_bias) return Support::no("no gradient of a bias");
  if (const Support s = accepts_heads(r, a, kExtra); !s) return s;
  for (const size_t i : {4, 5}) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  for (const Arg& y : r.out) {
    if (y.layout.strides.back() != 1) return Support::no("the last axis of a result is strided");
  }
  const int64_t lanes = heads_of(r.in[0], a.layout, a.num_heads).lanes,
                values = heads_of(r.in[2], a.layout, kv_heads_of(a)).lanes;
  if (lanes % 16 != 0 || values % 16 != 0 || lanes > 128 || values > 128)
    return Support::no("heads of ", lanes, " and ", values, " lanes");
  return Support::yes();
}

class BackwardStep final : public Step {
 public:
  explicit BackwardStep(const Request& r)
      : device_(device_of(r)), shape_(r, r.node.as<ops::AttentionBackward>(), kExtra) {
    const auto& a = r.node.as<ops::AttentionBackward>();
    const int64_t kv = kv_heads_of(a);
    g_.ys = heads_of(r.in[3], a.layout, a.num_heads).strides;
    g_.dqs = heads_of(r.out[0], a.layout, a.num_heads).strides;
    g_.dks = heads_of(r.out[1], a.layout, kv).strides;
    g_.dvs = heads_of(r.out[2], a.layout, kv).strides;
    head_ = shape_.text(r, a, 16);
    const AttentionParameters& p = shape_.p;
    even_ = true;
    for (const HeadStrides& s : {p.qs, p.ks, p.vs, g_.ys, g_.dqs, g_.dks, g_.dvs})
      even_ = even_ && s.is_even();
    const bool narrow = p.head_dim <= 64 && p.value_dim <= 64;
    row_tiles_ = narrow && std::min(p.q_len, p.k_len) >= kManyRows ? 2 : 1;
    pipeline_ = even_ && prepare_pipeline(r, a);
    if (even_) {
      aligned_ = pipeline_ ? load_pipeline() : load(true);
      const int64_t items = p.kv_heads * shape_.batch * ((p.k_len + 127) / 128);
      if (pipeline_ && items >= kManyItems * device_.multiprocessors()) prepare_together();
    } else {
      anywhere();
    }
    note = cat(pipeline_ ? "tiles copied ahead, " : "", together_ ? "one kernel, " : "", p.q_heads,
               " heads on ", kv, ", ", p.q_len, " queries, ", p.k_len, " keys");
  }

  void run(const Launch& l) const override {
    AttentionParameters p = shape_.p;
    p.q = l.in[0], p.k = l.in[1], p.v = l.in[2];
    p.mask = shape_.mask >= 0 ? l.in[shape_.mask] : nullptr;
    GradientParameters g = g_;
    g.dy = l.in[3], g.lse = l.in[4], g.delta = l.in[5];
    g.dq = l.out[0], g.dk = l.out[1], g.dv = l.out[2];
    const bool aligned = even_ && are_aligned({p.q, p.k, p.v, g.dy, g.dq, g.dk, g.dv});
    if (together_ && aligned) return run_together(l, p, g);
    if (pipeline_ && aligned) return run_pipeline(l, p, g);
    const Pair& use = aligned ? aligned_ : anywhere();
    const int64_t lanes = p.head_dim + 8, values = p.value_dim + 8, place = 64 * row_tiles_;
    const int64_t tile = row_tiles_ == 1 && p.head_dim <= 64 && p.value_dim <= 64 ? 64 : 32;
    const auto shared = size_t(2 * (place + 2 * tile) * (lanes + values) + 4 * tile * int64_t(sizeof(float)));
    const auto blocks = [&](int64_t rows) { return (rows + place - 1) / place; };
    Stream_* const stream = stream_of(l).handle;
    (*use.keys)(stream, {p.kv_heads * shape_.batch, blocks(p.k_len)}, {128}, shared, p, g);
    (*use.queries)(stream, {p.q_heads * shape_.batch, blocks(p.q_len)}, {128}, shared, p, g);
  }

 private:
  struct Pair {
    FunctionRef keys, queries;
  };

  // Scores that are no more than scaled products, of enough rows, from tensors that the copy engine can read.
  bool prepare_pipeline(const Request& r, const ops::AttentionAttrs& a) {
    const AttentionParameters& p = shape_.p;
    constexpr int64_t kMost = 1 << 20;  // of what the kernels divide without error
    const int64_t items = a.num_heads * shape_.batch * ((std::max(p.q_len, p.k_len) + 63) / 64);
    if (std::max(items, a.num_heads * kv_heads_of(a)) > kMost) return false;
    if (device_.functions().architecture() != kHopper || p.head_dim != 64 || p.value_dim != 64 ||
        std::min(p.q_len, p.k_len) < kManyRows || shape_.mask >= 0 || p.softcap > 0 ||
        a.mask_kind == ops::MaskKind::sliding_window)
      return false;
    const int64_t heads[] = {a.num_heads, kv_heads_of(a), kv_heads_of(a), a.num_heads};
    for (size_t i = 0; i < 4; ++i) {
      maps_[i] = {heads_of(r.in[i], a.layout, heads[i]), heads[i], r.in[i].dtype() == DType::bf16};
      if (!maps_[i].is_possible()) return false;
    }
    return true;
  }

  // Sizes as in kernels/attention_backward_pipeline.h.
  void run_pipeline(const Launch& l, const AttentionParameters& p, const GradientParameters& g) const {
    constexpr int64_t kRows = 128, kShared = 6 * 2 * 64 * 128 + 1024;
    constexpr int kBy = 64;
    const auto grid = [&](int64_t heads, int64_t rows) {
      return Grid{std::min<int64_t>(heads * ((rows + kRows - 1) / kRows), device_.gpu()->multiprocessors())};
    };
    const int64_t kv_heads = p.kv_heads * shape_.batch, q_heads = p.q_heads * shape_.batch;
    const Driver& d = device_.gpu()->use();
    Stream_* const stream = stream_of(l).handle;
    (*aligned_.keys)(stream, grid(kv_heads, p.k_len), {256}, size_t(kShared), p, g,
                     maps_[0].encode(d, p.q, kBy), maps_[3].encode(d, g.dy, kBy), int(kv_heads));
    (*aligned_.queries)(stream, grid(q_heads, p.q_len), {256}, size_t(kShared), p, g,
                        maps_[1].encode(d, p.k, kBy), maps_[2].encode(d, p.v, kBy), int(q_heads));
  }

  // Sizes as in kernels/attention_gradients.h. The workspace holds sums of dq, then words that are zeros at the beginning.
  int64_t query_tiles() const { return (shape_.p.q_len + 63) / 64 * shape_.p.q_heads * shape_.batch; }
  size_t sum_bytes() const { return size_t(query_tiles()) * 64 * 64 * sizeof(float); }
  size_t word_bytes() const { return size_t(query_tiles() + 2) * sizeof(int); }

  void prepare_together() {
    together_ = device_.functions().get(
        {"attention_gradients", cat(text(true), kMatrixGroups, kBackwardPipeline, kGradientItems)});
    fault_ = new_fault("attention_backward: blocks of one kernel waited for each other in vain");
    workspace = sum_bytes() + word_bytes();
  }

  void run_together(const Launch& l, const AttentionParameters& p, const GradientParameters& g) const {
    constexpr int64_t kKeys = 128, kRow = 128, kCacheBytes = 32 << 20;
    constexpr int kBy = 64;
    // Keys and values of two items, scores twice, four tiles of queries and gradients, three of sums.
    constexpr int64_t kShared = (4 + 2) * kKeys * kRow + 4 * 2 * kBy * kRow + 3 * kBy * 64 * 4 + 1024;
    const int64_t heads = p.kv_heads * shape_.batch, items = heads * ((p.k_len + kKeys - 1) / kKeys);
    const int64_t head_bytes = 2 * p.q_len * kRow * (p.q_heads / p.kv_heads);
    const int64_t section = std::clamp<int64_t>(kCacheBytes / head_bytes, 1, heads);
    const Stream& s = stream_of(l);
    const Driver& d = s.gpu.use();
    std::byte* const words = l.workspace + sum_bytes();
    check(d.MemsetD8Async(device_pointer(words), 0, word_bytes(), s.handle), "a fill");
    (*together_)(s.handle, {std::min<int64_t>(items, s.gpu.multiprocessors())}, {384}, size_t(kShared), p, g,
                 maps_[0].encode(d, p.q, kBy), maps_[3].encode(d, g.dy, kBy), maps_[1].encode(d, p.k, kKeys),
                 maps_[2].encode(d, p.v, kKeys), int(heads), int(section), l.workspace, words, s.fault,
                 fault_);
  }

  std::string text(bool even) const {
    return cat("constexpr bool kEven = ", even ? "true" : "false",
               ";\nconstexpr int kRowTiles = ", row_tiles_, ";\n", head_, kAttentionShared, kAttentionWeights,
               kAttentionTiles, kAttentionBackward);
  }

  Pair load_pipeline() const {
    const std::string before = text(true) + kMatrixGroups + kBackwardPipeline;
    return {device_.functions().get({"attention_keys_pipeline", before + kKeysPipeline}),
            device_.functions().get({"attention_queries_pipeline", before + kQueriesPipeline})};
  }

  Pair load(bool even) const {
    const std::string text = this->text(even);
    return {device_.functions().get({"attention_keys_backward", text + kKeysBackward}),
            device_.functions().get({"attention_queries_backward", text + kQueriesBackward})};
  }

  const Pair& anywhere() const {
    return anywhere_.get([&] { return load(false); });
  }

  const Device& device_;
  AttentionShape shape_;
  GradientParameters g_{};
  std::string head_;
  bool even_ = false, pipeline_ = false;
  HeadMap maps_[4];  // q, k, v, dy
  int row_tiles_ = 1;
  Pair aligned_;
  FunctionRef together_;
  uint64_t fault_ = 0;
  OnFirstUse<Pair> anywhere_;
};

std::unique_ptr<Step> prepare(const Request& r) { return std::make_unique<BackwardStep>(r); }

/// Gradients that are written where they lie side by side (groups/groups.h).
struct SideBySide {
  const ir::Node* gradients = nullptr;
  std::vector<Arg> in, out;      // as the kernel sees them
  std::vector<int> operands;     // of the group
  std::vector<int64_t> offsets;  // of dq, dk and dv, in bytes
  std::string problem;
};

SideBySide read_group(const Request& r) {
  const ir::Graph& body = *r.node.as<ops::Fused>().body;
  SideBySide out;
  const ir::Node* concat = nullptr;
  for (const ir::Node* n : body.nodes()) {
    if (n->is<ops::AttentionBackward>()) out.gradients = n;
    if (n->is<ops::Concat>()) concat = n;
  }
  if (!out.gradients || !concat || r.out.size() != 1) {
    out.problem = "no gradients side by side";
    return out;
  }
  const auto leaves = body.leaves();
  for (const ir::Value v : out.gradients->inputs) {
    out.operands.push_back(int(std::find(leaves.begin(), leaves.end(), v.node) - leaves.begin()));
    out.in.push_back(r.in[size_t(out.operands.back())]);
  }
  int axis = concat->as<ops::Concat>().axis;
  normalize_axis(axis, concat->shapes[0].rank());
  const Arg& whole = r.out[0];
  const int64_t step = whole.layout.strides[size_t(axis)] * int64_t(dtype_size(whole.dtype()));
  for (uint32_t k = 0; k < 3; ++k) {
    int64_t before = 0;
    size_t found = concat->inputs.size();
    for (size_t i = 0; i < concat->inputs.size() && found == concat->inputs.size(); ++i) {
      if (concat->inputs[i] == out.gradients->result(k)) {
        found = i;
      } else {
        before += body.shape(concat->inputs[i]).dim(axis).value();
      }
    }
    if (found == concat->inputs.size() || concat->inputs.size() != 3) {
      out.problem = "other parts than the three gradients";
      return out;
    }
    out.offsets.push_back(before * step);
    out.out.push_back({.shape = out.gradients->shapes[k], .layout = whole.layout});
  }
  return out;
}

Support accepts_side_by_side(const Request& r) {
  if (r.node.as<ops::Fused>().body->name() != kGradientsGroup) return Support::no("no group of gradients");
  const SideBySide g = read_group(r);
  if (!g.problem.empty()) return Support::no(g.problem);
  return accepts({*g.gradients, g.in, g.out, r.threads, r.builder});
}

std::unique_ptr<Step> prepare_side_by_side(const Request& r) {
  const SideBySide g = read_group(r);
  const Request inside{*g.gradients, g.in, g.out, r.threads, r.builder};
  const auto step = std::make_shared<const BackwardStep>(inside);
  return make_gpu_step(
      step->note + ", side by side",
      [step, operands = g.operands, offsets = g.offsets](Stream&, const Launch& l) {
        std::vector<std::byte*> in, out;
        for (const int i : operands) in.push_back(l.in[i]);
        for (const int64_t o : offsets) out.push_back(l.out[0] + o);
        Launch one = l;
        one.in = in.data();
        one.out = out.data();
        step->run(one);
      },
      step->workspace);
}

}  // namespace

void add_attention_backward(KernelTable& table) {
  table.add<ops::AttentionBackward>({"attention_backward", accepts, prepare});
  table.add<ops::Fused>({"gradients_group", accepts_side_by_side, prepare_side_by_side});
}

}  // namespace rlx::cuda
