#include "rlx/text/encoding.h"

namespace rlx::text {

namespace {

// Calls f on each array of the encoding that holds one entry per token.
template <class F>
void for_each_array(Encoding& e, F f) {
  const bool offsets = e.offsets.size() == e.ids.size() && !e.ids.empty();
  f(e.ids);
  if (offsets) f(e.offsets);
  f(e.type_ids);
  f(e.special_mask);
  f(e.attention_mask);
}

}  // namespace

void Encoding::append(const Encoding& o) {
  const auto add = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  add(ids, o.ids);
  add(offsets, o.offsets);
  add(type_ids, o.type_ids);
  add(special_mask, o.special_mask);
  add(attention_mask, o.attention_mask);
}

void Encoding::append_special(TokenId id, uint8_t type_id, bool with_offset) {
  ids.push_back(id);
  if (with_offset) offsets.push_back({0, 0});
  type_ids.push_back(type_id);
  special_mask.push_back(1);
  attention_mask.push_back(1);
}

void Encoding::truncate(size_t count, bool keep_right) {
  if (count >= size()) return;
  const auto drop = long(size() - count);
  for_each_array(*this, [&](auto& a) {
    keep_right ? a.erase(a.begin(), a.begin() + drop) : a.erase(a.end() - drop, a.end());
  });
}

void Encoding::pad(size_t count, TokenId id, uint8_t type_id, bool on_left) {
  if (count <= size()) return;
  const size_t more = count - size();
  const bool with_offsets = !offsets.empty() || ids.empty();
  const auto add = [&](auto& a, auto value) { a.insert(on_left ? a.begin() : a.end(), more, value); };
  if (with_offsets) add(offsets, Range{});
  add(ids, id);
  add(type_ids, type_id);
  add(special_mask, uint8_t(1));
  add(attention_mask, uint8_t(0));
}

}  // namespace rlx::text
