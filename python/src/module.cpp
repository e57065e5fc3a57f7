// The extension module rlx._rlx. What people see is made of it in python/rlx.
#include <nanobind/nanobind.h>

#include <string_view>

#include "python/src/array.h"
#include "python/src/graph.h"
#include "rlx/base/error.h"

namespace nb = nanobind;

namespace {

// A message may quote bytes of a file that are no UTF-8; they become U+FFFD.
void set_error(PyObject* type, const rlx::Error& e) {
  const std::string_view what = e.what();
  const nb::object text = nb::steal(PyUnicode_DecodeUTF8(what.data(), Py_ssize_t(what.size()), "replace"));
  PyErr_SetObject(type, text.ptr());
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
  rlx::python::bind_array(m);
  rlx::python::bind_graph(m);
  rlx::python::bind_transforms(m);
  rlx::python::bind_functions(m);
  rlx::python::bind_models(m);
}
