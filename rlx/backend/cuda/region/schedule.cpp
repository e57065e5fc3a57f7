#include "rlx/backend/cuda/region/schedule.h"

#include <algorithm>

#include "rlx/backend/cuda/rounding.h"
#include "rlx/base/text.h"

namespace rlx::cuda {
namespace {

using region::Argument;
using region::Instruction;
using region::Op;
using region::Region;
using region::Role;

constexpr int64_t kWarp = 32;
constexpr int64_t kBlocksWanted = 264;      // two for each processor of an H100 or H200
constexpr int64_t kFewRows = 64;            // fewer than half of the processors
constexpr int64_t kRegisterValues = 64;     // of a thread for scratch rows and kept inputs
constexpr int64_t kSplitColumns = 1 << 14;  // rows shorter than this are not shared by blocks

int phase_count_of_argument(const Region& r, int argument) {
  int phases = 0, last = -1, phase = 0;
  for (const Instruction& i : r.code) {
    phase += i.op == Op::barrier;
    if (i.op == Op::load && !i.per_row && i.argument == argument && phase != last) ++phases, last = phase;
  }
  return phases;
}

// Elements move in the first phase only: what follows are row values.
bool one_pass(const Region& r) {
  int phase = 0;
  for (const Instruction& i : r.code) {
    phase += i.op == Op::barrier;
    if (phase > 0 && (!i.per_row || is_reduction(i.op))) return false;
  }
  return true;
}

// Lanes for a row of so many vectors: the fewest idle ones in at most four rounds; less than four lanes would read far apart in a second round.
int lanes_for(int64_t vectors) {
  int64_t best = kWarp, least = round_up(vectors, kWarp);
  for (int64_t lanes = kWarp / 2; lanes > 0; lanes /= 2) {
    const int64_t rounds = ceil_div(vectors, lanes);
    if (rounds * lanes < least && rounds <= (lanes < 4 ? 1 : 4)) least = rounds * lanes, best = lanes;
  }
  return int(best);
}

int widest_vector(const Region& r) {
  const int64_t last = r.dims.back();
  size_t size = 1;
  for (const Argument& a : r.arguments) {
    if (a.role != Role::scratch && !r.is_per_row(a)) size = std::max(size, dtype_size(a.dtype));
  }
  for (int v = std::min<int>(8, int(16 / size)); v > 1; v /= 2) {
    bool fits = last % v == 0;
    for (const Argument& a : r.arguments) {
      if (a.role == Role::out && !r.is_per_row(a)) fits = fits && is_vector(r, a, v);
    }
    bool some = false;  // something is read or written as a vector
    for (const Argument& a : r.arguments) some = some || (a.role != Role::scratch && is_vector(r, a, v));
    if (fits && some) return v;
  }
  return 1;
}

/// Whether neighbours in memory are rows, not columns, in what the elements come from.
bool rows_are_neighbours(const Region& r) {
  if (r.row_rank == 0 || r.dims[size_t(r.row_rank) - 1] < 8) return false;
  int along_rows = 0, along_columns = 0;
  for (const Argument& a : r.arguments) {
    if (a.role == Role::scratch || r.is_per_row(a)) continue;
    const int64_t column = a.strides[r.dims.size() - 1], row = a.strides[size_t(r.row_rank) - 1];
    along_columns += column == 1 && row != 0;  // one number for all rows is read by all of them at once
    along_rows += row == 1;
  }
  return along_columns == 0 && along_rows > 0;
}

// Elements that lie beside each other in neighbouring rows are read together, where one pass over the columns is all there is.
int widest_row_vector(const Region& r) {
  if (!one_pass(r)) return 1;
  const auto along = size_t(r.row_rank) - 1;
  const auto moves = [&](const Argument& a) {  // a number for all rows is read by itself
    return !r.is_per_row(a) && (a.role != Role::in || a.strides[along] != 0);
  };
  size_t size = 1;
  for (const Argument& a : r.arguments) {
    if (moves(a)) size = std::max(size, dtype_size(a.dtype));
  }
  for (int v = std::min<int>(8, int(16 / size)); v > 1; v /= 2) {
    bool fits = r.dims[along] % v == 0;
    for (const Argument& a : r.arguments) fits = fits && (!moves(a) || is_row_vector(r, a, v));
    if (fits) return v;
  }
  return 1;
}

void keep_in_registers(const Region& r, Schedule& s) {
  int64_t values = 0;
  for (size_t a = 0; a < r.arguments.size(); ++a) {
    if (r.arguments[a].role == Role::scratch || phase_count_of_argument(r, int(a)) > 1) ++values;
  }
  s.in_registers = values > 0 && values * s.rounds * s.vector <= kRegisterValues;
}

void split_rows(const Region& r, Schedule& s) {
  const int64_t blocks = ceil_div(r.rows(), s.rows_per_block);
  if (!one_pass(r) || r.columns() < kSplitColumns / (s.threads_along_rows ? 16 : 1) ||
      blocks * 2 > kBlocksWanted)
    return;
  const int64_t pass = int64_t(s.lanes) * s.vector;
  // Blocks along the rows are many small ones, so that the last of them do not run alone.
  const int64_t wanted = kBlocksWanted * (s.threads_along_rows ? 6 : 2);
  s.splits = std::min(ceil_div(wanted, blocks), ceil_div(r.columns(), pass * 4));
  if (s.splits <= 1) {
    s.splits = 1;
    return;
  }
  s.spread = Spread::split;
  const int64_t part = round_up(ceil_div(r.columns(), s.splits), pass);
  s.splits = ceil_div(r.columns(), part);
  s.rounds = int(part / pass);
}

}  // namespace

bool is_dense(const Region& r, const Argument& a) {
  int64_t stride = 1;
  for (size_t d = r.dims.size(); d-- > 0;) {
    if (r.dims[d] > 1 && a.strides[d] != stride) return false;
    stride *= r.dims[d];
  }
  return true;
}

namespace {

// Neighbours along dimension `along`, beginning at multiples of `width` wherever the others are.
bool are_neighbours(const Region& r, const Argument& a, int width, size_t along) {
  if (width == 1 || a.role == Role::scratch || a.strides[along] != 1) return false;
  for (size_t d = 0; d < r.dims.size(); ++d) {
    if (d != along && r.dims[d] > 1 && a.strides[d] % width != 0) return false;
  }
  return true;
}

}  // namespace

bool is_vector(const Region& r, const Argument& a, int width) {
  return are_neighbours(r, a, width, r.dims.size() - 1);
}

bool is_row_vector(const Region& r, const Argument& a, int width) {
  return r.row_rank > 0 && !r.is_per_row(a) && are_neighbours(r, a, width, size_t(r.row_rank) - 1);
}

int together(const Region& r, const Argument& a, const Schedule& s) {
  if (s.row_vector > 1) return is_row_vector(r, a, s.row_vector) ? s.row_vector : 1;
  return is_vector(r, a, s.vector) ? s.vector : 1;
}

Schedule schedule_of(const Region& r, bool aligned) {
  Schedule s;
  s.vector = aligned ? widest_vector(r) : 1;
  if (!r.has_reduction()) return s;
  const int64_t columns = r.columns();
  if (rows_are_neighbours(r)) {
    s.spread = Spread::columns;
    s.threads_along_rows = true;
    s.vector = 1;
    s.row_vector = aligned ? widest_row_vector(r) : 1;
    s.rows_per_block = int(kWarp) * s.row_vector;
    s.lanes = columns >= 64 ? 16 : columns >= 16 ? 8 : 1;
    s.threads = int(kWarp) * s.lanes;
  } else if (r.rows() <= kFewRows && columns > kWarp * s.vector) {
    // Few rows: each thread takes one vector, so that a row is done in one round.
    s.spread = Spread::block;
    s.threads = 64;
    while (s.threads < 1024 && int64_t(s.threads) * s.vector < columns) s.threads *= 2;
    s.lanes = s.threads;
  } else if (columns <= kWarp * 8 * s.vector) {
    s.spread = Spread::warp;
    s.threads = 128;
    s.lanes = lanes_for(ceil_div(columns, s.vector));
    s.rows_per_block = s.threads / s.lanes;
  } else {
    s.spread = Spread::block;
    const int64_t wanted = columns / s.vector / 4;
    s.threads = wanted >= 1024 ? 1024 : wanted >= 512 ? 512 : wanted >= 256 ? 256 : 128;
    s.lanes = s.threads;
  }
  s.rounds = int(std::max<int64_t>(1, ceil_div(columns, int64_t(s.lanes) * s.vector)));
  split_rows(r, s);
  if (s.spread != Spread::split) keep_in_registers(r, s);
  return s;
}

Schedule block_schedule(const Region& r, int threads, bool aligned) {
  Schedule s;
  s.spread = Spread::block;
  s.vector = aligned ? widest_vector(r) : 1;
  s.threads = s.lanes = threads;
  s.rounds = int(std::max<int64_t>(1, ceil_div(r.columns(), int64_t(threads) * s.vector)));
  keep_in_registers(r, s);
  return s;
}

Schedule warp_schedule(const Region& r, int warps, bool aligned) {
  Schedule s;
  s.spread = Spread::warp;
  s.vector = aligned ? widest_vector(r) : 1;
  s.lanes = int(kWarp);
  s.threads = warps * s.lanes;
  s.rows_per_block = warps;
  s.rounds = int(std::max<int64_t>(1, ceil_div(r.columns(), kWarp * s.vector)));
  s.in_registers = true;
  return s;
}

std::string Schedule::text() const {
  const auto name = [&]() -> std::string {
    switch (spread) {
      case Spread::elements:
        return "a thread for each";
      case Spread::warp:
        return lanes == int(kWarp) ? "a warp for each row" : cat(lanes, " lanes for each row");
      case Spread::block:
        return cat(threads, " threads for each row");
      case Spread::columns:
        return cat("a thread for each row, ", lanes, " share the columns");
      case Spread::split:
        return cat(splits, " blocks for each row");
    }
    return "";
  }();
  const int together = std::max(vector, row_vector);
  return together > 1 ? cat(name, ", vectors of ", together) : name;
}

}  // namespace rlx::cuda
