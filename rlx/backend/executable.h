// A program that is ready to run: prepared steps and the addresses they work on.
#pragma once

#include "rlx/backend/plan.h"

namespace rlx {
class PoolWatch;
}

namespace rlx::backend {

/// A step runs one of its bodies: those of Plan::Step::bodies in their order.
struct BodyRun {
  int body = 0;
  int64_t round = -1;  // of a loop, from 0 in the order they run; -1: no loop
  int64_t row = 0,
          rows = 0;  // of a loop that is cut by rows: those of this part; rows is 0 where it is not cut
};

/// Called around every step of a run, for profiles and checks, by the thread that runs it. Where the steps of bodies are wanted, calls nest:
/// before(scan), enter({.round = 0}), before(log), after(log), leave(), enter({.round = 1}), .., after(scan).
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void before(const Plan::Step&, const Launch&) {}
  virtual void after(const Plan::Step&, const Launch&) {}
  /// Before `after`, where the device has a clock of its own: what the step took by it.
  virtual void took(double /*seconds*/) {}
  /// A body of the step that began last is about to run; false: its steps are not wanted this time.
  virtual bool enter(const BodyRun&) { return false; }
  /// Of a body whose steps were wanted, also when one of them failed.
  virtual void leave() {}
  /// Whether loops run so that every step is seen: one part after the other where threads share the rows, step by step where the whole
  /// loop is one kernel of the host. Slower, with the same bits.
  virtual bool wants_every_step() const { return false; }
  /// Told of the work of threads while a step runs; null for none.
  virtual PoolWatch* pool_watch() { return nullptr; }
};

/// The memory of one run. Leaves and outputs are in the graph's order; a leaf that nobody reads, or that is only read
/// packed, may be null.
struct Frame {
  Team team;
  std::byte* const* leaves = nullptr;
  std::byte* const* outputs = nullptr;
  std::byte* arena = nullptr;           // Executable::arena_bytes(), 64-byte alignment
  const void* const* packed = nullptr;  // in the order of Executable::packings()
  void* stream = nullptr;
  Observer* observer = nullptr;
  /// Asked before every step, in bodies of loops too; a stop is a user error. Null: none.
  const std::stop_token* stop = nullptr;
  /// Room on the host for Executable::addresses() addresses; null: behind the arena, which then is memory of the host.
  std::byte** addresses = nullptr;
};

/// Immutable: any number of threads may run it, each with a frame of its own. A run allocates nothing.
class Executable {
 public:
  /// A weight in a form that a step asked for.
  struct WeightForm {
    int leaf = 0;
    Packing packing;  // `make` takes the address of the leaf
  };

  const Plan& plan() const { return plan_; }
  size_t arena_bytes() const { return arena_bytes_; }
  std::span<const WeightForm> packings() const { return weight_forms_; }
  /// Whether some step reads this leaf at its address.
  bool reads_leaf(size_t i) const { return reads_leaf_[i]; }
  /// The most addresses that a step is given.
  size_t addresses() const { return addresses_; }
  size_t leaves() const { return reads_leaf_.size(); }
  size_t outputs() const { return outputs_; }
  /// Tells it from every other program of the process.
  uint64_t number() const { return number_; }
  /// Whether some step needs the host while it runs.
  bool needs_host() const { return needs_host_; }
  void run(const Frame&) const;

 private:
  friend class Assembly;
  struct Address {
    BufferKind kind;
    int index;
    int64_t offset;
  };
  struct Bound {
    std::unique_ptr<Step> step;
    std::vector<Address> in, out;
    int64_t workspace = 0;   // offset in the arena
    std::vector<int> forms;  // per packing: of weight_forms_, or -1 - i for constant_forms_[i]
  };

  std::byte* resolve(const Frame&, const Address&) const;
  std::byte* constant(int index) const;

  Plan plan_;
  std::vector<Bound> steps_;
  std::vector<Literal> constants_;
  std::vector<Block> constant_blocks_;  // their copies in the memory of the backend, where that is another
  std::vector<WeightForm> weight_forms_;
  std::vector<std::shared_ptr<const void>> constant_forms_;
  std::vector<bool> reads_leaf_;
  size_t arena_bytes_ = 0;
  int64_t scratch_ = 0;  // offset of the addresses of one step, behind the planned part of the arena
  size_t addresses_ = 0, outputs_ = 0;
  uint64_t number_ = 0;
  bool needs_host_ = false;
};

}  // namespace rlx::backend
