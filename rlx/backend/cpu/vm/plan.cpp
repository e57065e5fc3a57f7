#include "rlx/backend/cpu/vm/plan.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/vm/emit.h"
#include "rlx/base/error.h"

namespace rlx::cpu::vm {
namespace {

constexpr int64_t kPanelColumns = 256;  // of a gathered argument at a time
constexpr int64_t kPanelRows = 16;      // a cache line of f32 across the rows
constexpr int64_t kChunk = 8192;        // columns between two joins of a reduction into its total
// Of all rows of a group, so that the next phase finds them in the second cache. Between two phases of a group the machine waits
// for sums and for the code on row values: groups that fit the first cache would wait too often.
constexpr int64_t kGroupBytes = 128 << 10;
constexpr int64_t kLine = 512;  // lanes, schedule columns
// From so many bytes on, operands are asked for. In a shared cache that costs up to a tenth, from memory it gains up to two thirds, and what a
// step of training updates comes from memory though a single weight would fit.
constexpr int64_t kAskedBytes = 8 << 20;
constexpr int64_t kAskedAhead = 8 << 10;  // bytes between a block and the one that is asked for with it
constexpr int64_t kLargestColumnScratch = 4 << 20;

class Planner {
 public:
  Planner(const Region& r, const Functions& f) {
    plan_.region = r;
    plan_.functions = &f;
    plan_.width = r.width();
    plan_.block = f.block_bytes / plan_.width;
  }

  Plan run() {
    choose_schedule();
    choose_sizes();
    plan_.places = kOwnPlaces;
    add_arguments();
    add_flags();
    add_row_arrays();
    plan_.moving = plan_.places;
    plan_.moves.resize(size_t(plan_.moving), 0);
    add_row_elements();
    add_passes();
    add_asks();
    plan_.places_offset = take(plan_.places * int64_t(sizeof(char*)));
    plan_.work_offset = take(plan_.places * int64_t(sizeof(char*)));
    const int64_t rows = plan_.schedule == Schedule::columns ? 1 : plan_.group;
    plan_.offsets_offset = take(rows * int64_t(plan_.arguments.size()) * 8);
    plan_.list_offset = take(plan_.group * 8);
    return std::move(plan_);
  }

 private:
  int64_t take(int64_t bytes) {
    const int64_t at = plan_.thread_bytes;
    plan_.thread_bytes += int64_t(round_up(size_t(bytes)));
    return at;
  }
  int new_place() { return plan_.places++; }
  /// A place that moves with the elements, so many bytes each.
  int new_place(int64_t element) {
    const int place = new_place();
    plan_.moves.resize(size_t(plan_.places), 0);
    plan_.moves.back() = element * plan_.block;
    return place;
  }
  int last_row() const { return plan_.region.row_rank - 1; }
  int last_column() const { return plan_.region.rank() - 1; }

  /// The dimension along which lanes lie.
  int lane_dimension() const { return plan_.schedule == Schedule::columns ? last_row() : last_column(); }

  // Lanes go where memory is contiguous: along the columns, unless the last row dimension is it.
  void choose_schedule() {
    const Region& r = plan_.region;
    if (!r.has_reduction() && r.row_rank == r.rank() - 1) return;
    plan_.schedule = Schedule::rows;
    if (!r.has_reduction() || r.row_rank == 0) return;
    int64_t along_rows = 0, along_columns = 0, kept = 0;
    for (const Argument& a : r.arguments) {
      const int64_t size = int64_t(dtype_size(a.dtype));
      if (a.role == Role::scratch) kept += size;
      if (a.role == Role::scratch || r.is_per_row(a)) continue;
      if (a.strides[size_t(last_column())] == 1) along_columns += size;
      if (a.strides[size_t(last_row())] == 1) along_rows += size;
    }
    if (along_rows > along_columns && kept * r.columns() * kLine <= kLargestColumnScratch)
      plan_.schedule = Schedule::columns;
  }

