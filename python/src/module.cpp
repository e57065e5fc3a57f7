// The extension module rlx._rlx. What people see is made of it in python/rlx.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string_view>

#include "python/src/array.h"
#include "python/src/device_array.h"
#include "python/src/graph.h"
#include "rlx/base/error.h"
#include "rlx/base/pool.h"
#include "rlx/base/version.h"
#include "rlx/runtime/devices.h"

namespace nb = nanobind;

namespace {

// A message may quote bytes of a file that are no UTF-8; they become U+FFFD.
void set_error(PyObject* type, const rlx::Error& e) {
  const std::string_view what = e.what();
  const nb::object text = nb::steal(PyUnicode_DecodeUTF8(what.data(), Py_ssize_t(what.size()), "replace"));
  PyErr_SetObject(type, text.ptr());
}

// Devices by name; where one cannot be used, the reason.
nb::dict devices() {
  nb::dict out;
  for (const std::string& name : rlx::device_names()) {
    try {
      rlx::device_named(name);
      out[name.c_str()] = nb::none();
    } catch (const rlx::Error& e) {
      out[name.c_str()] = std::string(e.message());
    }
  }
  return out;
}

}  // namespace

NB_MODULE(_rlx, m) {
  nb::set_leak_warnings(false);  // caches of compiled operators live as long as the process
  static const nb::object kError = nb::exception<rlx::Error>(m, "Error", PyExc_ValueError);
  nb::register_exception_translator(
      [](const std::exception_ptr& raised, void* error) {
        try {
          std::rethrow_exception(raised);
        } catch (const rlx::Error& e) {
          set_error(static_cast<PyObject*>(error), e);
        }
      },
      kError.ptr());
  m.attr("__version__") = RLX_VERSION;
  m.def("devices", &devices, "Where functions can run: names, each with None or why it cannot.");
  m.def("threads", [] { return rlx::default_pool().threads(); });
  rlx::python::bind_array(m);
  rlx::python::bind_graph(m);
  rlx::python::bind_transforms(m);
  rlx::python::bind_functions(m);
  rlx::python::bind_device_array(m);
  rlx::python::bind_models(m);
}
