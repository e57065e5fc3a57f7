#include "python/src/device_array.h"

#include <nanobind/stl/string.h>

#include <mutex>

#include "python/src/array.h"
#include "python/src/graph.h"
#include "rlx/base/text.h"
#include "rlx/ir/leaves.h"

namespace rlx::python {
namespace {

constexpr char kFresh[] = "dltensor", kTaken[] = "used_dltensor";

DeviceArray owned(DlTensorOwner t) { return {std::shared_ptr<DlManagedTensor>(t.release(), DlDeleter())}; }

/// The tensor once more, for another owner.
struct Shared {
  DlManagedTensor managed;
  std::shared_ptr<DlManagedTensor> value;
};

// A capsule that nobody took deletes its tensor.
nb::object capsule_of(const DeviceArray& a) {
  auto* shared = new Shared{{a.tensor(), nullptr, nullptr}, a.value};
  shared->managed.manager = shared;
  shared->managed.deleter = [](DlManagedTensor* t) { delete static_cast<Shared*>(t->manager); };
  PyObject* const capsule = PyCapsule_New(&shared->managed, kFresh, [](PyObject* c) {
    if (PyCapsule_IsValid(c, kFresh))
      DlDeleter()(static_cast<DlManagedTensor*>(PyCapsule_GetPointer(c, kFresh)));
  });
  if (capsule == nullptr) {
    delete shared;
    nb::raise_python_error();
  }
  return nb::steal(capsule);
}

/// Where an object with DLPack lies.
DlDevice device_of(nb::handle object) {
  const nb::object device = object.attr("__dlpack_device__")();
  return {nb::cast<int32_t>(device[0]), nb::cast<int32_t>(device[1])};
}

// The tensor of another library, whose work on it is awaited: that library makes the default stream (1) wait for it, and that stream
// is waited for here. What is dropped by any thread takes the lock, for deleters of others may need it.
DeviceArray borrowed(nb::handle object) {
  const nb::object capsule = object.attr("__dlpack__")(nb::arg("stream") = 1);
  auto* const taken = static_cast<DlManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kFresh));
  if (taken == nullptr) nb::raise_python_error();
  PyCapsule_SetName(capsule.ptr(), kTaken);
  DeviceArray out{std::shared_ptr<DlManagedTensor>(taken, [](DlManagedTensor* t) {
    nb::gil_scoped_acquire lock;
    DlDeleter()(t);
  })};
  nb::gil_scoped_release unlocked;
  wait_for(out.tensor());
  return out;
}

/// A compiled graph on tensors of the device, run by one thread at a time.
class DeviceProgram {
 public:
  explicit DeviceProgram(const GraphHandle& g) : call_(*g.graph, {}, {.device = "cuda"}) {
    for (const ir::NodeId id : g.graph->leaves())
      names_.push_back(static_cast<const ir::NamedLeaf*>(g.graph->node(id).attrs.get())->name);
  }

  nb::list run(nb::list arguments) {
    if (arguments.size() != names_.size())
      throw invalid("run: ", arguments.size(), " arguments, the program takes ", names_.size());
    std::vector<DeviceArray> values;
    std::vector<DlInput> inputs;
    for (const nb::handle h : arguments) values.push_back(nb::cast<const DeviceArray&>(h));
    for (size_t i = 0; i < values.size(); ++i) inputs.push_back({names_[i], values[i].tensor()});
    std::vector<DlTensorOwner> results;
    {
      nb::gil_scoped_release unlocked;
      const std::lock_guard lock(mutex_);
      results = call_.run(inputs);
    }
    nb::list out;
    for (DlTensorOwner& t : results) out.append(nb::cast(owned(std::move(t))));
    return out;
  }

 private:
  std::mutex mutex_;
  DeviceCall call_;
  std::vector<std::string> names_;
};

}  // namespace

void bind_device_array(nb::module_& m) {
  nb::class_<DeviceArray>(m, "DeviceArray", nb::dynamic_attr(), "A tensor on a device. Immutable.")
      .def_prop_ro("shape", [](const DeviceArray& a) { return tuple_of(shape_of(a.tensor())); })
      .def_prop_ro("dtype", [](const DeviceArray& a) { return cat(shape_of(a.tensor()).dtype()); })
      .def_prop_ro("ndim", [](const DeviceArray& a) { return int(a.tensor().rank); })
      .def_prop_ro("size", [](const DeviceArray& a) { return shape_of(a.tensor()).elements(); })
      .def(
          "to_host",
          [](const DeviceArray& a) {
            nb::gil_scoped_release unlocked;
            return Array{on_host(a.tensor())};
          },
          "A copy in the memory of the host.")
      .def(
          "__dlpack__", [](const DeviceArray& a, nb::kwargs) { return capsule_of(a); },
          "The memory itself, as a DLPack capsule. Nothing that writes it is under way.")
      .def("__dlpack_device__",
           [](const DeviceArray& a) { return nb::make_tuple(a.tensor().device.type, a.tensor().device.id); });
  m.def("on_host", [](nb::handle object) { return device_of(object).type == 1; });
  m.def("device_array_from", &borrowed);
  m.def("device_array_of", [](const Array& a) {
    nb::gil_scoped_release unlocked;
    return owned(on_device(a.value, "cuda"));
  });
  nb::class_<DeviceProgram>(m, "DeviceProgram",
                            "A compiled graph whose operands and results stay on the GPU.")
      .def(
          "__init__",
          [](DeviceProgram* self, const GraphHandle& g) {
            nb::gil_scoped_release unlocked;
            new (self) DeviceProgram(g);
          },
          nb::arg("graph"))
      .def("run", &DeviceProgram::run);
}

}  // namespace rlx::python
