// What a RegionProgram decides once: code, places, schedule, layout of the workspace.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/backend/cpu/vm/micro.h"
#include "rlx/region/region.h"

namespace rlx::cpu::vm {

using region::Argument;
using region::Instruction;
using region::Region;
using region::Role;

/// tiles: no reductions; pieces of rows in any order. rows: a group of rows at a time, phase after phase, lanes
/// along the columns. columns: lanes along the last row dimension, which is then the contiguous one; reductions
/// add whole lines.
enum class Schedule : uint8_t { tiles, rows, columns };
std::string_view schedule_name(Schedule);

/// Where a place points before anything is bound, relative to the workspace of a thread.
struct FixedPlace {
  int place = 0;
  int64_t offset = 0;
};
struct ConstantPlace {
  int place = 0;
  size_t index = 0;
};

/// A row value lives in an array of its own, one lane per row of the group (schedule columns: per lane of the
/// line).
struct RowValue {
  int array_place = 0;     // all rows, for the code on row values
  int element_place = -1;  // the row at hand, for the code on columns
  int64_t offset = 0;      // of the array in the workspace
  Lane lane = Lane::f32;
};

struct RowAccess {
  int argument = 0, row_value = 0;
};
struct Reduction {
  Op op = Op::reduce_sum;
  Lane lane = Lane::f32;
  int row_value = 0;
  int place = -1;             // of its vector; schedule rows
  int64_t vector_offset = 0;  // in the workspace; schedule columns: of the array of joined lines
  region::Constant start;
};

/// One phase. First the row values, for all rows of a group, then the columns of each row.
struct Pass {
  std::vector<RowAccess> row_loads, row_stores;
  Code row_code;
  Code code;
  std::vector<Reduction> reductions;
  std::vector<int> arguments;  // that the code on columns touches
  std::vector<int> elements;   // row values that it reads
};

/// How the lanes of an argument are reached.
enum class Reach : uint8_t {
  direct,   // contiguous
  one,      // schedule columns: one element for all lanes
  gathered  // through a panel
};

struct ArgumentPlan {
  int place = -1;
  int flag = kNoStreaming;  // results: the place that says whether to stream
  Reach reach = Reach::direct;
  int64_t size = 4;  // bytes of an element
  int64_t staging = 0,
          panel = 0;  // offsets in the workspace: a block for the tail, a line per row of a group
};

struct Plan {
  Region region;
  const Functions* functions = nullptr;
  Schedule schedule = Schedule::tiles;
  int width = 4;
  int64_t block = 0;  // lanes
  int64_t group = 1;  // rows at a time; columns: lanes of a line
  int64_t chunk = 0;  // columns at a time
  int places = 0;
  int moving = 0;              // the first places, those that a block moves among them
  std::vector<int64_t> moves;  // by how many bytes
  bool may_stream = false;     // results are so large that they had better go past the caches
  std::vector<FixedPlace> fixed;
  std::vector<ConstantPlace> constant_places;
  std::vector<uint64_t> constants;  // the lane in the low bytes
  std::vector<RowValue> row_values;
  std::vector<ArgumentPlan> arguments;
  std::vector<Pass> passes;
  int64_t places_offset = 0, work_offset = 0, offsets_offset = 0, list_offset = 0;
  int64_t line_elements = 0;  // of a panel
  int64_t scratch_line = 0;   // elements of a scratch row, padded
  int64_t thread_bytes = 0;
  bool gathers = false;  // some argument goes through a panel
};

Plan make_plan(const Region&, const Functions&);

/// Whether the functions of the level cover a region; what is missing if not.
std::optional<std::string> missing(const Region&, const Functions&);

/// Lanes of 4 or 8 bytes whose memory is the lane itself.
bool is_native(DType, Lane);

}  // namespace rlx::cpu::vm
