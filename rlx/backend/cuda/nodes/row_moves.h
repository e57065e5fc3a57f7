// Rows that are turned or put into place, several moves as one kernel: rotary positions, and rows that go into caches.
#pragma once

#include <functional>
#include <span>

#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/ops/attention/rope.h"

namespace rlx::cuda {

/// Sizes and strides as batch, row, head, lane.
struct Lanes {
  std::vector<int64_t> sizes, strides;
};
Lanes lanes_of(const Arg& x, const ops::RopeAttrs& a);

/// An address of a launch: an operand (0, 1, ..) or a result (-1, -2, ..).
using Member = int;
inline constexpr Member kNoMember = 1 << 20;

/// Rows of x [batch, row, head, lane] go to y, turned or as they are.
struct RowMove {
  DType dtype = DType::f32;
  Lanes x;
  Member from = 0, to = 0;
  int64_t column = 0;               // of x, the first one in its rows
  std::vector<int64_t> to_strides;  // batch, row, head; lanes are neighbours
  /// Where y begins: rows further on, given at run time as element 1 of three, and limited to `room` rows.
  Member starts = kNoMember;
  DType starts_type = DType::i32;
  int64_t room = 0;

  // Of a rotation.
  bool turns = false, interleaved = false, inverse = false, positions_by_batch = false;
  int64_t table_rows = 0, table_columns = 0;
  DType table_type = DType::f32, position_type = DType::i32;
  Member cosines = kNoMember, sines = kNoMember, positions = kNoMember;

  int64_t rows() const { return x.sizes[0] * x.sizes[1] * x.sizes[2]; }
};

/// The rotation of x by tables, without its end; `problem` says why it is none. Both tables have one type.
struct RopeMembers {
  Member x, cosines, sines, positions;
};
RowMove row_move_of(const ops::RopeAttrs&, const Arg& x, const Arg& table, const Arg* positions,
                    const RopeMembers&, std::string& problem);

/// Why such a move is none, or nothing.
std::string problem_of(const RowMove&);

/// Neighbours that a thread takes: as many as 16 bytes hold, where all strides and (`wide`) addresses allow it.
int64_t width_of(const RowMove&, bool wide);
/// The name of an address in a text.
using MemberName = std::function<std::string(Member)>;
/// What a thread does with `width` neighbours (pairs where they turn), as text: `from` points to lane 0 of a head; batch, row, head and lane are known.
std::string move_text(const RowMove&, int64_t width, const MemberName&);
/// The addresses that moves need, each once.
std::vector<Member> members_of(const std::vector<RowMove>&);
/// The number of the fault that a wrong position is, 0 where there are none.
uint64_t fault_of(const std::vector<RowMove>&);
/// The moves that the body of a group of rows holds, and the caches that they change.
struct RowsReading {
  std::vector<RowMove> moves;
  std::vector<backend::InPlace> caches;
  std::string problem;
};
/// `products` are those of the body whose columns are moved, all of one input: they count as more operands behind the others.
RowsReading read_rows(const Request&, std::span<const ir::Node* const> products);
/// Copies caches whose results have not taken their places.
std::function<void(const Launch&)> cache_copies(const Request&, const std::vector<backend::InPlace>&);

class RowMoves {
 public:
  RowMoves(const Device&, std::vector<RowMove>);
  /// Queues them, or lets them wait for the steps behind them.
  void run(const Launch&) const;

 private:
  struct Loaded {
    FunctionRef function;
    Grid grid;
  };
  /// The moves as a function of one thread: struct Words, and move_one(p, e) for e below `threads`.
  std::string function_text(bool wide, int64_t& threads) const;
  Loaded load(bool wide) const;
  PhaseRef load_phase() const;

  const Device& device_;
  std::vector<RowMove> moves_;
  std::vector<Member> members_;
  uint64_t fault_ = 0;
  Loaded wide_, narrow_;
  PhaseRef phase_;
};

}  // namespace rlx::cuda
