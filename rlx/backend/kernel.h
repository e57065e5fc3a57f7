// What a backend offers: kernels, which accept or decline a node and prepare a step that runs it.
//
// A kernel sees a request: a node with static types, where its operands and results will lie, and what is known of them. It
// prepares a step once; the step owns what was planned (splits, packed forms, programs) and is immutable, so that many
// threads may run it at once, each with a launch of its own.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "rlx/base/pool.h"
#include "rlx/ir/graph.h"
#include "rlx/ir/target.h"

namespace rlx::backend {

using ir::Layout;
using ir::Support;

class Builder;
class Observer;
struct Plan;

/// An operand or a result of a node.
struct Arg {
  Shape shape;    // static
  Layout layout;  // its offset is part of the address that a launch gives
  /// The same in every run: a weight, or a constant of the graph.
  bool fixed = false;
  /// The contents where they are known at build time.
  const Literal* constant = nullptr;

  bool is_row_major() const { return layout.is_row_major(shape.dims()); }
  DType dtype() const { return shape.dtype(); }
};

struct Request {
  const ir::Node& node;
  std::span<const Arg> in, out;
  int threads = 1;
  /// Builds the bodies of control flow.
  const Builder* builder = nullptr;
};

/// A fixed operand that a step reads in a form of its own. It is made once for each weight and form, when the weight is
/// known, and shared by every step that asks for the same; the step then does not get the operand's address.
struct Packing {
  int operand = 0;
  std::string form;  // tells forms apart: level, dtype, sizes
  std::function<std::shared_ptr<const void>(Team, const std::byte* data)> make;
  int64_t bytes = 0;  // what it keeps
  /// The bytes of a form, and the form from such bytes, so that a file can keep it; both or none. What has one name has one
  /// layout of bytes: `form` then names that, too.
  std::function<std::span<const std::byte>(const void* form)> bytes_of;
  std::function<std::shared_ptr<const void>(Team, std::span<const std::byte>)> restore;
};

/// Addresses for one run of a step. An operand that the step packs has no address.
struct Launch {
  Team team;
  std::byte* const* in = nullptr;
  std::byte* const* out = nullptr;
  std::byte* workspace = nullptr;         // 64-byte alignment
  const void* const* packed = nullptr;    // in the order of the step's packings
  void* stream = nullptr;                 // where a device queues its work; null on the host
  const std::stop_token* stop = nullptr;  // of the run; steps with bodies hand it on
  Observer* observer = nullptr;           // so do they with this; null where nobody looks
};

/// A result that may take the place of an operand of its type and layout, when nobody reads that operand afterwards.
struct InPlace {
  InPlace(int operand_number, int result_number = 0)  // NOLINT: most steps have one result
      : operand(operand_number), result(result_number) {}
  int operand, result;
};

using SourceText = std::shared_ptr<const std::string>;

class Step {
 public:
  virtual ~Step() = default;
  virtual void run(const Launch&) const = 0;
  /// Plans of the bodies that it runs.
  virtual std::vector<Plan> bodies() const;

  size_t workspace = 0;  // bytes of scratch memory
  std::vector<Packing> packings;
  std::vector<InPlace> in_place;
  std::string note;  // how it will run, for the report: "6x16 tiles, packed weights"
  /// The host takes part while it runs, so that a device cannot record it and repeat it alone.
  bool needs_host = false;
  /// The reference rule of the operator computes it, on the host.
  bool by_rule = false;
  std::vector<SourceText> sources;  // of the kernels it launches, on a device that compiles them
};

/// A step made of a function; most kernels need no more.
template <class Run>
std::unique_ptr<Step> make_step(Run run, size_t workspace = 0, std::vector<Packing> packings = {}) {
  struct Made final : Step {
    explicit Made(Run r) : body(std::move(r)) {}
    void run(const Launch& l) const override { body(l); }
    Run body;
  };
  auto step = std::make_unique<Made>(std::move(run));
  step->workspace = workspace;
  step->packings = std::move(packings);
  return step;
}

struct Kernel {
  std::string_view name;  // <operator>_<how>_<types>
  Support (*accepts)(const Request&);
  std::unique_ptr<Step> (*prepare)(const Request&);  // of an accepted request
};

/// Kernels of one operator, in the order of preference.
using Kernels = std::vector<Kernel>;

}  // namespace rlx::backend
