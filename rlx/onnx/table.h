// Which operators can be imported. One entry per operator and range of versions; one file per theme under ops/.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rlx/onnx/call.h"

namespace rlx::onnx {

/// What an importer does with tensors of which only a part is meant (Item::bounds).
enum class BoundsRule : uint8_t {
  refuse,       // such operands are an error
  elementwise,  // the result has the bounds of the operands, aligned at the last axis
  rows,     // each place of the first axis of operand 0 is worked on alone; no other operand may have bounds
  by_hand,  // the importer looks at them
};

/// What may be decided from sizes alone, without a node in the graph; nothing when it cannot be.
using FollowSizes = std::optional<Item> (*)(const Call&);
using ImportNode = Items (*)(Call&);

struct Entry {
  std::string_view name;
  int since = 1;  // the first version of the operator set it is for, up to the next entry
  ImportNode import = nullptr;
  BoundsRule bounds = BoundsRule::refuse;
  FollowSizes follow = nullptr;
  bool folds = true;   // may be evaluated while the graph is built, when all operands are known
  bool wraps = false;  // results of narrow unsigned integers are cut to their width
};

struct Theme {
  std::string_view name;
  std::string_view domain;  // empty: ONNX itself
  std::span<const Entry> entries;
};

/// All themes, in the order of docs/onnx.md.
std::span<const Theme> themes();

/// The entry for a version; null when there is none. `domain` as in files.
const Entry* find_entry(std::string_view domain, std::string_view op, int64_t version);
/// Whether the operator is known in any version.
bool is_known(std::string_view domain, std::string_view op);

// Themes, one per file.
std::span<const Entry> elementwise_entries();
std::span<const Entry> activation_entries();
std::span<const Entry> reduce_entries();
std::span<const Entry> shape_entries();
std::span<const Entry> layout_entries();
std::span<const Entry> slice_entries();
std::span<const Entry> conv_entries();
std::span<const Entry> pool_entries();
std::span<const Entry> norm_entries();
std::span<const Entry> linear_entries();
std::span<const Entry> index_entries();
std::span<const Entry> scatter_entries();
std::span<const Entry> control_entries();
std::span<const Entry> recurrent_entries();
std::span<const Entry> quantize_entries();
std::span<const Entry> convert_entries();
std::span<const Entry> signal_entries();
std::span<const Entry> resize_entries();
std::span<const Entry> vision_entries();
std::span<const Entry> attention_entries();
std::span<const Entry> state_entries();
std::span<const Entry> loss_entries();
std::span<const Entry> random_entries();
std::span<const Entry> selection_entries();
std::span<const Entry> sequence_entries();
std::span<const Entry> text_entries();
std::span<const Entry> training_entries();
std::span<const Entry> ml_entries();
std::span<const Entry> contrib_entries();
std::span<const Entry> contrib_attention_entries();
std::span<const Entry> contrib_quantize_entries();
std::span<const Entry> contrib_recurrent_entries();
std::span<const Entry> preview_entries();

}  // namespace rlx::onnx
