// The text in front of kernels of products: how they get at the operands of a group, and what happens to its sums (kernels/few_rows.h).
#pragma once

#include "rlx/backend/cuda/nodes/product_reading.h"
#include "rlx/backend/cuda/nodes/row_moves.h"

namespace rlx::cuda {

/// What becomes of the columns of products where rotations and caches take them: the kernel sums pairs of columns, those that turn together or two neighbours, and pairs are counted move by move.
struct MovedColumns {
  explicit MovedColumns(const ProductReading&);

  int64_t pairs() const;
  /// The product whose columns a move takes.
  const ir::Node& product_of(const RowMove&) const;

  const ProductReading& products;
  RowsReading rows;
  /// Why these are none, or nothing.
  std::string problem;

 private:
  void check(const RowMove&);
};

class ProductHooks {
 public:
  /// `threads` make the rows of the region in front; addresses are multiples of 16 bytes where `wide`. `moved` may be null. `sums_only`: the kernel knows its weights and rows itself.
  ProductHooks(const ProductReading&, const MovedColumns* moved, bool wide, int threads,
               bool sums_only = false);

  const std::string& text() const { return text_; }
  /// An operand (0, 1, ..) or a result (-1, -2, ..) of the node; two more words follow where columns move: where faults go, and the number of one.
  const std::vector<int>& members() const { return members_; }

 private:
  std::string add(int source, std::string type);
  std::string operand(ir::Value);
  std::string result(ir::Value, DType);
  std::string place(const ir::Node& product, const std::string& column);
  template <class Each>
  std::string by_column(Each);
  void add_region();
  void add_input();
  void add_products();
  void add_elements();
  void add_moves(const MovedColumns&);

  const ProductReading& g_;
  bool wide_;
  int threads_;
  std::vector<int> members_;
  std::vector<std::string> types_;
  std::string functions_, text_;
};

}  // namespace rlx::cuda
