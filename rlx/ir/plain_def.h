// What every record of an operator holds, filled from its struct: name, attributes, types, places. rlx/ir/build_def.h adds the rules; the
// records of programs made by `rlx build` have no more than this.
#pragma once

#include "rlx/ir/op_record.h"

namespace rlx::ir {

namespace detail {

/// An empty record, filled. Nothing of its making stands in the functions of the records.
OpDef filled(void (*fill)(OpDef&));
void set_names(OpDef&, std::string_view operands, std::string_view results);

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
std::vector<std::string_view> choices_of() {
  if constexpr (is_optional<T>) {
    return choices_of<typename T::value_type>();
  } else if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>) {
    const auto names = choice_names(T{});
    return {names.begin(), names.end()};
  } else {
    return {};
  }
}

/// A field of type T that lies `offset` bytes behind the beginning of its struct: one function for all structs.
template <class T>
void add_field(std::vector<FieldInfo>& out, std::string_view name, std::string_view doc, const void* defaults,
               ptrdiff_t offset) {
  const auto get = [offset](const void* attrs) {
    return AttrTraits<T>::to(*reinterpret_cast<const T*>(static_cast<const char*>(attrs) + offset));
  };
  const auto set = [offset](void* attrs, const AttrValue& v) {
    *reinterpret_cast<T*>(static_cast<char*>(attrs) + offset) = AttrTraits<T>::from(v);
  };
  out.push_back({name, doc, AttrTraits<T>::kind, is_optional<T>, choices_of<T>(), get(defaults), get, set});
}

}  // namespace detail

template <class Attrs>
std::vector<FieldInfo> describe_fields() {
  std::vector<FieldInfo> out;
  const Attrs defaults{};
  const auto start = reinterpret_cast<const char*>(&defaults);
  std::apply(
      [&]<class... Ts>(const Field<Attrs, Ts>&... fields) {
        (detail::add_field<Ts>(out, fields.name, fields.doc, start,
                               reinterpret_cast<const char*>(&(defaults.*(fields.member))) - start),
         ...);
      },
      Attrs::fields());
  return out;
}

template <OpRecord Op>
void fill_plain_def(OpDef& d) {
  using Attrs = typename Op::Attrs;
  d.name = Op::name;
  std::string_view results = "y";
  if constexpr (requires { Op::results; }) results = Op::results;
  detail::set_names(d, Op::operands, results);
  if constexpr (requires { Op::traits; }) d.traits = Op::traits;
  d.fields = describe_fields<Attrs>();
  d.copy_attrs = [](const void* a) -> std::shared_ptr<void> {
    return a ? std::make_shared<Attrs>(*static_cast<const Attrs*>(a)) : std::make_shared<Attrs>();
  };
  d.infer = [](Infer& c, void* a) { return Op::infer(c, *static_cast<Attrs*>(a)); };
  if constexpr (requires { &Op::view; }) {
    d.view = [](const View& c, const void* a) { return Op::view(c, *static_cast<const Attrs*>(a)); };
  }
  if constexpr (requires { &Op::operations; }) {
    d.operations = [](std::span<const Shape> in, std::span<const Shape> out, const void* a) {
      return Op::operations(in, out, *static_cast<const Attrs*>(a));
    };
  }
}

}  // namespace rlx::ir
