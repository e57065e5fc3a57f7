// Graphs on tensors of other libraries, where these lie: DLPack, on the host or on a GPU, without copies.
//
//   DeviceCall f(graph, weights, {.device = "cuda"});
//   std::vector<DlTensorOwner> y = f.run({{"x", tensor}});
//   give(y[0].release());                         // a DLManagedTensor, which its taker deletes
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rlx/ir/interpreter.h"
#include "rlx/runtime/options.h"

namespace rlx {

namespace runtime {
class Core;
}
namespace backend {
class Queue;
class Block;
}  // namespace backend

// As dlpack.h of version 0.8 lays them out (DLDevice, DLDataType, DLTensor, DLManagedTensor).
/// The memory that a tensor lies in.
struct DlDevice {
  int32_t type, id;  // type 1: the host, 2: CUDA
};
/// What an element is.
struct DlType {
  uint8_t code, bits;  // code 0: int, 1: uint, 2: float, 4: bfloat, 5: complex, 6: bool
  uint16_t lanes;
};
/// Where a tensor lies.
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t rank;
  DlType type;
  int64_t* dims;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};
/// A tensor with what frees it.
struct DlManagedTensor {
  DlTensor tensor;
  void* manager;
  /// Called once by whoever took the tensor; null: nothing to free.
  void (*deleter)(DlManagedTensor*);
};

/// Frees a tensor that somebody holds.
struct DlDeleter {
  /// Calls the tensor's own deleter.
  void operator()(DlManagedTensor* t) const {
    if (t && t->deleter) t->deleter(t);
  }
};
using DlTensorOwner = std::unique_ptr<DlManagedTensor, DlDeleter>;

/// The type of a tensor; a user error where there is none for its elements.
Shape shape_of(const DlTensor&);
/// A copy on a device of rlx/runtime/devices.h.
DlTensorOwner on_device(const Literal&, std::string_view device);
/// A copy on the host, once what the default stream of the tensor's device was asked for is done. The tensor is dense and row-major.
Literal on_host(const DlTensor&);
/// Waits for that stream alone.
void wait_for(const DlTensor&);

/// A tensor for an input, by name.
struct DlInput {
  std::string_view name;
  const DlTensor& value;
};

/// A compiled graph whose operands and results stay on its device. For one thread at a time. What made an operand must be done before
/// the call; results are there when it returns.
class DeviceCall {
 public:
  /// States are a user error: they are for CompiledGraph.
  DeviceCall(const ir::Graph& graph, const ir::NamedLiterals& weights = {},
             const CompileOptions& options = {});
  ~DeviceCall();
  DeviceCall(DeviceCall&&) noexcept;

  /// In the order of the graph's outputs; each lives until it is deleted, also behind this object. Tensors must lie on the device, dense and
  /// row-major; all that is wrong is told in one error.
  std::vector<DlTensorOwner> run(std::span<const DlInput> inputs);
  std::vector<DlTensorOwner> run(std::initializer_list<DlInput> inputs) {
    return run(std::span(inputs.begin(), inputs.size()));
  }

 private:
  std::shared_ptr<runtime::Core> core_;
  std::unique_ptr<backend::Queue> queue_;
  std::unique_ptr<backend::Block> arena_;
};

}  // namespace rlx
