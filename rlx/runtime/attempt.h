// A value, or the error why there is none: for callers that do not want exceptions.
#pragma once

#include <optional>
#include <utility>

#include "rlx/base/error.h"

namespace rlx {

template <class T>
class Attempt {
 public:
  Attempt(T value) : value_(std::move(value)) {}      // NOLINT: implicit on purpose
  Attempt(Error error) : error_(std::move(error)) {}  // NOLINT

  explicit operator bool() const { return value_.has_value(); }
  /// Throws the error when there is no value.
  T& value() {
    if (!value_) throw *error_;
    return *value_;
  }
  /// As value().
  T* operator->() { return &value(); }
  /// Null when there is a value.
  const Error* error() const { return error_ ? &*error_ : nullptr; }

 private:
  std::optional<T> value_;
  std::optional<Error> error_;
};

/// What `action` returns, or the error it throws. Errors of kind internal are bugs of ours and are not caught.
template <class Action>
auto attempt(Action action) -> Attempt<decltype(action())> {
  try {
    return action();
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::internal) throw;
    return e;
  }
}

}  // namespace rlx