  void choose_sizes() {
    const Region& r = plan_.region;
    for (const Argument& a : r.arguments)
      plan_.arguments.push_back({.reach = reach(a), .size = int64_t(dtype_size(a.dtype))});
    for (const ArgumentPlan& a : plan_.arguments) plan_.gathers = plan_.gathers || a.reach == Reach::gathered;
    const int64_t columns = r.columns();
    if (plan_.schedule == Schedule::columns) {
      const int64_t lanes = r.dims[size_t(last_row())];
      plan_.group = std::min(kLine, (lanes + plan_.block - 1) / plan_.block * plan_.block);
      plan_.chunk = columns;
      plan_.line_elements = plan_.group;
      return;
    }
    int64_t row_bytes = 1;  // what all rows share stays in the caches anyway
    for (const Argument& a : r.arguments) {
      bool moves = a.role == Role::scratch;
      for (int d = 0; d < r.row_rank && a.strides[size_t(last_column())] != 0; ++d)
        moves = moves || a.strides[size_t(d)] != 0;
      if (moves) row_bytes += columns * int64_t(dtype_size(a.dtype));
    }
    plan_.group = std::clamp<int64_t>(kGroupBytes / row_bytes, 1, plan_.block);
    plan_.chunk = plan_.gathers ? kPanelColumns : kChunk;
    if (plan_.schedule == Schedule::tiles && plan_.gathers) plan_.group = std::min(kPanelRows, plan_.block);
    plan_.group = std::max<int64_t>(1, std::min(plan_.group, r.rows()));
    plan_.line_elements = plan_.gathers ? kPanelColumns : 0;
  }

  Reach reach(const Argument& a) const {
    const Region& r = plan_.region;
    if (a.role == Role::scratch || r.is_per_row(a)) return Reach::direct;
    const int64_t stride = a.strides[size_t(lane_dimension())];
    if (stride == 1 || r.dims[size_t(lane_dimension())] <= 1) return Reach::direct;
    if (plan_.schedule == Schedule::columns && stride == 0 && a.role == Role::in) {
      const Lane lane = loaded_as(a);
      if (is_native(a.dtype, lane)) return Reach::one;
    }
    return Reach::gathered;
  }

  Lane loaded_as(const Argument& a) const {
    for (const Instruction& i : plan_.region.code) {
      if (i.op == Op::load && &plan_.region.arguments[size_t(i.argument)] == &a) return i.lane;
    }
    return Lane::mask;
  }

  void add_arguments() {
    const Region& r = plan_.region;
    for (size_t n = 0; n < r.arguments.size(); ++n) {
      const Argument& a = r.arguments[n];
      ArgumentPlan& p = plan_.arguments[n];
      if (r.is_per_row(a)) continue;
      p.place = new_place(p.reach == Reach::one ? 0 : p.size);
      if (a.role == Role::scratch) {
        // A padded row for each row of the group; schedule columns: a line for each column.
        const bool lanes_are_rows = plan_.schedule == Schedule::columns;
        plan_.scratch_line = lanes_are_rows ? plan_.group : r.columns() + plan_.block;
        p.panel = take((lanes_are_rows ? r.columns() : plan_.group) * plan_.scratch_line * p.size);
        continue;
      }
      p.staging = take(plan_.block * p.size);
      if (p.reach == Reach::gathered) {
        const int64_t rows = plan_.schedule == Schedule::tiles ? plan_.group : 1;
        p.panel = take(rows * plan_.line_elements * p.size);
      }
    }
  }

  // Results whose memory is too large for the caches can be streamed; whether they are, a run decides.
  void add_flags() {
    plan_.may_stream = plan_.schedule != Schedule::columns && too_large_for_caches(bytes_moved(plan_.region));
    if (!plan_.may_stream) return;
    for (size_t n = 0; n < plan_.arguments.size(); ++n) {
      ArgumentPlan& p = plan_.arguments[n];
      if (p.place >= 0 && plan_.region.arguments[n].role == Role::out) p.flag = new_place();
    }
  }

  static int64_t bytes_moved(const Region& r) {
    int64_t bytes = 0;
    for (const Argument& a : r.arguments) {
      if (a.role == Role::scratch) continue;
      int64_t n = int64_t(dtype_size(a.dtype));
      for (int d = 0; d < r.rank(); ++d) n *= a.strides[size_t(d)] == 0 ? 1 : r.dims[size_t(d)];
      bytes += n;
    }
    return bytes;
  }

  // Row values are arrays; a constant is one if it is stored for each row.
  void add_row_arrays() {
    const auto& code = plan_.region.code;
    row_value_.assign(code.size(), -1);
    for (size_t n = 0; n < code.size(); ++n) {
      const Instruction& i = code[n];
      if (!i.per_row || i.op == Op::barrier || i.op == Op::constant) continue;
      const size_t value = i.op == Op::store ? size_t(i.operands[0]) : n;
      if (row_value_[value] >= 0) continue;
      row_value_[value] = int(plan_.row_values.size());
      RowValue v{.array_place = new_place(plan_.width), .lane = code[value].lane};
      v.offset = take(std::max(plan_.group, plan_.block) * plan_.width);
      plan_.fixed.push_back({v.array_place, v.offset});
      plan_.row_values.push_back(v);
    }
  }

