// The extension module rlx._rlx. What people see is made of it in python/rlx.
#include <nanobind/nanobind.h>

#include "python/src/array.h"
#include "python/src/graph.h"
#include "rlx/base/error.h"

namespace nb = nanobind;

NB_MODULE(_rlx, m) {
  nb::set_leak_warnings(false);  // caches of compiled operators live as long as the process
  nb::exception<rlx::Error>(m, "Error", PyExc_ValueError);
  rlx::python::bind_array(m);
  rlx::python::bind_graph(m);
  rlx::python::bind_transforms(m);
  rlx::python::bind_functions(m);
  rlx::python::bind_models(m);
}
