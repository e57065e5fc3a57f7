#include <algorithm>
#include <map>

#include "rlx/backend/cuda/groups/groups.h"
#include "rlx/ir/clone.h"
#include "rlx/ops/attention/attention.h"
#include "rlx/ops/control/fused.h"
#include "rlx/ops/elementwise/binary.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/reduce/reduce.h"
#include "rlx/ops/shape/pad.h"
#include "rlx/ops/shape/reshape.h"

namespace rlx::cuda {
namespace {

using Attrs = std::shared_ptr<const ops::Fused::Attrs>;

constexpr uint32_t kMask = 3;  // operand of attention
constexpr int64_t kTile = 64, kByte = 8;
constexpr size_t kWorthIt = 2;  // nodes that read the same mask

Attrs attrs_of(ir::Graph body) {
  return std::make_shared<ops::Fused::Attrs>(
      ops::Fused::Attrs{std::make_shared<const ir::Graph>(std::move(body))});
}

// What a mask [batch, 1, queries, keys] lets through: of each tile nothing (0), a part (1) or all (2), u8 [batch, tiles of queries, tiles of keys], and a bit for each
// key, u8 [batch, queries, bytes].
Attrs table_of(const Shape& mask) {
  ir::Graph body{std::string(kMaskTableGroup)};
  const ir::Expr x{&body, body.input("x0", mask)};
  const int64_t batch = mask.dim(0).value(), rows = mask.dim(2).value(), keys = mask.dim(3).value();
  const int64_t row_tiles = (rows + kTile - 1) / kTile, key_tiles = (keys + kTile - 1) / kTile;
  const ir::Expr open = ops::cast(ops::reshape(x, {batch, rows, keys}), DType::f32);
  const auto padded = [&](int64_t to_rows, double value) {
    return ops::pad(open, {0, 0, 0}, {0, to_rows - rows, key_tiles * kTile - keys}, value);
  };
  const auto tiles = [&](double value) {
    return ops::reshape(padded(row_tiles * kTile, value), {batch, row_tiles, kTile, key_tiles, kTile});
  };
  const ir::Expr kinds =
      ops::add(ops::reduce_max(tiles(0), {2, 4}), ops::reduce(tiles(1), ops::ReduceOp::min, {2, 4}, false));
  const ir::Expr places{&body, body.constant(Literal::of<float>({kByte}, {1, 2, 4, 8, 16, 32, 64, 128}))};
  const ir::Expr bits =
      ops::mul(ops::reshape(padded(rows, 0), {batch, rows, key_tiles * kByte, kByte}), places);
  body.set_outputs({ops::cast(kinds, DType::u8), ops::cast(ops::reduce_sum(bits, {3}), DType::u8)});
  return attrs_of(std::move(body));
}

// The same attention; that its mask is known as a table is no part of the result.
Attrs attention_of(const ir::Graph& g, const ir::Node& attention, const Shapes& table) {
  ir::Graph body{std::string(kMaskedAttentionGroup)};
  ir::Values operands;
  for (const ir::Value v : attention.inputs)
    operands.push_back(body.input(cat("x", operands.size()), g.shape(v)));
  for (const Shape& s : table) body.input(cat("x", body.leaves().size()), s);
  const ir::NodeId id = body.append(*attention.op, attention.attrs, operands);
  body.set_outputs({body.value(id, 0), body.value(id, 1)});
  return attrs_of(std::move(body));
}

class Tabler {
 public:
  Tabler(const ir::Graph& g, const ir::Target& target) : g_(g), target_(target) {
    ir::ValueMap<std::vector<const ir::Node*>> readers;
    for (const ir::Node* n : g.nodes()) {
      if (n->is<ops::Attention>() && n->as<ops::Attention>().has_mask) readers[n->inputs[kMask]].push_back(n);
    }
    for (const auto& [mask, nodes] : readers) {
      const Shape& s = g.shape(mask);
      if (nodes.size() < kWorthIt || s.dtype() != DType::bool_ || s.rank() != 4 || s.dim(1) != Dim(1))
        continue;
      const Attrs table = table_of(s);
      Shapes results;
      for (const ir::Value v : table->body->outputs()) results.push_back(table->body->shape(v));
      if (!is_taken({mask}, {}, table)) continue;
      for (const ir::Node* n : nodes) {
        const Attrs attention = attention_of(g, *n, results);
        if (is_taken(n->inputs, results, attention)) attention_[n->id] = attention, table_[mask] = table;
      }
    }
  }

  std::optional<ir::Graph> run() const {
    if (attention_.empty()) return std::nullopt;
    ir::Graph out(g_.name());
    ir::Cloner copy(out);
    ir::ValueMap<ir::NodeId> made;
    for (const ir::NodeId id : g_.leaves()) copy.copy(g_.node(id));
    for (const ir::Node* n : g_.nodes()) {
      if (n->op->traits.leaf) continue;
      const auto it = attention_.find(n->id);
      if (it == attention_.end()) {
        copy.copy(*n);
        continue;
      }
      const ir::Value mask = n->inputs[kMask];
      if (!made.contains(mask)) {
        const ir::OriginScope scope(out, ir::noted_origin(g_.node(mask), "its tiles are looked at once"));
        made[mask] = out.append(ir::def<ops::Fused>(), table_.at(mask), ir::Values{copy.at(mask)});
      }
      const ir::OriginScope scope(out, ir::noted_origin(*n, "its mask comes as a table"));
      ir::Values operands = copy.at(n->inputs);
      for (uint32_t i = 0; i < 2; ++i) operands.push_back(out.value(made[mask], i));
      const ir::NodeId id = out.append(ir::def<ops::Fused>(), it->second, operands, n->name);
      for (uint32_t i = 0; i < 2; ++i) copy.set(n->result(i), out.value(id, i));
    }
    copy.copy_outputs(g_);
    return out;
  }

 private:
  // Whether the target takes a group with operands of the graph, and others that lie row by row.
  bool is_taken(const ir::Values& operands, const Shapes& others, const Attrs& attrs) const {
    ir::Graph asked;
    ir::Values values;
    ir::Layouts layouts;
    for (const ir::Value v : operands) {
      values.push_back(asked.input(cat("x", values.size()), g_.shape(v)));
      layouts.push_back(backend::expected_layout(g_, v));
      layouts.back().offset = 0;
    }
    for (const Shape& s : others) {
      values.push_back(asked.input(cat("x", values.size()), s));
      layouts.push_back(ir::Layout::row_major(s.dims()));
    }
    return backend::is_taken(target_, asked, attrs, values, layouts);
  }

  const ir::Graph& g_;
  const ir::Target& target_;
  std::map<ir::NodeId, Attrs> attention_;
  ir::ValueMap<Attrs> table_;
};

}  // namespace

std::optional<ir::Graph> with_mask_tables(const ir::Graph& g, const ir::Target& target) {
  return Tabler(g, target).run();
}

}  // namespace rlx::cuda
