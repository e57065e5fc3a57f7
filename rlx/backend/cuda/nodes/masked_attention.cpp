// Masks that are looked at once for several attentions: the groups of with_mask_tables (groups/groups.h).
#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/backend/cuda/kernels/attention.h"
#include "rlx/backend/cuda/kernels/attention_items.h"
#include "rlx/backend/cuda/nodes/attention_items.h"
#include "rlx/ops/control/fused.h"

namespace rlx::cuda {
namespace {

const ir::Node* node_of(const Request& r, std::string_view kind) {
  const ir::Graph& body = *r.node.as<ops::Fused>().body;
  if (body.name() != kind) return nullptr;
  for (const ir::Node* n : body.nodes()) {
    if (n->is<ops::Attention>()) return n;
  }
  return nullptr;
}

constexpr size_t kAttentionOperands = 4;  // q, k, v and the mask; behind them the table and the bits

Request inside(const Request& r, const ir::Node& attention) {
  return {attention, {r.in.begin(), r.in.begin() + kAttentionOperands}, r.out, r.threads, r.builder};
}

Support accepts_masked(const Request& r) {
  const ir::Node* const attention = node_of(r, kMaskedAttentionGroup);
  if (!attention || attention->inputs.size() != kAttentionOperands || r.in.size() != kAttentionOperands + 2)
    return Support::no("no attention with the table of its mask");
  const auto& a = attention->as<ops::Attention>();
  const Request one = inside(r, *attention);
  if (const Support s = accepts_heads(one, a, 3); !s) return s;
  if (!AttentionItems::takes(one, a, AttentionShape(one, a, 3)))
    return Support::no("a kernel that knows no tables");
  return Support::yes();
}

std::unique_ptr<Step> prepare_masked(const Request& r) {
  return attention_step(inside(r, *node_of(r, kMaskedAttentionGroup)), true);
}

Support accepts_table(const Request& r) {
  if (r.node.as<ops::Fused>().body->name() != kMaskTableGroup) return Support::no("no table of a mask");
  if (r.in.size() != 1 || r.out.size() != 2 || r.in[0].dtype() != DType::bool_ || r.in[0].shape.rank() != 4)
    return Support::no("no mask of all heads");
  if (r.in[0].layout.strides.back() != 1) return Support::no("the last axis of the mask is strided");
  return Support::yes();
}

std::unique_ptr<Step> prepare_table(const Request& r) {
  const Arg& mask = r.in[0];
  const auto size = [&](int axis) { return mask.shape.dim(axis).value(); };
  AttentionParameters p{};
  p.ms = {mask.layout.strides[0], 0, mask.layout.strides[2]};
  p.q_len = int(size(2)), p.k_len = int(size(3));
  const FunctionRef f = device_of(r).functions().get(
      {"mask_table",
       cat("typedef f16 T;\ntypedef u8 Mask;\ntypedef u8 Bias;\nconstexpr int kDim = 64, kValueDim = 64;\n",
           "constexpr bool kHasMask = true, kKeyMask = false, kHasBias = false, kCausal = false, kWindow = ",
           "false, kSoftcap = false;\n", kAttentionShared, kMaskTable)});
  const Grid grid{(p.k_len + 63) / 64, (p.q_len + 63) / 64, size(0)};
  return make_gpu_step(cat("tiles and bits of ", p.q_len, " x ", p.k_len),
                       [f, p, grid](Stream& s, const Launch& l) {
                         AttentionParameters now = p;
                         now.mask = l.in[0];
                         (*f)(s.handle, grid, {256}, 0, now, l.out[0], l.out[1]);
                       });
}

}  // namespace

void add_masked_attention(KernelTable& table) {
  table.add<ops::Fused>({"masked_attention", accepts_masked, prepare_masked});
  table.add<ops::Fused>({"mask_table", accepts_table, prepare_table});
}

}  // namespace rlx::cuda
