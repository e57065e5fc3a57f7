// The run-time part of sources written by `rlx build` (docs/design/020): a source says where everything lies and which kernel runs each
// step, and the program prepares the steps and runs. No graph is planned, parsed or interpreted; bodies of loops and branches are planned
// with the kernels that the source names.
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "rlx/backend/assembly.h"
#include "rlx/ops/record.h"

namespace rlx::backend::built {

/// Attributes of an operator by their names, over its defaults: `Call(record<"softmax">()).set("axis", 1)`.
class Call {
 public:
  explicit Call(const ir::OpDef& op) : op_(&op), attrs_(op.copy_attrs(nullptr)) {}

  Call& set(std::string_view name, ir::AttrValue value);
  // What a value stands for follows from the kind of the field: a string or a choice, a number or an extent.
  Call& set(std::string_view name, const char* text);
  Call& set(std::string_view name, bool value) { return set(name, ir::AttrValue(value)); }
  Call& set(std::string_view name, int value) { return set(name, int64_t(value)); }
  Call& set(std::string_view name, int64_t value);
  Call& set(std::string_view name, double value) { return set(name, ir::AttrValue(value)); }
  Call& set_integers(std::string_view name, std::initializer_list<int64_t> values);
  Call& set_reals(std::string_view name, std::initializer_list<double> values);

  const ir::OpDef& op() const { return *op_; }
  ir::AttrsRef attrs() const { return attrs_; }

 private:
  const ir::FieldInfo& field(std::string_view name) const;
  const ir::OpDef* op_;
  std::shared_ptr<void> attrs_;
};

Shape shape_of(DType, std::initializer_list<int64_t> sizes);
/// Numbers that are converted without loss.
Literal reals(DType, std::initializer_list<int64_t> sizes, std::initializer_list<double>);
Literal integers(DType, std::initializer_list<int64_t> sizes, std::initializer_list<int64_t>);
/// What lies in the data of the program.
Literal data(DType, std::initializer_list<int64_t> sizes, const std::byte*);

/// A graph that a node holds: a fused region, the body of a loop.
class Body {
 public:
  explicit Body(std::string name) : graph_(std::move(name)) {}
  ir::Value input(const char* name, DType, std::initializer_list<int64_t> sizes);
  ir::Value param(const char* name, DType, std::initializer_list<int64_t> sizes);
  ir::Value add(const Call&, std::initializer_list<ir::Value> inputs, const char* name = "");
  ir::Value constant(Literal);
  ir::GraphRef done(std::initializer_list<ir::Value> outputs);

 private:
  ir::Graph graph_;
};

/// Result i of the node that made a value.
inline ir::Value result(ir::Value v, int i) { return {v.node, uint16_t(i), v.tag}; }

/// Row by row from byte `offset` of a buffer.
Plan::Place at(int buffer, DType, std::initializer_list<int64_t> sizes, int64_t offset = 0);
Plan::Place strided(int buffer, DType, std::initializer_list<int64_t> sizes,
                    std::initializer_list<int64_t> strides, int64_t offset = 0);

/// Forms of weights, made once for all objects of a program.
class FormCache {
 public:
  std::shared_ptr<const void> find_or_make(const std::byte* data, const std::string& form,
                                           const std::function<std::shared_ptr<const void>()>& make);

 private:
  std::mutex mutex_;
  std::map<std::pair<const std::byte*, std::string>, std::weak_ptr<const void>> forms_;
};

/// One object of a program; for one thread at a time.
class Program : private Assembly {
 public:
  /// `threads`: at most all that the process may use; 0: all. The backend and the cache live as long as the program.
  Program(const char* name, const Backend&, FormCache&, int threads, int64_t arena_bytes);

  // Buffers, each with its number in the plan.
  void input(int number, const char* name, int64_t bytes);
  void weight(int number, const char* name, int64_t bytes, const std::byte* data);
  /// The weight as a step reads it, made when the source was. Another one is made of the weight itself.
  void form(int weight, const char* form, std::span<const std::byte> bytes);
  void output(int number, const char* name, int64_t bytes, int output);
  void constant(int number, const char* name, Literal);
  void activation(int number, const char* name, int64_t bytes, int64_t offset);
  void workspace(int number, int64_t bytes, int64_t offset);

  using Places = std::initializer_list<Plan::Place>;
  /// The kernel of that name for the node; `workspace`: its buffer, or -1.
  void step(const char* name, const char* kernel, const Call&, Places in, Places out, int workspace = -1,
            const char* origin = "");
  void copy(const Plan::Place& from, const Plan::Place& to);
  /// Behind the last step.
  void finish();

  /// Dense tensors, in the order in which inputs were added and by the numbers of the outputs. A missing one, an output that lies in another or in an input, sizes, where
  /// they are told, that are not those of the plan, and a run while another thread has one, are user errors.
  void run(const void* const* inputs, void* const* outputs, const size_t* input_bytes = nullptr,
           const size_t* output_bytes = nullptr);

  const Executable& executable() const { return *out_; }

 private:
  struct Weight {
    const std::byte* data;
    std::map<std::string, std::span<const std::byte>> forms;
  };
  void check_number(int number) const;
  void check_in_place(const Plan::Step&, const Step&) const;
  int workspace_for(const Step&, int planned);
  void check_lists(const void* const* inputs, void* const* outputs) const;
  void check_sizes(const std::vector<int>& buffers, const size_t* bytes, const char* what) const;
  void check_memory(const void* const* inputs, void* const* outputs) const;

  FormCache& cache_;
  Team team_;
  int64_t planned_arena_, more_arena_ = 0;
  std::vector<Weight> weights_;        // by leaf; no data: an input
  std::vector<int> inputs_, outputs_;  // their buffers
  std::vector<std::shared_ptr<const void>> forms_;
  std::vector<const void*> packed_;
  std::vector<std::byte*> leaves_, results_;
  Block arena_;
  std::atomic_flag running_;
};

}  // namespace rlx::backend::built
