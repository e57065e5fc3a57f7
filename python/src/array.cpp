#include "python/src/array.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include "python/src/dtypes.h"
#include "rlx/base/text.h"

namespace rlx::python {
namespace {

using Code = nb::dlpack::dtype_code;

struct Correspondence {
  DType ours;
  Code code;
  uint8_t bits;
};
constexpr Correspondence kTypes[] = {
    {DType::bool_, Code::Bool, 8}, {DType::u8, Code::UInt, 8},    {DType::i8, Code::Int, 8},
    {DType::i16, Code::Int, 16},   {DType::i32, Code::Int, 32},   {DType::i64, Code::Int, 64},
    {DType::u32, Code::UInt, 32},  {DType::f16, Code::Float, 16}, {DType::bf16, Code::Bfloat, 16},
    {DType::f32, Code::Float, 32}, {DType::f64, Code::Float, 64}, {DType::c64, Code::Complex, 64}};

DType dtype_from(const nb::dlpack::dtype& d) {
  for (const Correspondence& c : kTypes) {
    if (uint8_t(c.code) == d.code && c.bits == d.bits && d.lanes == 1) return c.ours;
  }
  throw invalid("array: no element type for code ", int(d.code), " of ", int(d.bits),
                " bits; convert it to one that rlx has");
}

nb::dlpack::dtype dtype_to(DType dtype) {
  for (const Correspondence& c : kTypes) {
    if (c.ours == dtype) return {uint8_t(c.code), c.bits, 1};
  }
  throw invalid("array: ", dtype, " has no form outside; cast it first");
}

/// The ndarray over an array's memory; `owner` keeps it alive.
template <class... Framework>
nb::object ndarray_of(const Array& a, nb::handle owner) {
  std::vector<size_t> dims;
  for (const Dim d : a.value.shape().dims()) dims.push_back(size_t(d.value()));
  nb::ndarray<Framework...> out(const_cast<std::byte*>(a.value.bytes().data()), dims.size(), dims.data(),
                                owner, nullptr, dtype_to(a.value.dtype()));
  return nb::cast(out, nb::rv_policy::reference);
}

nb::object scalar_of(const Array& a) {
  if (a.value.elements() != 1)
    throw invalid("item: the array is ", a.value.shape(), "; only one with a single element is a number");
  switch (a.value.dtype()) {
    case DType::bool_:
      return nb::bool_(a.value.integer_at(0) != 0);
    case DType::c64: {
      const auto z = a.value.complex_at(0);
      return nb::steal(PyComplex_FromDoubles(z.real(), z.imag()));
    }
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64:
    case DType::f8e4m3:
    case DType::f8e5m2:
      return nb::float_(a.value.real_at(0));
    default:
      return nb::int_(a.value.integer_at(0));
  }
}

}  // namespace

nb::tuple tuple_of(const Shape& shape) {
  nb::list out;
  for (const Dim d : shape.dims()) {
    if (d.is_static()) {
      out.append(nb::int_(d.value()));
    } else {
      out.append(nb::str(cat(d).c_str()));
    }
  }
  return nb::tuple(out);
}

Dims dims_of(nb::handle sequence) {
  Dims out;
  for (const nb::handle h : nb::iter(sequence)) {
    if (nb::isinstance<nb::str>(h)) {
      out.push_back(dim_named(nb::cast<std::string>(h)));
    } else {
      out.push_back(Dim(nb::cast<int64_t>(h)));
    }
  }
  return out;
}

Literal literal_from(nb::handle object) {
  nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu> from;
  if (!nb::try_cast(object, from, true))
    throw invalid("array: cannot read a ", nb::type_name(nb::handle(object.type())).c_str(),
                  "; give numbers, nested lists, NumPy arrays or anything with __dlpack__ on the host");
  Dims dims;
  for (size_t i = 0; i < from.ndim(); ++i) dims.push_back(Dim(int64_t(from.shape(i))));
  const Shape shape(dtype_from(from.dtype()), std::move(dims));
  const auto* data = static_cast<const std::byte*>(from.data());
  const size_t bytes = size_t(shape.size_bytes());
  // The ndarray holds a reference to the owner; it may be dropped by any thread, so the lock is taken.
  auto* held = new nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>(from);
  const std::shared_ptr<const void> owner(held, [](const void* p) {
    nb::gil_scoped_acquire lock;
    delete static_cast<const nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>*>(p);
  });
  return Literal::borrow(shape, {data, bytes}, owner);
}

void bind_array(nb::module_& m) {
  nb::class_<Array>(m, "Array", nb::dynamic_attr(), "A tensor with contents. Immutable.")
      .def_prop_ro("shape", [](const Array& a) { return tuple_of(a.value.shape()); })
      .def_prop_ro("dtype", [](const Array& a) { return cat(a.value.dtype()); })
      .def_prop_ro("ndim", [](const Array& a) { return a.value.shape().rank(); })
      .def_prop_ro("size", [](const Array& a) { return a.value.elements(); })
      .def("item", &scalar_of)
      .def("_text",
           [](const Array& a) {
             std::string out;
             append_text(out, a.value);
             return out;
           })
      .def("_numpy",
           [](nb::handle_t<Array> self) {
             return ndarray_of<nb::numpy, nb::ro>(nb::cast<const Array&>(self), self);
           })
      .def(
          "__dlpack__",
          [](nb::handle_t<Array> self, nb::kwargs) {
            return ndarray_of<nb::array_api>(nb::cast<const Array&>(self), self).attr("__dlpack__")();
          },
          "The memory itself, as a DLPack capsule.")
      .def("__dlpack_device__", [](const Array&) { return nb::make_tuple(1, 0); });
  m.def("array_from", [](nb::handle object) { return Array{literal_from(object)}; });
  m.def("array_full", [](const std::string& dtype, nb::handle dims, double value) {
    return Array{Literal::full(Shape(dtype_named(dtype), dims_of(dims)), value)};
  });
  m.def("array_cast",
        [](const Array& a, const std::string& dtype) { return Array{a.value.cast(dtype_named(dtype))}; });
}

}  // namespace rlx::python
