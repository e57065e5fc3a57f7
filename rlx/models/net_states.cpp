// What a graph keeps from run to run: keys and values in slots or pages, running states.
#include "rlx/models/net.h"

#include "rlx/ir/clone.h"
#include "rlx/ops/quant/encode_blocks.h"

namespace rlx::models {

Tensor Net::state(const std::string& name, const Shape& shape) {
  if (!paged()) {
    states_.push_back({name, name + ".next", shape});
    return t.input(name, shape.dims(), shape.dtype());
  }
  // A row for each text; those of this run are picked out, zeros where a text begins.
  Dims dims = shape.dims();
  dims[0] = options.pages.rows + 1;
  states_.push_back({name, name + ".next", Shape(shape.dtype(), dims)});
  const Tensor store = t.input(name, dims, shape.dtype());
  stores_.emplace(name, store);
  if (is_new_.is_empty()) is_new_ = any(token_positions_.eq(0), {.axes = {1}});
  const Dims row(dims.size() - 1, Dim(1));
  Dims spread{batch};
  spread.insert(spread.end(), row.begin(), row.end());
  return where(is_new_.reshape(spread), 0.0, store.gather(state_rows()));
}

void Net::set_state(const std::string& name, const Tensor& next) {
  const auto store = stores_.find(name);
  const Tensor after = store == stores_.end() ? next : scatter(store->second, state_rows(), next);
  RLX_CHECK(next_states_.emplace(name, after).second, "state ", name, " is set twice");
}

Tensor Net::state_rows() {
  if (state_rows_.is_empty()) state_rows_ = t.input("rows", {batch}, DType::i32);
  return state_rows_;
}

// ---- keys and values ----

Tensor Net::encoded(const Tensor& rows) const {
  const CacheType& type = options.cache_type;
  return type.is_blocks() ? apply<ops::EncodeBlocks>({type.scheme}, {rows}) : rows.cast(type.dtype);
}

Tensor Net::decoded(const Tensor& rows, int64_t width) const {
  const CacheType& type = options.cache_type;
  if (!type.is_blocks()) return rows.cast(DType::f32);
  Dims dims = rows.shape().dims();
  dims.back() = width;
  const Dim count = dims[0] * dims[1];
  return dequantize_blocks(rows, {.scheme = type.scheme, .shape = {count, width, 1}}).reshape(dims);
}

Tensor Net::remember(const std::string& name, const Tensor& rows) {
  const int64_t width = rows.dim(2).value();
  const CacheType& type = options.cache_type;
  const Tensor before = state(name, Shape(type.dtype, {batch, options.capacity, type.width(width)}));
  const Tensor zero = t.zeros({1}, DType::i32);
  const Tensor after = dynamic_update_slice(before, encoded(rows), concat({zero, start_, zero}, {.axis = 0}));
  set_state(name, after);
  return decoded(after.narrow(1, 0, keys), width);
}

Tensor Net::seen_keys(int64_t window) {
  if (const auto it = seen_.find(window); it != seen_.end()) return it->second;
  const ir::OriginScope shared(graph, {});  // of no layer
  const Dim rows = cached() ? batch : Dim(1);
  const Tensor key = (cached() ? key_positions_ : positions()).reshape({rows, 1, 1, keys});
  const Tensor query = (cached() ? token_positions_ : positions()).reshape({rows, 1, seq, 1});
  Tensor seen = key <= query;
  if (cached()) seen = logical_and(key >= 0, seen);
  if (!mask_.is_empty()) seen = logical_and(seen, mask_.reshape({batch, 1, 1, seq}) > 0.5);
  if (window > 0) seen = logical_and(seen, query - key < window);
  return seen_[window] = seen;
}

// ---- pages ----

Tensor Net::pages(bool window) {
  Tensor& table = pages_[size_t(window)];
  if (table.is_empty())
    table = t.input(window ? "window_pages" : "pages", {batch, Dim::symbol("pages")}, DType::i32);
  return table;
}

// Where each token goes: i32 [batch * seq]. Padding counts as position 0 of a row without pages: page 0.
Tensor Net::slots(bool window) {
  Tensor& out = slots_[size_t(window)];
  if (!out.is_empty()) return out;
  const int64_t page = options.pages.page;
  const Tensor at = token_positions_.max(0);
  const Tensor number = take_along(pages(window), at / page, {.axis = 1});
  const Tensor is_token = token_positions_ >= 0;
  const Tensor slot = number * page + rem(at, page);
  return out = is_token.where(slot, 0.0).reshape({batch * seq});
}

Tensor Net::remember_in_pages(const std::string& name, const Tensor& rows, bool window) {
  const int64_t width = rows.dim(2).value();
  const CacheType& type = options.cache_type;
  const PageStore& store = options.pages;
  const int64_t count = window && store.window_count > 0 ? store.window_count : store.count;
  const Shape shape(type.dtype, {count * store.page, type.width(width)});
  states_.push_back({name, name + ".next", shape, true});
  const Tensor before = t.input(name, shape.dims(), shape.dtype());
  const Tensor flat = encoded(rows.reshape({batch * seq, width}));
  const Tensor after = scatter(before, slots(window), flat);
  set_state(name, after);
  return after;
}

}  // namespace rlx::models
