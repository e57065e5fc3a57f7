// The one exception type, and who is to blame for it.
//
// Message grammar: `where: what is wrong, with the values; what would be right[; what to do]`.
// It starts lower-case and has no final period.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

#include "rlx/base/text.h"

namespace rlx {

/// Who is to blame.
enum class ErrorKind {
  user,         // the call, model or file is wrong
  internal,     // our bug
  environment,  // the machine said no: out of memory, file not found, no device
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) { compose(); }

  const char* what() const noexcept override { return full_.c_str(); }
  /// Who is to blame.
  ErrorKind kind() const { return kind_; }

  /// The message alone, without node and origin.
  const std::string& message() const { return message_; }
  /// The node the error is about, as `%7` or its name; empty when there is none.
  const std::string& node() const { return node_; }
  /// Where the user made it: `file:line` of their code, or line:column of a text.
  const std::string& origin() const { return origin_; }

  // For those that an error passes through: they know more about the place than who threw it.
  void set_message(std::string message) { message_ = std::move(message), compose(); }
  void set_node(std::string node) { node_ = std::move(node), compose(); }
  void set_origin(std::string origin) { origin_ = std::move(origin), compose(); }

 private:
  void compose();

  ErrorKind kind_;
  std::string message_, node_, origin_, full_;
};

/// A declared shape differs from the inferred one.
class ShapeError : public Error {
 public:
  explicit ShapeError(std::string message) : Error(ErrorKind::user, std::move(message)) {}
};

/// A user error of these parts: `throw invalid("cumsum: axis ", axis, ..)`.
template <class... Args>
[[nodiscard]] Error invalid(const Args&... args) {
  return Error(ErrorKind::user, cat(args...));
}

/// As invalid, for what the machine refused.
template <class... Args>
[[nodiscard]] Error environment_error(const Args&... args) {
  return Error(ErrorKind::environment, cat(args...));
}

namespace detail {
[[noreturn]] void check_failed(const char* condition, const std::string& message, std::source_location where);
}

}  // namespace rlx

/// Internal invariant, checked in every build: RLX_CHECK(a == b, "sizes ", a, " and ", b).
#define RLX_CHECK(condition, ...)                                                                        \
  do {                                                                                                   \
    if (!(condition)) [[unlikely]]                                                                       \
      ::rlx::detail::check_failed(#condition, ::rlx::cat(__VA_ARGS__), std::source_location::current()); \
  } while (false)

/// As RLX_CHECK, for hot loops: gone in release builds.
#ifdef NDEBUG
#define RLX_DCHECK(condition, ...) \
  do {                             \
  } while (false)
#else
#define RLX_DCHECK(condition, ...) RLX_CHECK(condition, __VA_ARGS__)
#endif
