#include "rlx/base/shape.h"

#include <algorithm>

#include "rlx/base/error.h"

namespace rlx {

Dim Shape::dim(int axis) const {
  const int given = axis;
  if (!normalize_axis(axis, rank())) throw invalid("shape: axis ", given, " is out of range for ", *this);
  return dims_[size_t(axis)];
}

bool Shape::is_static() const {
  return std::all_of(dims_.begin(), dims_.end(), [](Dim d) { return d.is_static(); });
}

int64_t Shape::size_bytes() const { return (num_elements() * Dim(int64_t(dtype_size(dtype_)))).value(); }

Shape Shape::with_dim(int axis, Dim d) const {
  const int given = axis;
  if (!normalize_axis(axis, rank())) throw invalid("shape: axis ", given, " is out of range for ", *this);
  Shape out = *this;
  out.dims_[size_t(axis)] = d;
  return out;
}

std::vector<std::string> Shape::dynamic_symbols() const {
  std::vector<std::string> names;
  for (const Dim d : dims_) collect_symbols(d, names);
  return names;
}

void append_text(std::string& out, const Shape& s) {
  append_text(out, s.dtype());
  out.push_back('[');
  for (int i = 0; i < s.rank(); ++i) {
    if (i) out.push_back(',');
    append_text(out, s.dims()[size_t(i)]);
  }
  out.push_back(']');
}

Shape parse_shape(std::string_view text, size_t& pos) {
  size_t end = pos;
  while (end < text.size() &&
         ((text[end] >= 'a' && text[end] <= 'z') || (text[end] >= '0' && text[end] <= '9')))
    ++end;
  const auto dtype = dtype_from_name(text.substr(pos, end - pos));
  if (!dtype)
    throw invalid("shape: '", text.substr(pos, end - pos), "' is not a dtype; expected one like f32[2,3]");
  pos = end;
  if (pos >= text.size() || text[pos] != '[') throw invalid("shape: expected '[' after the dtype");
  ++pos;
  Dims dims;
  const auto skip = [&] {
    while (pos < text.size() && text[pos] == ' ') ++pos;
  };
  skip();
  if (pos < text.size() && text[pos] == ']') {
    ++pos;
    return Shape(*dtype, {});
  }
  for (;;) {
    if (dims.size() >= 64) throw invalid("shape: more than 64 axes");
    skip();
    dims.push_back(parse_dim(text, pos));
    skip();
    if (pos < text.size() && text[pos] == ',') {
      ++pos;
      continue;
    }
    if (pos < text.size() && text[pos] == ']') {
      ++pos;
      return Shape(*dtype, std::move(dims));
    }
    throw invalid("shape: expected ',' or ']'");
  }
}

Shape parse_shape(std::string_view text) {
  size_t pos = 0;
  Shape out = parse_shape(text, pos);
  if (pos != text.size()) throw invalid("shape: unexpected '", text.substr(pos), "' after ", out);
  return out;
}

AxisView axis_view(const Shape& s, int axis) {
  RLX_CHECK(axis >= 0 && axis < s.rank(), "axis ", axis, " of ", s);
  AxisView v{1, s.dim(axis).value(), 1};
  for (int i = 0; i < axis; ++i) v.outer *= s.dim(i).value();
  for (int i = axis + 1; i < s.rank(); ++i) v.inner *= s.dim(i).value();
  return v;
}

std::vector<int64_t> row_major_strides(const Dims& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i].value();
  return strides;
}

}  // namespace rlx
