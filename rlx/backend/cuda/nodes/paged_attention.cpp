// Attention over keys and values in pages: read where they lie, each once for all queries that share its head.
#include "rlx/ops/attention/paged_attention.h"

#include <algorithm>

#include "rlx/backend/cuda/fault.h"
#include "rlx/backend/cuda/kernels/attention_split.h"
#include "rlx/backend/cuda/kernels/paged_attention.h"
#include "rlx/backend/cuda/nodes/attention_heads.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/backend/cuda/region/printer.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kMostLanes = 256, kTile = 64;
constexpr std::string_view kBlocks = "gguf_q8_0";
constexpr int64_t kBlockLanes = 32, kBlockBytes = 34;
constexpr int kSplitRows = 8;  // queries of one block over a part of the keys

Support accepts(const Request& r) {
  const auto& a = r.node.as<ops::PagedAttention>();
  const auto is_known = [](DType t) { return t == DType::f32 || t == DType::f16 || t == DType::bf16; };
  if (!a.scheme.empty()) {
    if (a.scheme != kBlocks) return Support::no("rows of ", a.scheme);
    if (a.head_dim % kBlockLanes != 0 || a.value_dim % kBlockLanes != 0)
      return Support::no("heads of ", a.head_dim, " and ", a.value_dim, " lanes are no whole blocks");
  }
  if (!is_known(r.in[0].dtype()) || (a.scheme.empty() && !is_known(r.in[1].dtype())))
    return Support::no("q is ", r.in[0].dtype(), ", keys are ", r.in[1].dtype());
  if (a.head_dim > kMostLanes || a.value_dim > kMostLanes)
    return Support::no("heads of ", a.head_dim, " and ", a.value_dim, " lanes");
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  return Support::yes();
}

/// As Params of the kernels.
struct PagedParameters {
  const std::byte *q, *k, *v;
  std::byte *o, *lse;
  const std::byte *pages, *positions;
  uint64_t* fault;
  uint64_t wrong_page, wrong_position;
  HeadStrides qs, ks, vs, os;
  int64_t window;
  int q_heads, kv_heads, q_len, k_len, head_dim, value_dim, pages_each, page_count;
  float scale, softcap;
};

class PagedStep final : public Step {
 public:
  explicit PagedStep(const Request& r) : device_(device_of(r)) {
    const auto& a = r.node.as<ops::PagedAttention>();
    batch_ = r.in[0].shape.dim(0).value();
    p_.q_len = int(r.in[0].shape.dim(1).value());
    p_.q_heads = int(a.num_heads), p_.kv_heads = int(a.num_kv_heads);
    p_.head_dim = int(a.head_dim), p_.value_dim = int(a.value_dim);
    p_.pages_each = int(r.in[2].shape.dim(1).value());
    p_.page_count = int(r.in[1].shape.dim(0).value() / a.page);
    p_.k_len = int(p_.pages_each * a.page);
    has_values_ = r.in.size() > 4;
    const int64_t value_lanes = has_values_ ? a.value_dim : a.head_dim;
    const auto heads = [&](int64_t count, int64_t lanes) {
      return HeadStrides{p_.q_len * count * lanes, lanes, count * lanes};
    };
    p_.qs = heads(a.num_heads, a.head_dim), p_.os = heads(a.num_heads, a.value_dim);
    blocks_ = !a.scheme.empty();
    const auto stored = [&](int64_t lanes) { return blocks_ ? lanes / kBlockLanes * kBlockBytes : lanes; };
    p_.ks = heads(a.num_kv_heads, stored(a.head_dim)), p_.vs = heads(a.num_kv_heads, stored(value_lanes));
    p_.window = a.window;
    p_.scale = float(a.scale()), p_.softcap = float(a.attn_logit_softcap.value_or(0));
    p_.wrong_page =
        new_fault(cat("paged_attention: element % of pages is out of range; it must be at least 0 and below ",
                      p_.page_count));
    p_.wrong_position = new_fault(
        cat("paged_attention: element % of positions is out of range; it must be below ", p_.k_len));
    choose_parts();
    const int rows = p_.q_heads / p_.kv_heads * p_.q_len;
    const auto flag = [](bool b) { return b ? "true" : "false"; };
    text_ =
        cat("typedef ", memory_type(r.in[0].dtype()), " T;\ntypedef ", memory_type(r.in[1].dtype()),
            " Store;\ntypedef ", blocks_ ? "f32" : "Store", " Key;\ntypedef ", memory_type(r.in[2].dtype()),
            " Index;\ntypedef ", memory_type(r.in[3].dtype()),
            " Position;\nconstexpr int kDim = ", padded(p_.head_dim), ", kValueDim = ", padded(p_.value_dim),
            ", kPage = ", a.page, ", kQueries = ", std::max(1, std::min(rows, kSplitRows)),
            ";\nconstexpr bool kWindow = ", flag(a.window > 0), ", kSoftcap = ", flag(p_.softcap > 0), ";\n",
            kPagedShared, kAttentionParts);
    whole_ = a.head_dim % 8 == 0 && a.value_dim % 8 == 0;
    split_ = load(whole_);
    if (splits_ > 1) join_ = device_.functions().get({"attention_join", text_ + kAttentionJoin});
    const int64_t queries = batch_ * p_.q_heads * p_.q_len;
    lse_bytes_ = size_t(queries * 4 + 63) / 64 * 64;
    workspace = lse_bytes_ + (splits_ > 1 ? size_t(queries * splits_ * (2 + padded(p_.value_dim)) * 4) : 0);
    note = cat(splits_, splits_ == 1 ? " part, " : " parts, ", a.num_heads, " heads on ", a.num_kv_heads,
               ", ", p_.q_len, " queries, up to ", p_.k_len, " keys in pages of ", a.page,
               blocks_ ? ", blocks of q8_0" : "");
  }

