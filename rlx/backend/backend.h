// A machine that runs graphs: its kernels and its memory.
#pragma once

#include <unordered_map>

#include "rlx/backend/kernel.h"
#include "rlx/backend/memory.h"
#include "rlx/ir/op_record.h"

namespace rlx::backend {

/// Kernels by operator. Families add theirs when a backend is made.
class KernelTable {
 public:
  template <class Op>
  void add(Kernel kernel) {
    kernels_[&ir::def<Op>()].push_back(kernel);
  }
  /// Kernels that look at a node rather than at its operator; asked after the operator's own.
  void add_general(Kernel kernel) { general_.push_back(kernel); }
  /// Asked when nothing else accepts, decompositions included.
  void add_last_resort(Kernel kernel) { last_resort_.push_back(kernel); }

  const Kernels& of(const ir::OpDef&) const;
  const Kernels& general() const { return general_; }
  const Kernels& last_resort() const { return last_resort_; }

 private:
  std::unordered_map<const ir::OpDef*, Kernels> kernels_;
  Kernels general_, last_resort_;
};

struct Declined {
  std::string_view kernel;
  std::string reason;
};

/// The kernel that runs a request, and what was asked before it.
struct Choice {
  const Kernel* kernel = nullptr;  // null: none accepts
  std::vector<Declined> declined;
};

class Backend : public ir::Target {
 public:
  /// What it is, for people: "2 threads, avx512".
  virtual std::string description() const { return {}; }
  const KernelTable& kernels() const { return kernels_; }
  /// The first kernel that accepts: those of the operator, the general ones and, if asked for, the last resort.
  Choice choose(const Request&, bool last_resort) const;
  Support accepts(const ir::Node&, std::span<const Shape> types, std::span<const Layout> in,
                  std::span<const Layout> out) const override;

  /// The step of a kernel that accepted the request.
  virtual std::unique_ptr<Step> prepare(const Kernel& kernel, const Request& r) const {
    return kernel.prepare(r);
  }
  /// Copies a value between places of one type.
  virtual std::unique_ptr<Step> prepare_copy(const Arg& from, const Arg& to, int threads) const = 0;

  /// Where operands and results of steps lie.
  virtual const Memory& memory() const { return host_memory(); }
  virtual std::unique_ptr<Queue> make_queue() const { return make_host_queue(); }

 protected:
  KernelTable kernels_;
};

}  // namespace rlx::backend
