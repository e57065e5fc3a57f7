#include "rlx/runtime/view.h"

namespace rlx {

Shape TensorView::shape() const { return Shape(dtype, Dims(dims, dims + rank)); }

int64_t TensorView::elements() const {
  int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= dims[i];
  return n;
}

void TensorView::check_type(DType asked) const {
  if (asked != dtype) throw invalid("view: asked for ", asked, ", the tensor is ", shape());
}

TensorView view_bytes(DType dtype, const void* data, std::span<const int64_t> dims) {
  if (dims.size() > size_t(TensorView::kMaxRank))
    throw invalid("view: ", dims.size(), " axes; at most ", TensorView::kMaxRank, " are supported");
  TensorView v;
  v.data = static_cast<std::byte*>(const_cast<void*>(data));  // an input is only read
  v.dtype = dtype;
  v.rank = int(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) throw invalid("view: extent ", dims[i], " of axis ", i, " is negative");
    v.dims[i] = dims[i];
  }
  return v;
}

TensorView view(const Literal& l) {
  std::vector<int64_t> dims;
  for (const Dim d : l.shape().dims()) dims.push_back(d.value());
  return view_bytes(l.dtype(), l.bytes().data(), dims);
}

}  // namespace rlx