  void run(const Launch& l) const override {
    if (batch_ * p_.q_len == 0) return;
    const Stream& s = stream_of(l);
    PagedParameters p = p_;
    p.q = l.in[0], p.k = l.in[1], p.pages = l.in[2], p.positions = l.in[3], p.v = l.in[has_values_ ? 4 : 1];
    p.o = l.out[0], p.lse = l.workspace, p.fault = s.fault;
    const bool aligned = is_aligned(p.k) && is_aligned(p.v);
    const FunctionRef& f = !whole_ || aligned ? split_ : anywhere_.get([&] { return load(false); });
    std::byte* const parts = l.workspace + lse_bytes_;
    (*f)(s.handle, {splits_, p.kv_heads * chunks_, batch_}, {256}, 0, p, parts, keys_each_, chunks_);
    if (splits_ > 1) (*join_)(s.handle, {batch_ * p.q_heads * p.q_len}, {128}, 0, p, parts, int(splits_));
  }

 private:
  static int64_t padded(int64_t lanes) { return (lanes + 7) / 8 * 8; }

  FunctionRef load(bool wide) const {
    return device_.functions().get(
        {"attention_split", cat(text_, "constexpr bool kWide = ", wide ? "true" : "false", ";\n",
                                blocks_ ? kBlockRows : kPlainRows, kAttentionSplit)});
  }

  // So many parts of the keys that all processors have work.
  void choose_parts() {
    const int rows = p_.q_heads / p_.kv_heads * p_.q_len;
    chunks_ = std::max(1, (rows + kSplitRows - 1) / kSplitRows);
    const int64_t processors = device_.multiprocessors();
    const int64_t blocks = std::max<int64_t>(1, int64_t(p_.kv_heads) * chunks_ * batch_);
    const int64_t tiles = std::max<int64_t>(1, (p_.k_len + kTile - 1) / kTile);
    const int64_t most = std::max<int64_t>(1, 2 * processors / blocks), each = (tiles + most - 1) / most;
    keys_each_ = int(each * kTile);
    splits_ = (tiles + each - 1) / each;
  }

  const Device& device_;
  PagedParameters p_{};
  int64_t batch_ = 0, splits_ = 1;
  int keys_each_ = 0, chunks_ = 1;
  bool has_values_ = false, whole_ = false, blocks_ = false;
  size_t lse_bytes_ = 0;
  std::string text_;
  FunctionRef split_, join_;
  OnFirstUse<FunctionRef> anywhere_;
};

std::unique_ptr<Step> prepare(const Request& r) { return std::make_unique<PagedStep>(r); }

}  // namespace

void add_paged_attention(KernelTable& table) {
  table.add<ops::PagedAttention>({"paged_attention", accepts, prepare});
}

}  // namespace rlx::cuda
