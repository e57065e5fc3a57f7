// Attention with every mask, soft-cap, bias and grouped queries.
#include "rlx/ops/attention/attention.h"

#include <algorithm>
#include <bit>

#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/kernels/attention.h"
#include "rlx/backend/cuda/kernels/attention_copied.h"
#include "rlx/backend/cuda/kernels/attention_fragments.h"
#include "rlx/backend/cuda/kernels/attention_groups.h"
#include "rlx/backend/cuda/kernels/attention_short.h"
#include "rlx/backend/cuda/kernels/attention_split.h"
#include "rlx/backend/cuda/kernels/cluster_blocks.h"
#include "rlx/backend/cuda/kernels/matrix_groups.h"
#include "rlx/backend/cuda/nodes/attention_items.h"
#include "rlx/backend/cuda/nodes/few_rows.h"
#include "rlx/backend/cuda/nodes/untried.h"

namespace rlx::cuda {
namespace {

constexpr int kSplitRows = 8;    // queries of one block over a part of the keys, and of a call that is split
constexpr int kShortRows = 128;  // queries and keys of one block
constexpr int64_t kWarpKeys = 16;  // that a warp takes at once, where keys go into fragments

Support accepts(const Request& r) { return accepts_heads(r, r.node.as<ops::Attention>(), 3); }

class AttentionStep final : public Step {
 public:
  AttentionStep(const Request& r, bool knows_mask)
      : device_(device_of(r)), shape_(r, r.node.as<ops::Attention>(), 3), knows_mask_(knows_mask) {
    const auto& a = r.node.as<ops::Attention>();
    const int64_t kv = kv_heads_of(a);
    const HeadTensor o = heads_of(r.out[0], a.layout, a.num_heads);
    p_.os = o.strides;
    element_ = dtype_size(r.in[0].dtype());
    if (p_.q_len <= kSplitRows && a.num_heads % kv == 0) {
      prepare_split(r, a);
    } else {
      prepare_tiles(r, a);
    }
    note = cat(copied_ ? "keys by the copy engine, " : "",
               splits_ > 0 ? cat(splits_, splits_ == 1 ? " part" : " parts")
               : short_    ? "matrix units, all keys at once"
               : items_    ? cat(items_->note(), knows_mask_ ? ", the mask as a table" : "")
               : groups_   ? "matrix units of groups of warps"
               : matrix_   ? "matrix units"
                           : "plain",
               ", ", a.num_heads, " heads on ", kv, ", ", p_.q_len, " queries, ", p_.k_len, " keys");
  }

  void run(const Launch& l) const override {
    AttentionParameters p = p_;
    p.q = l.in[0], p.k = l.in[1], p.v = l.in[2];
    p.mask = mask_ >= 0 ? l.in[mask_] : nullptr;
    p.bias = bias_ >= 0 ? l.in[bias_] : nullptr;
    p.o = l.out[0], p.lse = l.out[1];
    const bool aligned = (reinterpret_cast<uintptr_t>(p.q) | reinterpret_cast<uintptr_t>(p.k) |
                          reinterpret_cast<uintptr_t>(p.v) | reinterpret_cast<uintptr_t>(p.o)) %
                             16 ==
                         0;
    if (Chain* const chain = find_phase_ && aligned ? chain_of(l) : nullptr) return add_phases(*chain, l, p);
    if (splits_ > 0) return run_split(l, p, aligned);
    if (aligned && (matrix_ || short_ || items_)) return run_matrix(l, p);
    const size_t lanes = padded(p.head_dim), values = padded(p.value_dim);
    const size_t shared = (64 * (lanes + 1) + 32 * (values + 1) + 32 * 33) * sizeof(float);
    (*plain_)(stream_of(l).handle, {(p.q_len + 31) / 32, p.q_heads, batch_}, {256}, shared, p);
  }

 private:
  static size_t padded(int lanes) { return size_t(lanes + 7) / 8 * 8; }

  void prepare_tiles(const Request& r, const ops::AttentionAttrs& a) {
    const bool narrow = element_ == 2 && p_.head_dim <= 128 && p_.value_dim <= 128;
    plain_ =
        device_of(r).functions().get({"attention_plain", text(r, a, 8) + kAttentionShared + kAttentionPlain});
    if (narrow && p_.head_dim % 16 == 0 && p_.value_dim % 16 == 0 && even_rows()) prepare_matrix(r, a);
  }

