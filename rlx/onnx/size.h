// Integers that a model computes from the sizes of tensors, known while the graph is built.
//
// Exporters write `Shape -> Gather -> Mul -> Concat -> Reshape`. Followed with these, the extents of the reshape
// stay expressions over the symbols of the inputs, and nothing of it is left in the graph.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "rlx/base/dim.h"
#include "rlx/base/dtype.h"
#include "rlx/lang/tensor.h"

namespace rlx::onnx {

/// A number, which may be negative, an expression over symbols, or a number that data decides, of which a bound is known.
class Size {
 public:
  Size(int64_t number = 0) : value_(number) {}  // NOLINT: sizes are written as numbers
  Size(Dim dim);                                // NOLINT
  /// `count` is an i64 scalar and never more than `most`; it may be negative only where that is said.
  static Size counted(Dim most, Tensor count, bool may_be_negative = false);

  bool is_number() const { return value_.index() == 0; }
  std::optional<int64_t> number() const;
  /// As an extent; nothing when it is a negative number other than -1, or when data decides it.
  std::optional<Dim> dim() const;
  bool is_counted() const { return !count_.is_empty(); }
  Dim most() const { return std::get<Dim>(value_); }
  const Tensor& count() const { return count_; }
  bool may_be_negative() const;

  friend bool operator==(const Size&, const Size&);

 private:
  std::variant<int64_t, Dim> value_;
  Tensor count_;
  bool signed_ = false;  // of a count
};

/// As an i64 scalar of a graph.
Tensor value_of(ir::Graph&, const Size&);

/// An expression as a number and a size that is added to it or, where it `falls`, taken from it.
struct Offset {
  int64_t number = 0;
  Dim rest;
  bool falls = false;
};
/// For expressions that are negative at some sizes, as n - 5 and 1 - n are; differences of symbols are taken to be sizes.
std::optional<Offset> offset_of(const Size&);

/// Nothing where the result has no expression.
std::optional<Size> plus(const Size& a, const Size& b);
std::optional<Size> minus(const Size& a, const Size& b);
std::optional<Size> times(const Size& a, const Size& b);
std::optional<Size> quotient(const Size& a, const Size& b);  // of sizes that are not negative
std::optional<Size> remainder(const Size& a, const Size& b);
std::optional<Size> larger(const Size& a, const Size& b);
std::optional<Size> smaller(const Size& a, const Size& b);
std::optional<bool> equal(const Size& a, const Size& b);
/// a < b, where that holds for every size of the symbols, which are 1 or more; or for none.
std::optional<bool> less(const Size& a, const Size& b);

/// A small integer tensor of such numbers, row-major.
struct Sizes {
  std::vector<int64_t> dims;
  std::vector<Size> values;
  DType dtype = DType::i64;

  bool all_numbers() const;
};

}  // namespace rlx::onnx
