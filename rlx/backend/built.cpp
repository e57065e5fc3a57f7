#include "rlx/backend/built.h"

#include <algorithm>

namespace rlx::backend::built {
namespace {

Dims dims_of(std::initializer_list<int64_t> sizes) { return {sizes.begin(), sizes.end()}; }

}  // namespace

const ir::FieldInfo& Call::field(std::string_view name) const {
  const ir::FieldInfo* f = op_->find_field(name);
  RLX_CHECK(f != nullptr, op_->name, " has no attribute '", name, "'");
  return *f;
}

Call& Call::set(std::string_view name, ir::AttrValue value) {
  field(name).set(attrs_.get(), value);
  return *this;
}

Call& Call::set(std::string_view name, const char* text) {
  return set(name, ir::AttrValue(std::string(text)));
}

Call& Call::set(std::string_view name, int64_t value) {
  switch (field(name).kind) {
    case ir::AttrKind::dim:
      return set(name, ir::AttrValue(Dim(value)));
    case ir::AttrKind::real:
      return set(name, ir::AttrValue(double(value)));
    default:
      return set(name, ir::AttrValue(value));
  }
}

Call& Call::set_integers(std::string_view name, std::initializer_list<int64_t> values) {
  if (field(name).kind == ir::AttrKind::dims) return set(name, ir::AttrValue(dims_of(values)));
  return set(name, ir::AttrValue(std::vector<int64_t>(values)));
}

Call& Call::set_reals(std::string_view name, std::initializer_list<double> values) {
  return set(name, ir::AttrValue(std::vector<double>(values)));
}

Shape shape_of(DType dtype, std::initializer_list<int64_t> sizes) { return Shape(dtype, dims_of(sizes)); }

Literal reals(DType dtype, std::initializer_list<int64_t> sizes, std::initializer_list<double> values) {
  return Literal::reals(shape_of(dtype, sizes), std::vector<double>(values));
}

Literal integers(DType dtype, std::initializer_list<int64_t> sizes, std::initializer_list<int64_t> values) {
  return Literal::integers(shape_of(dtype, sizes), std::vector<int64_t>(values));
}

Literal data(DType dtype, std::initializer_list<int64_t> sizes, const std::byte* at) {
  const Shape shape = shape_of(dtype, sizes);
  return Literal::borrow(shape, {at, size_t(shape.size_bytes())}, nullptr);
}

ir::Value Body::input(const char* name, DType dtype, std::initializer_list<int64_t> sizes) {
  return graph_.input(name, shape_of(dtype, sizes));
}

ir::Value Body::param(const char* name, DType dtype, std::initializer_list<int64_t> sizes) {
  return graph_.param(name, shape_of(dtype, sizes));
}

ir::Value Body::add(const Call& call, std::initializer_list<ir::Value> inputs, const char* name) {
  return graph_.value(graph_.append(call.op(), call.attrs(), std::span(inputs.begin(), inputs.size()), name));
}

ir::Value Body::constant(Literal value) { return graph_.constant(value); }

ir::GraphRef Body::done(std::initializer_list<ir::Value> outputs) {
  graph_.set_outputs(outputs);
  return std::make_shared<const ir::Graph>(std::move(graph_));
}

Plan::Place at(int buffer, DType dtype, std::initializer_list<int64_t> sizes, int64_t offset) {
  const Shape shape = shape_of(dtype, sizes);
  return {.buffer = buffer, .offset = offset, .shape = shape, .layout = Layout::row_major(shape.dims())};
}

Plan::Place strided(int buffer, DType dtype, std::initializer_list<int64_t> sizes,
                    std::initializer_list<int64_t> strides, int64_t offset) {
  return {.buffer = buffer,
          .offset = offset,
          .shape = shape_of(dtype, sizes),
          .layout = {.strides = strides, .offset = 0}};
}

std::shared_ptr<const void> FormCache::find_or_make(
    const std::byte* data, const std::string& form,
    const std::function<std::shared_ptr<const void>()>& make) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const void>& kept = forms_[{data, form}];
  if (auto there = kept.lock()) return there;
  auto made = make();
  kept = made;
  return made;
}

}  // namespace rlx::backend::built