  void prepare_matrix(const Request& r, const ops::AttentionAttrs& a) {
    const int64_t processors = device_.multiprocessors();
    // Two rows of tiles a warp reuse keys and values, where enough blocks are left.
    const int64_t large = (p_.q_len + 127) / 128 * p_.q_heads * batch_;
    row_tiles_ = p_.head_dim <= 64 && p_.value_dim <= 64 && large >= 2 * processors ? 2 : 1;
    const bool hopper = device_.functions().architecture() == kHopper;
    const auto whole = [](int lanes) { return lanes == 64 || lanes == 128; };
    groups_ = hopper && p_.q_len >= 128 && whole(p_.head_dim) && whole(p_.value_dim);
    if (hopper && AttentionItems::takes(r, a, shape_)) {
      items_ = std::make_unique<const AttentionItems>(r, a, shape_);
      if (!knows_mask_) workspace = items_->workspace();
      return;
    }
    if (prepare_short(r, a)) return;
    if (groups_) row_tiles_ = 2;
    const std::string shared =
        cat("constexpr int kRowTiles = ", row_tiles_, ";\n", text(r, a, 16), kAttentionShared);
    matrix_ = device_.functions().get(
        groups_
            ? Source{"attention_groups", cat(shared, kAttentionWeights, kMatrixGroups, kAttentionGroups)}
            : Source{"attention_matrix", shared + kAttentionWeights + kAttentionTiles + kAttentionMatrix});
    const bool shared_mask = mask_ >= 0 && p_.ms.row != 0 && p_.ms.head == 0;
    if (!shared_mask || p_.q_heads == 1 || p_.q_len < 64) return;
    mask_tiles_ = device_.functions().get({"mask_tiles", shared + kMaskTiles});
    workspace = size_t(mask_grid().x * mask_grid().y * mask_grid().z);
  }

  // Whether the copy engine can read queries, keys and values.
  bool prepare_maps(const Request& r, const ops::AttentionAttrs& a) {
    const int64_t heads[] = {a.num_heads, kv_heads_of(a), kv_heads_of(a)};
    for (size_t i = 0; i < 3; ++i) {
      maps_[i] = {heads_of(r.in[i], a.layout, heads[i]), heads[i], r.in[i].dtype() == DType::bf16};
      if (!maps_[i].is_possible()) return false;
    }
    return true;
  }
  // Scores that are no more than scaled products, all of a head's in the registers of one block.
  bool prepare_short(const Request& r, const ops::AttentionAttrs& a) {
    if (std::max(p_.q_len, p_.k_len) > kShortRows || std::max(p_.head_dim, p_.value_dim) > 64 || bias_ >= 0 ||
        p_.softcap > 0 || !(p_.scale > 0) || a.mask_kind == ops::MaskKind::sliding_window ||
        (mask_ >= 0 && p_.ms.row != 0))
      return false;
    const int64_t tiles = (p_.q_len + 15) / 16;
    short_rounds_ = tiles > 4 ? 2 : 1;  // keys and values are fetched for several tiles of a warp
    short_warps_ = (tiles + short_rounds_ - 1) / short_rounds_;
    short_ = device_.functions().get(
        {"attention_short", cat(text(r, a, 16), "constexpr int kKeys = ", short_keys(),
                                ", kWarps = ", short_warps_, ", kRounds = ", short_rounds_, ";\n",
                                kAttentionShared, kAttentionWeights, kAttentionTiles, kAttentionShort)});
    return true;
  }
  int64_t short_keys() const { return (p_.k_len + 15) / 16 * 16; }

  Grid mask_grid() const {
    const int64_t rows = 64 * row_tiles_;
    return {(p_.k_len + 63) / 64, (p_.q_len + rows - 1) / rows, p_.ms.batch != 0 ? batch_ : 1};
  }

