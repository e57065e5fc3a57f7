// What a machine can run, as the passes see it.
#pragma once

#include <span>
#include <string>

#include "rlx/ir/layout.h"

namespace rlx::ir {

struct Node;

/// Yes, or no with the reason.
class Support {
 public:
  static Support yes() { return Support(true, {}); }
  template <class... Args>
  static Support no(const Args&... args) {
    return Support(false, cat(args...));
  }
  explicit operator bool() const { return yes_; }
  const std::string& reason() const { return reason_; }

 private:
  Support(bool yes, std::string reason) : yes_(yes), reason_(std::move(reason)) {}
  bool yes_;
  std::string reason_;
};

class Target {
 public:
  virtual ~Target() = default;
  virtual std::string_view name() const = 0;
  /// Whether a kernel runs this node on operands of these static types, operands and results lying so. The reason
  /// of a no names every kernel that declined.
  virtual Support accepts(const Node&, std::span<const Shape> types, std::span<const Layout> in,
                          std::span<const Layout> out) const = 0;
};

}  // namespace rlx::ir