  // One element for all lanes: constants, and the row value of the row at hand.
  void add_row_elements() {
    const auto& code = plan_.region.code;
    constant_place_.assign(code.size(), -1);
    for (size_t n = 0; n < code.size(); ++n) {
      if (code[n].op != Op::constant) continue;
      constant_place_[n] = new_place();
      plan_.constant_places.push_back({constant_place_[n], plan_.constants.size()});
      plan_.constants.push_back(bits(code[n]));
    }
    if (plan_.schedule == Schedule::columns) return;
    for (RowValue& v : plan_.row_values) v.element_place = new_place();
  }

  uint64_t bits(const Instruction& i) const {
    const auto raw = [](auto x) {
      uint64_t b = 0;
      std::memcpy(&b, &x, sizeof x);
      return b;
    };
    switch (i.lane) {
      case Lane::f32:
        return raw(float(i.constant.real));
      case Lane::f64:
        return raw(i.constant.real);
      case Lane::mask:
        return i.constant.integer != 0 ? ~uint64_t(0) : 0;
      default:
        return uint64_t(i.constant.integer);
    }
  }

  std::optional<Resident> resident(int n, bool on_rows) const {
    const Instruction& i = plan_.region.code[size_t(n)];
    if (constant_place_[size_t(n)] >= 0) return Resident{constant_place_[size_t(n)], true};
    if (row_value_[size_t(n)] >= 0) {
      const RowValue& v = plan_.row_values[size_t(row_value_[size_t(n)])];
      if (on_rows || plan_.schedule == Schedule::columns) return Resident{v.array_place, false};
      return Resident{v.element_place, true};
    }
    if (i.op != Op::load || !is_native(plan_.region.arguments[size_t(i.argument)].dtype, i.lane))
      return std::nullopt;
    const ArgumentPlan& a = plan_.arguments[size_t(i.argument)];
    return Resident{a.place, a.reach == Reach::one};
  }

  int new_slot() {
    const int place = new_place();
    // Turns of eight blocks of AVX-512 have 4 KB: a load from one slot would wait for the store to another whose address has the
    // same low bits. A block and a line more set slots apart.
    const int64_t apart = plan_.functions->block_bytes + 64;
    plan_.fixed.push_back({place, take(plan_.functions->block_bytes * kBlocksPerTurn + apart)});
    return place;
  }

  void add_passes() {
    const auto& code = plan_.region.code;
    Emitter on_rows(plan_, [this](int n) { return resident(n, true); }, [this] { return new_slot(); });
    Emitter on_columns(plan_, [this](int n) { return resident(n, false); }, [this] { return new_slot(); });
    for (size_t n = 0; n < code.size(); ++n) {
      Pass pass;
      std::vector<int> rows, columns;
      for (; n < code.size() && code[n].op != Op::barrier; ++n) sort_out(int(n), pass, rows, columns);
      pass.row_code = on_rows.emit(
          rows, [](int) { return -1; },
          [this](int i) {
            return std::optional<int>(plan_.row_values[size_t(row_value_[size_t(i)])].array_place);
          });
      size_t next = 0;
      pass.code = on_columns.emit(
          columns, [&](int) { return pass.reductions[next++].place; }, [](int) { return std::nullopt; });
      if (plan_.schedule != Schedule::columns) pass.elements = row_values_read(columns);
      plan_.passes.push_back(std::move(pass));
    }
  }

  // A block of one operand after a block of another, by functions that other operands share, is nothing that a machine foresees. Where the
  // caches do not hold them, operands are asked for: with every block one that comes a little later, or where there are groups, with the
  // last pass that reads the operand the next group, which so arrives while nothing else waits for memory.
  void add_asks() {
    if (plan_.schedule == Schedule::columns || bytes_moved(plan_.region) < kAskedBytes) return;
    const Region& r = plan_.region;
    for (size_t n = 0; n < plan_.arguments.size(); ++n) {
      const ArgumentPlan& p = plan_.arguments[n];
      if (r.arguments[n].role != Role::in || p.place < 0 || p.reach != Reach::direct ||
          !is_dense(r.arguments[n]))
        continue;
      const int64_t ahead =
          plan_.schedule == Schedule::rows ? plan_.group * r.columns() * p.size : kAskedAhead;
      const auto reads = [&](const Pass& pass) {
        return !pass.code.empty() &&
               std::find(pass.arguments.begin(), pass.arguments.end(), int(n)) != pass.arguments.end();
      };
      const auto pass = std::find_if(plan_.passes.rbegin(), plan_.passes.rend(), reads);
      if (pass == plan_.passes.rend()) continue;
      std::vector<Micro>& steps = pass->code.steps;
      steps.insert(steps.begin(), {.run = plan_.functions->ask[ask_index(p.size, plan_.width)],
                                   .a = in_bytes(p.place),
                                   .c = uint32_t(ahead)});
      ++steps.back().before;
      pass->code.turn = kBlocksPerTurn;  // no instruction is alone
    }
  }