  void run_matrix(const Launch& l, const AttentionParameters& p) const {
    if (short_) {
      const int64_t rows = 16 * short_warps_ * short_rounds_, lanes = p.head_dim + 8,
                    values = p.value_dim + 8;
      const auto shared = size_t(2 * (rows * lanes + short_keys() * (lanes + values)));
      return (*short_)(stream_of(l).handle, {p.q_heads, batch_}, {32 * short_warps_}, shared, p);
    }
    if (items_ && knows_mask_) return items_->run(l, p, l.in[mask_ + 1], l.in[mask_ + 2]);
    if (items_) return items_->run(l, p);
    std::byte* const tiles = mask_tiles_ ? l.workspace : nullptr;
    if (mask_tiles_) (*mask_tiles_)(stream_of(l).handle, mask_grid(), {256}, 0, p, tiles);
    if (groups_) {
      constexpr int64_t kKeyBytes = 64 * 2,
                        kSwizzle = 1024;  // of a lane in a tile; what tiles are aligned to
      const auto shared = size_t(2 * kKeyBytes * (p.head_dim + p.value_dim) + kSwizzle);
      return (*matrix_)(stream_of(l).handle, {(p.q_len + 127) / 128, p.q_heads, batch_}, {256}, shared, p,
                        tiles);
    }
    const int64_t rows = 64 * row_tiles_, lanes = p.head_dim + 8, values = p.value_dim + 8;
    const auto shared = size_t(2 * ((rows + 128) * lanes + 128 * values));
    (*matrix_)(stream_of(l).handle, {(p.q_len + rows - 1) / rows, p.q_heads, batch_}, {128}, shared, p,
               tiles);
  }

  // Parts of the keys, so many that all processors have work.
  void prepare_split(const Request& r, const ops::AttentionAttrs& a) {
    const int rows = p_.q_heads / p_.kv_heads * p_.q_len;
    chunks_ = (rows + kSplitRows - 1) / kSplitRows;
    const int64_t blocks = int64_t(p_.kv_heads) * chunks_ * batch_, wanted = 2 * device_.multiprocessors();
    constexpr int64_t kTile = 64;
    const int64_t tiles = (p_.k_len + kTile - 1) / kTile, most = std::max<int64_t>(1, wanted / blocks);
    const int64_t each = (tiles + most - 1) / most;
    keys_each_ = int(each * kTile);
    splits_ = (tiles + each - 1) / each;
    const bool whole = p_.head_dim % 8 == 0 && p_.value_dim % 8 == 0 && even_rows();
    const bool fragments = whole && element_ == 2 && p_.head_dim % 32 == 0 && p_.value_dim % 64 == 0 &&
                           p_.head_dim <= 128 && p_.value_dim <= 128;
    if (fragments) prepare_fragments(r, a, tiles, blocks, wanted / 2);
    if (fragments) prepare_phases(r, a, blocks);
    workspace = phase_bytes_;
    const std::string shared = cat(text(r, a, 8), kAttentionShared, kAttentionParts);
    const auto source = [&](bool wide) {
      return Source{"attention_split", cat(shared, "constexpr int kQueries = ", std::min(rows, kSplitRows),
                                           ";\nconstexpr bool kWide = ", wide ? "true" : "false", ";\n",
                                           kPlainRows, kAttentionSplit)};
    };
    split_ = device_of(r).functions().get(source(false));
    if (whole) split_wide_ = device_of(r).functions().get(source(true));
    if (splits_ == 1) return;
    join_ = device_of(r).functions().get({"attention_join", shared + kAttentionJoin});
    const int64_t padded_values = (p_.value_dim + 7) / 8 * 8;
    workspace = std::max(
        workspace, size_t(batch_ * p_.q_heads * p_.q_len * splits_ * (2 + padded_values)) * sizeof(float));
  }

  // Parts that a few blocks find are joined by these blocks; with more, or on older processors, by a second kernel.
  void prepare_fragments(const Request& r, const ops::AttentionAttrs& a, int64_t tiles, int64_t blocks,
                         int64_t processors) {
    constexpr int64_t kMostJoined = 8, kMostTiles = 8;  // of 64 keys, that one of these blocks may take
    const bool clusters = has_clusters(device_of(r).functions().architecture());
    int64_t joined = 1;
    while (joined < kMostJoined && joined < tiles && blocks * joined * 2 <= 2 * processors) joined *= 2;
    cluster_ = clusters && tiles <= joined * kMostTiles ? int(joined) : 1;
    if (cluster_ > 1) splits_ = cluster_, keys_each_ = int((tiles + joined - 1) / joined * 64);
    warps_ = p_.head_dim > 64 || p_.value_dim > 64 ? 4 : 8;
    const std::string shape = cluster_ > 1 ? cat("__cluster_dims__(", cluster_, ", 1, 1)") : "";
    const std::string shared =
        cat(text(r, a, 32), "constexpr int kWarps = ", warps_, ", kShares = 1, kCluster = ", cluster_,
            ";\n#define kClusterShape ", shape, "\n", kAttentionShared, kAttentionParts, kClusterBlocks,
            kFragmentParts, kFragmentJoin);
    fragments_ = device_of(r).functions().get({"attention_fragments", shared + kAttentionFragments});
    // A ring is worth its beginning where a warp takes its places several times.
    constexpr int64_t kLeastPlaces = 8;
    if (blocks * cluster_ >= processors &&
        (takes_untried("attention_of_few_keys") || keys_each_ >= kLeastPlaces * kWarpKeys * warps_))
      prepare_copied(r, a, shared);
  }

