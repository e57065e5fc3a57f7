// Loops and branches whose bodies are functions of tensors.
//
//   const Tensor end = scan(x0, {.length = 100}, [&](Tensor x) { return x - rate * x * 0.01; });
//   const Tensors r = scan({h, c}, {.xs = {x}}, [](Tensor h, Tensor c, Tensor x) { ... return Tensors{h, c, y}; });
//   const Tensor root = while_loop(a, {.max_iterations = 40}, [&](Tensor x) { return (x * x - a).abs() > 1e-9; },
//                                  [&](Tensor x) { return (x + a / x) * 0.5; });
//   const Tensor y = if_else(sum > 0, [&] { return x; }, [&] { return x.exp(); });
//
// A body takes its tensors one by one, or as one list (const Tensors&); before them it may take a Tracer& for
// constants. Tensors of the graph around it may be used inside: they become operands of the loop or branch.
#pragma once

#include <concepts>
#include <functional>
#include <optional>

#include "rlx/lang/body.h"
#include "rlx/lang/trace.h"
#include "rlx/lang/traced_result.h"
#include "rlx/ops/table.h"

namespace rlx {

/// What a scan has besides its initial carries and its body.
struct ScanOptions {
  Tensors consts = {};             // the same in every step
  Tensors xs = {};                 // [length, ...]: step t sees slice t
  std::optional<Dim> length = {};  // number of steps; may be left out where there are xs
  bool reverse = false;            // from the last slice to the first
  int64_t checkpoints = 0;  // carries that reverse mode keeps, running each segment again; 0: every step
};

/// What a while loop has besides its initial carries and its bodies.
struct WhileOptions {
  Tensors consts = {};                         // the same in every step
  std::optional<int64_t> max_iterations = {};  // most steps; reverse mode needs a bound
};

namespace detail {

using BodyFunction = std::function<Tensors(BodyScope&, const Tensors&)>;

Tensors build_scan(const Tensors& init, const ScanOptions&, const BodyFunction& body, const Loc&);
Tensors build_while(const Tensors& init, const WhileOptions&, const BodyFunction& cond,
                    const BodyFunction& body, const Loc&);
Tensors build_if(const Tensor& predicate, const Tensors& captures, const BodyFunction& then_body,
                 const BodyFunction& else_body, const Loc&);
[[noreturn]] void wrong_arity(const BodyScope&, int takes, size_t given);

inline constexpr int kMostArguments = 16, kTakesList = -1, kNoBody = -2;

template <class Fn, class... Before>
consteval int arity_of() {
  if (std::invocable<Fn&, Before..., const Tensors&>) return kTakesList;
  int found = kNoBody;
  [&]<size_t... n>(std::index_sequence<n...>) {
    const auto takes = []<size_t... i>(std::index_sequence<i...>) {
      return std::invocable<Fn&, Before..., std::conditional_t<(i >= 0), const Tensor&, void>...>;
    };
    ((found == kNoBody && takes(std::make_index_sequence<n>()) ? void(found = int(n)) : void()), ...);
  }(std::make_index_sequence<kMostArguments + 1>());
  return found;
}

template <int kArity, class Call>
decltype(auto) spread(const Call& call, const Tensors& args) {
  if constexpr (kArity == kTakesList) {
    return call(args);
  } else {
    return [&]<size_t... i>(std::index_sequence<i...>) -> decltype(auto) {
      return call(args[i]...);
    }(std::make_index_sequence<size_t(kArity)>());
  }
}

/// Runs a body on its arguments, with or without a tracer, after checking that it takes that many.
template <class Fn>
decltype(auto) call_body(BodyScope& scope, Fn& fn, const Tensors& args) {
  constexpr int kPlain = arity_of<Fn>(), kTraced = arity_of<Fn, Tracer&>();
  constexpr int kArity = kPlain != kNoBody ? kPlain : kTraced;
  static_assert(
      kArity != kNoBody,
      "the body must take its tensors one by one (Tensor a, Tensor b) or as one list (const Tensors&), "
      "after a Tracer& if it likes");
  if (kArity >= 0 && size_t(kArity) != args.size()) wrong_arity(scope, kArity, args.size());
  if constexpr (kPlain != kNoBody) {
    return spread<kArity>([&](const auto&... a) -> decltype(auto) { return fn(a...); }, args);
  } else {
    Tracer tracer(scope.graph());
    return spread<kArity>([&](const auto&... a) -> decltype(auto) { return fn(tracer, a...); }, args);
  }
}

template <class Fn>
using BodyResult =
    std::remove_cvref_t<decltype(call_body(std::declval<BodyScope&>(), std::declval<Fn&>(), Tensors()))>;

template <class Fn>
BodyFunction body_function(Fn& fn) {
  static_assert(TracedResult<BodyResult<Fn>>,
                "the body must return a Tensor or several of them (a list, array, pair or tuple)");
  return [&fn](BodyScope& scope, const Tensors& args) {
    NamedTensors named;
    collect(scope.graph(), call_body(scope, fn, args), named);
    Tensors out;
    for (const auto& [name, tensor] : named) out.push_back(tensor);
    return out;
  };
}

template <class Fn>
concept ReturnsOneTensor = OneTensor<BodyResult<Fn>>;

}  // namespace detail

/// A loop of known length. The body maps carries, constants and slices, in this order, to the next carries and
/// then to what the step puts out. Returned are the final carries, then the outputs of all steps, [length, ...];
/// one tensor where there is one carry and the body returns one tensor.
template <class Body>
Tensors scan(const Tensors& init, const ScanOptions& options, Body&& body, const Loc& loc = Loc::current()) {
  return detail::build_scan(init, options, detail::body_function(body), loc);
}
template <class Body>
auto scan(const Tensor& init, const ScanOptions& options, Body&& body, const Loc& loc = Loc::current()) {
  Tensors results = detail::build_scan({init}, options, detail::body_function(body), loc);
  if constexpr (detail::ReturnsOneTensor<Body>) {
    return results.at(0);
  } else {
    return results;
  }
}

/// A loop that runs while all elements of cond(carries, constants) are not 0; the body maps both to the next
/// carries. Returned are the final carries.
template <class Cond, class Body>
Tensors while_loop(const Tensors& init, const WhileOptions& options, Cond&& cond, Body&& body,
                   const Loc& loc = Loc::current()) {
  return detail::build_while(init, options, detail::body_function(cond), detail::body_function(body), loc);
}
template <class Cond, class Body>
Tensor while_loop(const Tensor& init, const WhileOptions& options, Cond&& cond, Body&& body,
                  const Loc& loc = Loc::current()) {
  return while_loop(Tensors{init}, options, cond, body, loc).at(0);
}

/// One of two bodies, chosen by a scalar; only the one taken runs. Both take `captures` and return equal types;
/// one tensor where both return one.
template <class Then, class Else>
auto if_else(const Tensor& predicate, const Tensors& captures, Then&& then_body, Else&& else_body,
             const Loc& loc = Loc::current()) {
  Tensors results = detail::build_if(predicate, captures, detail::body_function(then_body),
                                     detail::body_function(else_body), loc);
  if constexpr (detail::ReturnsOneTensor<Then> && detail::ReturnsOneTensor<Else>) {
    return results.at(0);
  } else {
    return results;
  }
}
template <class Then, class Else>
auto if_else(const Tensor& predicate, Then&& then_body, Else&& else_body, const Loc& loc = Loc::current()) {
  return if_else(predicate, Tensors{}, then_body, else_body, loc);
}

/// Any operator of a table by name, a program's own among them (rlx/ops/control/custom_op.h). `attrs` is written as
/// in a graph text: "k=2, axis=1".
Tensors custom_op(std::string_view name, std::string_view attrs, const Tensors& operands,
                  const ir::OpTable& ops = ops::table(), const Loc& loc = Loc::current());

}  // namespace rlx
