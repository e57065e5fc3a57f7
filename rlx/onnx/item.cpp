#include "rlx/onnx/item.h"

namespace rlx::onnx {

Item Item::sequence(std::vector<Item> items) {
  Item out;
  out.kind = Kind::sequence;
  out.list = std::move(items);
  return out;
}

Shape Item::shape() const {
  RLX_CHECK(kind == Kind::tensor, "shape of an item that is no tensor");
  if (constant) return constant->shape();
  if (sizes) return Shape(sizes->dtype, Dims(sizes->dims.begin(), sizes->dims.end()));
  return tensor.shape();
}

}  // namespace rlx::onnx