  // Where keys and values of many texts are read, the copy engine brings them.
  void prepare_copied(const Request& r, const ops::AttentionAttrs& a, const std::string& shared) {
    const auto whole = [](int lanes) { return lanes == 64 || lanes == 128; };
    const Functions& functions = device_of(r).functions();
    if (functions.architecture() != kHopper || !whole(p_.head_dim) || !whole(p_.value_dim) ||
        !prepare_maps(r, a))
      return;
    // Two blocks find room on a processor.
    constexpr int64_t kRoom = 106 << 10, kSwizzle = 1024, kElement = 2, kMostSlots = 8;
    const int64_t place = kWarpKeys * (p_.head_dim + p_.value_dim) * kElement;  // of a warp
    const int64_t slots = std::min((kRoom - kSwizzle) / (warps_ * place), kMostSlots);
    copied_bytes_ = size_t(kSwizzle + warps_ * slots * place);
    copied_ = device_of(r).functions().get(
        {"attention_copied",
         cat("constexpr int kSlots = ", slots, ", kBlocks = 2;\n", shared, kMatrixGroups, kAttentionCopied)});
  }

  // The same as two phases of a chain: parts of the keys, as many as there are processors, and what they found together.
  void prepare_phases(const Request& r, const ops::AttentionAttrs& a, int64_t blocks) {
    constexpr int64_t kMostParts = 16, kKeys = 16, kMostWarps = 8;
    const Functions& functions = device_of(r).functions();
    if (!makes_phases(functions)) return;
    const int64_t processors = device_.multiprocessors();
    const int64_t wanted = std::clamp<int64_t>(processors / blocks, 1, kMostParts);
    const int64_t each = (p_.k_len + wanted * kKeys - 1) / (wanted * kKeys) * kKeys;
    const int64_t parts = (p_.k_len + each - 1) / each, warps = std::min(kMostWarps, each / kKeys);
    const auto strides = [](const char* name, const HeadStrides& s) {
      return cat("  p.", name, " = {", s.batch, ", ", s.head, ", ", s.row, "};\n");
    };
    std::string text = cat(
        this->text(r, a, 32), "constexpr int kWarps = ", warps, ", kShares = ", p_.value_dim / 64,
        ", kSplits = ", parts, ", kKeysEach = ", each, ", kRowChunks = ", chunks_, ", kBatch = ", batch_,
        ";\n", kAttentionShared, kAttentionParts,
        "struct Words { const T *q, *k, *v; const Mask* mask; const Bias* bias; T* o; f32 *lse, *parts; };\n",
        "inline Params params(const Words& w) {\n  Params p;\n  p.q = w.q, p.k = w.k, p.v = w.v, p.mask = w.mask, ",
        "p.bias = w.bias, p.o = w.o, p.lse = w.lse;\n");
    text += strides("qs", p_.qs) + strides("ks", p_.ks) + strides("vs", p_.vs) + strides("os", p_.os) +
            strides("ms", p_.ms) + strides("bs", p_.bs);
    text += cat("  p.window = ", p_.window, ", p.q_heads = ", p_.q_heads, ", p.kv_heads = ", p_.kv_heads,
                ", p.q_len = ", p_.q_len, ", p.k_len = ", p_.k_len, ", p.head_dim = ", p_.head_dim,
                ", p.value_dim = ", p_.value_dim, ";\n  p.scale = from_bits(", bits_of(p_.scale),
                "u), p.softcap = from_bits(", bits_of(p_.softcap), "u);\n  return p;\n}\n");
    const size_t found = size_t(warps * 8 * (2 + p_.value_dim)) * sizeof(float);
    find_phase_ = std::make_shared<const Phase>(
        Phase{.text = cat(text, kClusterBlocks, kFragmentParts, kFragmentPhase), .room = found});
    join_phase_ = std::make_shared<const Phase>(Phase{.text = text + kJoinPhase});
    phase_bytes_ = size_t(batch_ * p_.q_heads * p_.q_len * parts * (2 + p_.value_dim)) * sizeof(float);
  }
  static uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }

