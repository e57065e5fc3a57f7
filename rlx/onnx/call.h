// One node of a model on its way into the graph: its operands, its attributes, and how to refuse it.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/error.h"
#include "rlx/lang/tensor.h"
#include "rlx/lang/trace.h"
#include "rlx/onnx/item.h"

namespace rlx::onnx {

class Importer;

class Call {
 public:
  Call(Importer& importer, const file::Node& node, Items inputs, int64_t opset)
      : importer_(importer), node_(node), inputs_(std::move(inputs)), opset_(opset) {}

  const file::Node& node() const { return node_; }
  Importer& importer() const { return importer_; }
  int64_t opset() const { return opset_; }
  /// "node 'conv1' (Conv)"
  std::string where() const;

  // Operands.
  int count() const { return int(inputs_.size()); }
  bool has(int i) const { return i < count() && !inputs_[size_t(i)].is_nothing(); }
  const Item& item(int i) const;
  const Items& items() const { return inputs_; }
  void replace(int i, Item item) { inputs_[size_t(i)] = std::move(item); }
  /// Operand i as a tensor of the graph being built.
  Tensor in(int i) const;
  /// As in(i), or an empty tensor when it is left out.
  Tensor in_or_empty(int i) const { return has(i) ? in(i) : Tensor(); }
  /// Operands from i on.
  Tensors all(int from = 0) const;
  Shape shape(int i) const { return item(i).shape(); }
  DType dtype(int i) const { return shape(i).dtype(); }
  int rank(int i) const { return shape(i).rank(); }

  // Operands that must be known while the graph is built; `what` says what they decide.
  Literal known(int i, std::string_view what) const;
  std::vector<int64_t> known_ints(int i, std::string_view what) const;
  int64_t known_int(int i, std::string_view what) const;
  double known_real(int i, std::string_view what) const;
  /// Contents if they are known, else nothing; asks for nothing.
  std::optional<Literal> constant(int i) const;
  /// Integers known as expressions over symbols.
  std::vector<Size> sizes(int i, std::string_view what) const;
  /// As sizes, as extents; negative numbers other than -1 are an error.
  Dims dims(int i, std::string_view what) const;
  /// As dims, where data may decide extents: they are as large as they can become (bounds_of in bounds.h tells the rest).
  Dims most_dims(int i, std::string_view what) const;

  // Attributes. Each is marked as read; `Importer` refuses a node with others.
  bool has_attr(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name, int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise = false) const { return integer(name, otherwise) != 0; }
  double real(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<float> reals(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  std::optional<Literal> tensor(std::string_view name) const;
  Literal literal(const file::SparseTensor&) const;
  const file::Graph& body(std::string_view name) const;
  /// The element type that attribute `name` gives as a number.
  file::ElementType element(std::string_view name, file::ElementType otherwise) const;
  const file::Attribute* find(std::string_view name) const;
  void ignore(std::string_view name) const { read_.insert(std::string(name)); }
  std::vector<std::string> unread() const;

  // New tensors in the graph being built.
  Tensor constant(const Literal&) const;
  Tensor scalar(DType dtype, double value) const { return constant(Literal::scalar(dtype, value)); }
  Tensor full(const Dims& dims, DType dtype, double value) const;
  Tensor iota(const Shape&, int axis) const;
  /// An extent as a scalar.
  Tensor dim_value(Dim, DType dtype = DType::i64) const;
  Tensor tensor_of(const Item&) const;
  ir::Graph& graph() const;

  // Refusals.
  template <class... Args>
  [[nodiscard]] Error wrong(const Args&... what) const {
    return invalid("onnx: ", where(), ": ", what...);
  }
  [[noreturn]] void unsupported(const std::string& what) const;
  [[noreturn]] void needs_value(const Item&, std::string_view what) const;
  /// Refuses a product of sizes that is negative or more than tables made while the graph is built may hold, 2^26.
  void require_table(std::initializer_list<int64_t> sizes, std::string_view what) const;
  /// An axis of a rank, negative ones counted from the end.
  int axis(int64_t axis, int rank) const;
  std::vector<int> axes(const std::vector<int64_t>& axes, int rank) const;
  /// Attribute `name` in old versions, operand i in new ones; nothing when neither is there.
  std::optional<std::vector<int64_t>> ints_of(std::string_view name, int i) const;
  void note(const std::string& text) const;

 private:
  Importer& importer_;
  const file::Node& node_;
  Items inputs_;
  int64_t opset_;
  mutable std::set<std::string> read_;
};

}  // namespace rlx::onnx
