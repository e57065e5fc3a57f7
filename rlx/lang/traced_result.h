// What a traced function or a body may return: a tensor, several, or several with names.
#pragma once

#include <concepts>
#include <ranges>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "rlx/lang/tensor.h"

namespace rlx {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

namespace detail {

template <class T>
concept OneTensor = std::convertible_to<T, Tensor> || std::convertible_to<T, Value>;

template <class T>
concept TupleLike = requires { std::tuple_size<std::remove_cvref_t<T>>::value; };

template <class T>
concept NamedTensor = TupleLike<T> && requires(const std::remove_cvref_t<T>& t) {
  { t.first } -> std::convertible_to<std::string>;
  requires OneTensor<decltype(t.second)>;
};

template <class T>
consteval bool holds_tensors() {
  using R = std::remove_cvref_t<T>;
  if constexpr (OneTensor<R> || NamedTensor<R>) {
    return true;
  } else if constexpr (std::ranges::range<R>) {
    return !std::same_as<R, std::ranges::range_value_t<R>> && holds_tensors<std::ranges::range_value_t<R>>();
  } else if constexpr (TupleLike<R>) {
    return []<size_t... i>(std::index_sequence<i...>) {
      return (holds_tensors<std::tuple_element_t<i, R>>() && ...);
    }(std::make_index_sequence<std::tuple_size_v<R>>());
  } else {
    return false;
  }
}

/// Appends the tensors of a result in order; `g` is the graph of plain values.
template <class R>
void collect(ir::Graph& g, const R& result, NamedTensors& out) {
  if constexpr (std::convertible_to<R, Tensor>) {
    out.emplace_back("", result);
  } else if constexpr (std::convertible_to<R, Value>) {
    out.emplace_back("", ir::Expr{&g, Value(result)});
  } else if constexpr (NamedTensor<R>) {
    collect(g, result.second, out);
    out.back().first = result.first;
  } else if constexpr (std::ranges::range<R>) {
    for (const auto& each : result) collect(g, each, out);
  } else {
    std::apply([&](const auto&... each) { (collect(g, each, out), ...); }, result);
  }
}

}  // namespace detail

/// A tensor, a list, array, pair or tuple of them, or names with tensors.
template <class T>
concept TracedResult = detail::holds_tensors<T>();

}  // namespace rlx