  // Whether the elements lie one behind the other in the order of the dimensions.
  bool is_dense(const Argument& a) const {
    int64_t stride = 1;
    for (int d = plan_.region.rank() - 1; d >= 0; --d) {
      if (a.strides[size_t(d)] != stride && plan_.region.dims[size_t(d)] != 1) return false;
      stride *= plan_.region.dims[size_t(d)];
    }
    return true;
  }

  std::vector<int> row_values_read(const std::vector<int>& columns) const {
    std::vector<int> read;
    for (const int n : columns) {
      const Instruction& i = plan_.region.code[size_t(n)];
      for (int k = 0; k < region::arity(i.op); ++k) {
        const int o = i.operands[size_t(k)], v = row_value_[size_t(o)];
        if (v >= 0 && constant_place_[size_t(o)] < 0 && std::find(read.begin(), read.end(), v) == read.end())
          read.push_back(v);
      }
    }
    return read;
  }

  void sort_out(int n, Pass& pass, std::vector<int>& rows, std::vector<int>& columns) {
    const Instruction& i = plan_.region.code[size_t(n)];
    if (i.op == Op::constant) return;
    if (region::is_reduction(i.op)) {
      Reduction r{.op = i.op, .lane = i.lane, .row_value = row_value_[size_t(n)], .start = i.constant};
      if (plan_.schedule == Schedule::columns) {
        r.place = plan_.row_values[size_t(r.row_value)].array_place;
        r.vector_offset = take(plan_.group * plan_.width);
      } else {
        r.place = new_place();
        r.vector_offset = take(plan_.functions->vector_bytes + 8);  // and its total
        plan_.fixed.push_back({r.place, r.vector_offset});
      }
      pass.reductions.push_back(r);
      columns.push_back(n);
    } else if (!i.per_row) {
      if (i.argument >= 0 &&
          std::find(pass.arguments.begin(), pass.arguments.end(), i.argument) == pass.arguments.end())
        pass.arguments.push_back(i.argument);
      columns.push_back(n);
    } else if (i.op == Op::load) {
      pass.row_loads.push_back({i.argument, row_value_[size_t(n)]});
    } else if (i.op == Op::store) {
      const int value = i.operands[0];
      // The code on row values fills the array of a constant.
      if (plan_.region.code[size_t(value)].op == Op::constant) rows.push_back(value);
      pass.row_stores.push_back({i.argument, row_value_[size_t(value)]});
    } else {
      rows.push_back(n);
    }
  }

  Plan plan_;
  std::vector<int> row_value_, constant_place_;
};

}  // namespace

std::string_view schedule_name(Schedule s) {
  return s == Schedule::tiles ? "tiles" : s == Schedule::rows ? "rows" : "columns";
}

bool is_native(DType t, Lane lane) {
  return (lane == Lane::f32 && t == DType::f32) || (lane == Lane::f64 && t == DType::f64) ||
         (lane == Lane::i32 && t == DType::i32) || (lane == Lane::i64 && t == DType::i64);
}

Plan make_plan(const Region& r, const Functions& f) { return Planner(r, f).run(); }

std::optional<std::string> missing(const Region& r, const Functions& f) {
  const bool wide = r.width() == 8;
  for (size_t n = 0; n < r.code.size(); ++n) {
    const Instruction& i = r.code[n];
    const auto lane = [&](int k) { return int(r.code[size_t(i.operands[size_t(k)])].lane); };
    bool has = true;
    if (i.op == Op::load)
      has = i.per_row || f.load[wide][int(i.lane)][int(r.arguments[size_t(i.argument)].dtype)];
    if (i.op == Op::store)
      has = i.per_row || f.store[wide][int(i.lane)][int(r.arguments[size_t(i.argument)].dtype)][0];
    if (i.op == Op::convert) {
      has = f.convert[wide][lane(0)][int(i.lane)];
    } else if (region::is_unary(i.op)) {
      has = f.unary[int(i.lane)][unary_index(i.op)][0];
    } else if (region::is_binary(i.op)) {
      has = f.binary[lane(0)][binary_index(i.op)][0][0];
    } else if (region::is_reduction(i.op)) {
      has = f.reduce[int(i.lane)][reduction_index(i.op)][0][0];
    }
    if (!has) return cat("%", n, " ", region::op_name(i.op), " has no form for ", region::lane_name(i.lane));
  }
  return std::nullopt;
}

}  // namespace rlx::cpu::vm
