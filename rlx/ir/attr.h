// Attributes of operators, described once. An operator's Attrs struct lists its fields; that list drives
// printing, parsing, JSON, hashing, equality, binding of symbols and the documents.
//
//   struct Attrs {
//     int axis = -1;
//     static constexpr auto fields() { return std::tuple{field("axis", &Attrs::axis, "axis to sum along")}; }
//   };
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "rlx/base/shape.h"
#include "rlx/ir/literal.h"

namespace rlx::ir {

class Graph;
/// A body: immutable once it is an attribute, so copies of a graph share it.
using GraphRef = std::shared_ptr<const Graph>;

/// What an attribute may be.
enum class AttrKind : uint8_t {
  boolean,
  integer,
  real,
  string,
  choice,
  dtype,
  integers,
  reals,
  dim,
  dims,
  shape,
  literal,
  graph
};

/// Any attribute value; monostate is an absent optional. A choice is its name.
using AttrValue =
    std::variant<std::monostate, bool, int64_t, double, std::string, DType, std::vector<int64_t>,
                 std::vector<double>, Dim, Dims, Shape, Literal, GraphRef>;

/// Deep equality; two NaNs are equal.
bool same_value(const AttrValue&, const AttrValue&);

/// One field of an Attrs struct, with the type erased.
struct FieldInfo {
  std::string_view name, doc;
  AttrKind kind;
  bool optional = false;
  std::vector<std::string_view> choices;  // of kind choice
  AttrValue default_value;
  std::function<AttrValue(const void* attrs)> get;
  std::function<void(void* attrs, const AttrValue&)> set;  // the alternative must fit `kind`
};

using AttrsRef = std::shared_ptr<const void>;

/// A member of an Attrs struct, under its name.
template <class Attrs, class T>
struct Field {
  std::string_view name;
  T Attrs::* member;
  std::string_view doc;
};

/// A line of `fields()`: the name in texts, the member, what it means.
template <class Attrs, class T>
constexpr Field<Attrs, T> field(std::string_view name, T Attrs::* member, std::string_view doc) {
  return {name, member, doc};
}

/// For operators without attributes.
struct NoAttrs {
  static constexpr std::tuple<> fields() { return {}; }
};

/// How a C++ field type is stored in an AttrValue. An enum joins in by a function found by ADL:
/// `constexpr std::array<std::string_view, N> choice_names(E)`, in the order of its enumerators.
template <class T>
struct AttrTraits;

/// The value as int; one beyond 32 bits is a user error.
int narrow_integer(int64_t value);

/// Types that are stored as they are, or as a wider one.
template <class T, AttrKind Kind, class Stored = T>
struct PlainAttr {
  static constexpr AttrKind kind = Kind;
  // There and back.
  static AttrValue to(const T& v) { return Stored(v); }
  static T from(const AttrValue& v) { return T(std::get<Stored>(v)); }
};

template <>
struct AttrTraits<bool> : PlainAttr<bool, AttrKind::boolean> {};
template <>
struct AttrTraits<int> {
  static constexpr AttrKind kind = AttrKind::integer;
  static AttrValue to(int v) { return int64_t(v); }
  static int from(const AttrValue& v) { return narrow_integer(std::get<int64_t>(v)); }
};
template <>
struct AttrTraits<int64_t> : PlainAttr<int64_t, AttrKind::integer> {};
template <>
struct AttrTraits<double> : PlainAttr<double, AttrKind::real> {};
template <>
struct AttrTraits<std::string> : PlainAttr<std::string, AttrKind::string> {};
template <>
struct AttrTraits<DType> : PlainAttr<DType, AttrKind::dtype> {};
template <>
struct AttrTraits<Dim> : PlainAttr<Dim, AttrKind::dim> {};
template <>
struct AttrTraits<Dims> : PlainAttr<Dims, AttrKind::dims> {};
template <>
struct AttrTraits<Shape> : PlainAttr<Shape, AttrKind::shape> {};
template <>
struct AttrTraits<Literal> : PlainAttr<Literal, AttrKind::literal> {};
template <>
struct AttrTraits<GraphRef> : PlainAttr<GraphRef, AttrKind::graph> {};
template <>
struct AttrTraits<std::vector<int64_t>> : PlainAttr<std::vector<int64_t>, AttrKind::integers> {};
template <>
struct AttrTraits<std::vector<double>> : PlainAttr<std::vector<double>, AttrKind::reals> {};

template <>
struct AttrTraits<std::vector<int>> {
  static constexpr AttrKind kind = AttrKind::integers;
  static AttrValue to(const std::vector<int>& v) { return std::vector<int64_t>(v.begin(), v.end()); }
  static std::vector<int> from(const AttrValue& v) {
    std::vector<int> out;
    for (const int64_t wide : std::get<std::vector<int64_t>>(v)) out.push_back(narrow_integer(wide));
    return out;
  }
};

template <class E>
  requires std::is_enum_v<E>
struct AttrTraits<E> {
  static constexpr AttrKind kind = AttrKind::choice;
  static AttrValue to(E v) { return std::string(choice_names(E{})[size_t(v)]); }
  static E from(const AttrValue& v) {
    const auto names = choice_names(E{});
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == std::get<std::string>(v)) return E(i);
    }
    throw invalid("'", std::get<std::string>(v), "' is not a choice; known: ", join(names));
  }
};

template <class T>
struct AttrTraits<std::optional<T>> {
  static constexpr AttrKind kind = AttrTraits<T>::kind;
  static AttrValue to(const std::optional<T>& v) { return v ? AttrTraits<T>::to(*v) : AttrValue{}; }
  static std::optional<T> from(const AttrValue& v) {
    if (std::holds_alternative<std::monostate>(v)) return std::nullopt;
    return AttrTraits<T>::from(v);
  }
};

}  // namespace rlx::ir
