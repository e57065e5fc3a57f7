// What a backend may offer beside its kernels: steps that are done in the fastest of several ways.
#pragma once

#include <functional>
#include <memory>

namespace rlx::backend {

class Executable;

/// A backend that is also this makes every program by itself.
class Choosing {
 public:
  using Make = std::function<std::shared_ptr<const Executable>()>;

  virtual ~Choosing() = default;
  /// What `make` makes, with every choice made. Where some need a measurement it is called twice: first to learn what all of them need, then
  /// to measure.
  virtual std::shared_ptr<const Executable> with_choices(const Make& make) const = 0;
};

}  // namespace rlx::backend
