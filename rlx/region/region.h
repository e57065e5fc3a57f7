// A region: the small program of a fused node, in static single assignment. docs/design/006 says why.
//
// It runs over a box of up to four dimensions. The first `row_rank` of them number the rows, the others the
// columns of a row. A value is an element value (one per column) or a row value (one per row; constants and
// arguments that do not move along the columns are row values). Reductions turn the former into the latter,
// over all columns of a row.
//
// A barrier ends a pass over the columns: what a reduction before it found may be used behind it. Element
// values do not cross a barrier: they are loaded or computed again, or kept in a scratch row.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/base/dtype.h"
#include "rlx/region/op.h"

namespace rlx::region {

inline constexpr int kMaxRank = 4;
using Strides = std::array<int64_t, kMaxRank>;

enum class Role : uint8_t { in, out, scratch };

/// Memory that a region reads or writes. A stride of 0 repeats an element along a dimension. The pointers
/// given at run time are those of the inputs, then of the results; scratch rows belong to who runs it.
struct Argument {
  Role role = Role::in;
  DType dtype = DType::f32;
  Strides strides{};  // in elements, one per dimension
};

struct Constant {
  double real = 0;                                               // of float lanes
  int64_t integer = 0;                                           // of integer lanes, and 0 or 1 of masks
  friend bool operator==(const Constant& a, const Constant& b);  // the same bits
};

struct Instruction {
  Op op = Op::constant;
  Lane lane = Lane::f32;  // of the value; of what is stored
  bool per_row = false;   // a row value; a store of one element per row
  std::array<int, 3> operands{-1, -1, -1};
  int argument = -1;  // of load and store
  Constant constant;  // its value; for reductions, what an empty row gives
};

struct Region {
  std::vector<int64_t> dims;  // 1 to kMaxRank
  int row_rank = 0;
  std::vector<Argument> arguments;  // inputs, results, scratch
  std::vector<Instruction> code;    // an operand is the position of an earlier instruction

  int rank() const { return int(dims.size()); }
  int64_t rows() const;
  int64_t columns() const;
  int phases() const;  // barriers + 1
  int count(Role) const;
  int width() const;  // bytes of a lane, 4 or 8
  bool has_reduction() const;
  /// Whether an argument stays in place along the columns.
  bool is_per_row(const Argument&) const;
  int add(const Instruction& i) { return code.push_back(i), int(code.size()) - 1; }
};

std::string_view op_name(Op);
std::string_view lane_name(Lane);
int lane_bytes(Lane);  // 0 for a mask, which suits both widths

/// Which memory a lane can be read from and written to. Reading converts as `cast` does.
bool can_load(DType from, Lane to);
bool can_store(Lane from, DType to);

/// What is wrong with a program: operands out of order, values that cross a barrier, lanes that do not fit.
std::optional<std::string> problem(const Region&);

/// For people and tests:
///
///   region rows [64] columns [1024]
///     in 0: f32 [1024, 1]
///     out 0: f32 [1024, 1]
///     %0 = load in 0 : f32
///     %1 = reduce_max %0 : f32 per row
///     barrier
///     ...
void append_text(std::string& out, const Region&);
void append_text(std::string& out, Op);
void append_text(std::string& out, Lane);

}  // namespace rlx::region