  void add_phases(Chain& chain, const Launch& l, const AttentionParameters& p) const {
    const std::byte* const addresses[] = {p.q, p.k, p.v, p.mask, p.bias, p.o, p.lse, l.workspace};
    const std::vector<uint64_t> words = words_of(addresses);
    chain.add(find_phase_, words, [this, l, p] { run_split(l, p, true); });
    chain.add(join_phase_, words, [] {});  // what stands for the first alone is the whole
  }

  void run_split(const Launch& l, const AttentionParameters& p, bool aligned) const {
    if (fragments_ && aligned) {
      if (copied_) {
        const Driver& d = device_.gpu()->use();
        const int keys = int(kWarpKeys) * warps_;
        (*copied_)(stream_of(l).handle, {splits_, p.kv_heads * chunks_, batch_}, {32 * warps_}, copied_bytes_,
                   p, maps_[1].encode(d, p.k, keys), maps_[2].encode(d, p.v, keys), l.workspace, keys_each_,
                   chunks_);
      } else {
        (*fragments_)(stream_of(l).handle, {splits_, p.kv_heads * chunks_, batch_}, {32 * warps_}, 0, p,
                      l.workspace, keys_each_, chunks_);
      }
      if (cluster_ > 1 || splits_ == 1) return;
      (*join_)(stream_of(l).handle, {batch_ * p.q_heads * p.q_len}, {128}, 0, p, l.workspace, int(splits_));
      return;
    }
    const FunctionRef& f = split_wide_ && aligned ? split_wide_ : split_;
    (*f)(stream_of(l).handle, {splits_, p.kv_heads * chunks_, batch_}, {256}, 0, p, l.workspace, keys_each_,
         chunks_);
    if (splits_ > 1)
      (*join_)(stream_of(l).handle, {batch_ * p.q_heads * p.q_len}, {128}, 0, p, l.workspace, int(splits_));
  }

  // Rows of q, k, v and o begin at multiples of 16 bytes when the first does.
  bool even_rows() const { return p_.qs.is_even() && p_.ks.is_even() && p_.vs.is_even() && p_.os.is_even(); }
  std::string text(const Request& r, const ops::AttentionAttrs& a, int unit) const {
    return shape_.text(r, a, unit);
  }

  const Device& device_;
  AttentionShape shape_;
  AttentionParameters& p_ = shape_.p;
  const int &mask_ = shape_.mask, &bias_ = shape_.bias;
  const int64_t& batch_ = shape_.batch;
  size_t element_ = 4;
  bool knows_mask_ = false, groups_ = false;
  std::unique_ptr<const AttentionItems> items_;
  int64_t splits_ = 0;  // 0: one block for a tile of queries and all keys
  int keys_each_ = 0, chunks_ = 1, row_tiles_ = 1, cluster_ = 1, warps_ = 8;
  int64_t short_warps_ = 1, short_rounds_ = 1;
  FunctionRef plain_, matrix_, short_, mask_tiles_, split_, split_wide_, join_, fragments_, copied_;
  HeadMap maps_[3];  // q, k, v
  size_t copied_bytes_ = 0;
  PhaseRef find_phase_, join_phase_;
  size_t phase_bytes_ = 0;
};

std::unique_ptr<Step> prepare(const Request& r) { return attention_step(r, false); }

}  // namespace

std::unique_ptr<Step> attention_step(const Request& r, bool knows_mask) {
  return std::make_unique<AttentionStep>(r, knows_mask);
}

void add_attention(KernelTable& table, std::string_view architecture) {
  table.add<ops::Attention>({"attention", accepts, prepare});
  add_attention_backward(table);
  if (architecture == kHopper) add_masked_attention(table);
}

}  // namespace rlx::cuda
