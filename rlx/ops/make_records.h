// The definition of `record<Name>()`. Who includes this has a definition of `ir::def` first.
#pragma once

#include <array>
#include <utility>

#include "rlx/ops/all.h"
#include "rlx/ops/record.h"

namespace rlx::ops {
namespace detail {

template <size_t I, class Op>
struct Numbered {
  using Type = Op;
};

template <class Indices, class List>
struct NumberedList;
template <size_t... I, class... Ops>
struct NumberedList<std::index_sequence<I...>, OpList<Ops...>> : Numbered<I, Ops>... {
  template <size_t K, class Op>
  static Numbered<K, Op> at(const Numbered<K, Op>*);
};

template <class... Ops>
constexpr size_t number_of(OpList<Ops...>, std::string_view name) {
  const std::array<std::string_view, sizeof...(Ops)> names = {Ops::name...};
  size_t i = 0;
  while (names[i] != name) ++i;
  return i;
}

template <class... Ops>
auto numbered(OpList<Ops...>) -> NumberedList<std::index_sequence_for<Ops...>, OpList<Ops...>>;

}  // namespace detail

template <OpName Name>
const ir::OpDef& record() {
  using List = decltype(detail::numbered(All{}));
  using Found =
      decltype(List::template at<detail::number_of(All{}, Name.view())>(static_cast<List*>(nullptr)));
  return ir::def<typename Found::Type>();
}

/// Both functions that give the record of an operator.
struct RecordOf {
  const ir::OpDef& (*by_type)();
  const ir::OpDef& (*by_name)();
};

/// All of them. Their addresses are taken here, so a source that calls this defines them for every other.
template <class... Ops>
std::array<RecordOf, sizeof...(Ops)> all_records(OpList<Ops...>) {
  return {RecordOf{&ir::def<Ops>, &record<OpName<Ops::name.size() + 1>(Ops::name)>}...};
}

}  // namespace rlx::ops
