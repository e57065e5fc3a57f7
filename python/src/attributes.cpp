#include "python/src/attributes.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/array.h"
#include "python/src/dtypes.h"
#include "python/src/graph.h"
#include "rlx/base/text.h"

namespace rlx::python {
namespace {

using ir::AttrKind;
using ir::AttrValue;

Dim dim_from(nb::handle h) {
  return nb::isinstance<nb::str>(h) ? dim_named(nb::cast<std::string>(h)) : Dim(nb::cast<int64_t>(h));
}

// A type is written "f32[2,3]" or given as (dtype, sizes).
Shape shape_from(nb::handle h) {
  const nb::tuple pair = nb::cast<nb::tuple>(h);
  return Shape(dtype_named(nb::cast<std::string>(pair[0])), dims_of(pair[1]));
}

template <class T>
std::vector<T> list_from(nb::handle h) {
  if (nb::isinstance<nb::int_>(h) || nb::isinstance<nb::float_>(h)) return {nb::cast<T>(h)};
  std::vector<T> out;
  for (const nb::handle item : nb::iter(h)) out.push_back(nb::cast<T>(item));
  return out;
}

AttrValue value_from(AttrKind kind, nb::handle h) {
  switch (kind) {
    case AttrKind::boolean:
      return nb::cast<bool>(h);
    case AttrKind::integer:
      return nb::cast<int64_t>(h);
    case AttrKind::real:
      return nb::cast<double>(h);
    case AttrKind::string:
    case AttrKind::choice:
      return nb::cast<std::string>(h);
    case AttrKind::dtype:
      return dtype_named(nb::cast<std::string>(h));
    case AttrKind::integers:
      return list_from<int64_t>(h);
    case AttrKind::reals:
      return list_from<double>(h);
    case AttrKind::dim:
      return dim_from(h);
    case AttrKind::dims:
      return dims_of(h);
    case AttrKind::shape:
      return shape_from(h);
    case AttrKind::literal:
      return nb::isinstance<Array>(h) ? nb::cast<Array&>(h).value : literal_from(h);
    case AttrKind::graph:
      return ir::GraphRef(nb::cast<GraphHandle&>(h).graph);
  }
  return {};
}

}  // namespace

ir::AttrsRef attributes_from(const ir::OpDef& op, nb::dict keywords) {
  if (keywords.size() == 0) return nullptr;
  const std::shared_ptr<void> attrs = op.copy_attrs(nullptr);
  for (const auto& [key, value] : keywords) {
    const std::string name = nb::cast<std::string>(key);
    const ir::FieldInfo* field = op.find_field(name);
    if (!field) {
      std::vector<std::string> known;
      for (const ir::FieldInfo& f : op.fields) known.emplace_back(f.name);
      throw invalid(op.name, ": no argument '", name, "'; it has ", known.empty() ? "none" : join(known));
    }
    if (value.is_none()) {
      if (field->optional || field->kind == AttrKind::graph) continue;
      throw invalid(op.name, ": ", name, " must not be None");
    }
    try {
      field->set(attrs.get(), value_from(field->kind, value));
    } catch (const nb::cast_error&) {
      throw invalid(op.name, ": ", name, " cannot be a ", nb::type_name(value.type()).c_str());
    } catch (const nb::python_error&) {
      throw invalid(op.name, ": ", name, " cannot be a ", nb::type_name(value.type()).c_str());
    }
  }
  return attrs;
}

nb::object object_of(const AttrValue& v) {
  if (const auto* x = std::get_if<bool>(&v)) return nb::bool_(*x);
  if (const auto* x = std::get_if<int64_t>(&v)) return nb::int_(*x);
  if (const auto* x = std::get_if<double>(&v)) return nb::float_(*x);
  if (const auto* x = std::get_if<std::string>(&v)) return nb::str(x->c_str(), x->size());
  if (const auto* x = std::get_if<DType>(&v)) return nb::str(cat(*x).c_str());
  if (const auto* x = std::get_if<std::vector<int64_t>>(&v)) return nb::tuple(nb::cast(*x));
  if (const auto* x = std::get_if<std::vector<double>>(&v)) return nb::tuple(nb::cast(*x));
  if (const auto* x = std::get_if<Dim>(&v)) return tuple_of(Shape(DType::f32, {*x}))[0];
  if (const auto* x = std::get_if<Dims>(&v)) return tuple_of(Shape(DType::f32, *x));
  if (const auto* x = std::get_if<Shape>(&v)) return nb::make_tuple(cat(x->dtype()), tuple_of(*x));
  if (const auto* x = std::get_if<Literal>(&v)) return nb::cast(Array{*x});
  if (const auto* x = std::get_if<ir::GraphRef>(&v); x && *x)
    return nb::cast(GraphHandle{std::make_shared<ir::Graph>(**x)});
  return nb::none();
}

}  // namespace rlx::python
