#include "rlx/backend/cpu/vm/runner.h"

#include <algorithm>
#include <cstring>

#include "rlx/backend/cpu/vm/lanes.h"
#include "rlx/base/error.h"

namespace rlx::cpu::vm {
namespace {

constexpr int64_t kJoinEvery = 256;  // lines added up before they join the others: keeps long sums accurate
constexpr int64_t kLinesAhead = 2;   // between a line and the one that is asked for while it runs

// Pieces of lines lie apart, a row of the matrix between them, as no machine foresees.
void fetch_line(const char* at, int64_t bytes) {
  constexpr int64_t kCacheLine = 64;
  for (int64_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(at + i);
}

template <class Body>
void with_kernels(const CopyKernels& k, int64_t bytes, Body body) {
  switch (bytes) {
    case 1:
      return body(k.bytes_1, uint8_t());
    case 2:
      return body(k.bytes_2, uint16_t());
    case 4:
      return body(k.bytes_4, uint32_t());
    default:
      return body(k.bytes_8, uint64_t());
  }
}

}  // namespace

Runner::Runner(const Plan& plan, const CopyKernels& copies, std::span<std::byte* const> arguments,
               std::byte* workspace)
    : plan_(plan), copies_(copies), arguments_(arguments), workspace_(workspace) {
  places_ = reinterpret_cast<char**>(in_workspace(plan.places_offset));
  work_ = reinterpret_cast<char**>(in_workspace(plan.work_offset));
  offsets_ = reinterpret_cast<int64_t*>(in_workspace(plan.offsets_offset));
  list_ = reinterpret_cast<int64_t*>(in_workspace(plan.list_offset));
  inner_ = plan.region.dims.back();
  outer_ = inner_ == 0 ? 0 : plan.region.columns() / inner_;
  std::memset(static_cast<void*>(places_), 0, size_t(plan.moving) * sizeof(char*));
  std::memset(static_cast<void*>(work_), 0, size_t(plan.places) * sizeof(char*));
  place(kLanesLeft) = reinterpret_cast<char*>(plan.block);
  for (const FixedPlace& f : plan.fixed) place(f.place) = in_workspace(f.offset);
  for (const ConstantPlace& c : plan.constant_places)
    place(c.place) = reinterpret_cast<char*>(const_cast<uint64_t*>(&plan.constants[c.index]));
  for (size_t a = 0; a < plan.arguments.size(); ++a) {
    const int flag = plan.arguments[a].flag;
    if (flag == kNoStreaming) continue;
    const bool alone = std::find(arguments.begin(), arguments.begin() + long(a), arguments[a]) ==
                       arguments.begin() + long(a);
    if (alone && plan.arguments[a].reach == Reach::direct) place(flag) = in_workspace(0);  // not null
  }
  if (plan.schedule == Schedule::columns) return;
  for (const Pass& pass : plan.passes) {
    for (const Reduction& x : pass.reductions)
      plan.functions->begin[int(x.lane)][reduction_index(x.op)](in_workspace(x.vector_offset));
  }
}

void Runner::finish() { plan_.functions->fence(); }

/// Offset of an argument at a row-major position in the dimensions [first, last).
int64_t Runner::offset_in(int argument_number, int first, int last, int64_t index) const {
  const Argument& a = argument(argument_number);
  int64_t offset = 0;
  for (int d = last - 1; d >= first; --d) {
    offset += index % plan_.region.dims[size_t(d)] * a.strides[size_t(d)];
    index /= plan_.region.dims[size_t(d)];
  }
  return offset;
}

void Runner::find_row_offsets(int64_t row, int64_t rows) {
  const int rank = plan_.region.row_rank;
  const int64_t n = argument_count(), last = rank > 0 ? plan_.region.dims[size_t(rank - 1)] : 1;
  const int64_t first = rank > 0 ? row % last : 0;
  for (int64_t a = 0; a < n; ++a) {
    const Argument& x = argument(int(a));
    if (x.role == Role::scratch) continue;
    const int64_t stride = rank > 0 ? x.strides[size_t(rank - 1)] : 0;
    int64_t at = offset_in(int(a), 0, rank, row), within = first;
    for (int64_t r = 0; r < rows; ++r) {
      offsets_[r * n + a] = at;
      at += stride;
      if (++within < last || r + 1 == rows) continue;
      within = 0;
      at = offset_in(int(a), 0, rank, row + r + 1);
    }
  }
}

template <class OffsetOf>
void Runner::row_values(const Pass& pass, int64_t n, OffsetOf offset_of) {
  for (const RowAccess& x : pass.row_loads) {
    const RowValue& v = plan_.row_values[size_t(x.row_value)];
    for (int64_t r = 0; r < n; ++r) list_[r] = offset_of(x.argument, r);
    gather_lanes(argument(x.argument).dtype, v.lane, plan_.width, arguments_[size_t(x.argument)], list_, n,
                 workspace_ + v.offset);
  }
  if (!pass.row_code.empty()) {
    start_line();
    run(pass.row_code, blocks(n));
  }
  for (const RowAccess& x : pass.row_stores) {
    const RowValue& v = plan_.row_values[size_t(x.row_value)];
    for (int64_t r = 0; r < n; ++r) list_[r] = offset_of(x.argument, r);
    scatter_lanes(argument(x.argument).dtype, v.lane, plan_.width, workspace_ + v.offset, list_, n,
                  arguments_[size_t(x.argument)]);
  }
}

// ---- tiles and rows ----

void Runner::run_group(int64_t row, int64_t rows, int64_t begin, int64_t end) {
  find_row_offsets(row, rows);
  const int64_t n = argument_count();
  for (const Pass& pass : plan_.passes) {
    row_values(pass, rows, [&](int a, int64_t r) { return offsets_[r * n + a]; });
    if (pass.code.empty()) continue;
    if (plan_.gathers && plan_.schedule == Schedule::tiles) {
      run_panels(pass, rows, begin, end);
    } else if (!run_straight(pass, rows, begin, end)) {
      for (int64_t r = 0; r < rows; ++r) run_row(pass, r, begin, end);
    }
  }
}

// Rows of one line each that is read and written where it lies: what they have in common is found once, and a row is its
// addresses, the code and the end of its sums. False for others, and for programs with very many operands.
bool Runner::run_straight(const Pass& pass, int64_t rows, int64_t begin, int64_t end) {
  constexpr size_t kMostLines = 16, kMostSums = 4, kMostElements = 8;
  struct Line {
    char** place;
    char* from;              // where row 0 would be if it had no offset
    const int64_t* offsets;  // of the rows, in elements; null: `step` bytes from row to row
    int64_t step;
    int shift;  // of an element's size
  } lines[kMostLines];
  struct Element {
    char** place;
    char* values;
  } elements[kMostElements];
  struct Sum {
    const Reduction* reduction;
    void (*fold)(void*, void*);
    char *vector, *total, *values;
  } sums[kMostSums];
  const int64_t n = end - begin, count = argument_count();
  if (plan_.gathers || outer_ != 1 || n > plan_.chunk || pass.arguments.size() > kMostLines ||
      pass.reductions.size() > kMostSums || pass.elements.size() > kMostElements)
    return false;
  size_t line_count = 0, element_count = 0, sum_count = 0;
  const int64_t whole = n / plan_.block, full = whole * plan_.block;
  // Without a tail nothing but lines changes from row to row, and nobody asks where they began.
  const bool even = full == n;
  start_line();
  for (const int a : pass.arguments) {
    const ArgumentPlan& p = plan_.arguments[size_t(a)];
    char** const place_of = even ? &work_[p.place] : &place(p.place);
    const int shift = __builtin_ctzll(uint64_t(p.size));
    if (argument(a).role == Role::scratch) {
      lines[line_count++] = {place_of, in_workspace(p.panel) + begin * p.size, nullptr,
                             plan_.scratch_line * p.size, shift};
    } else {
      const int64_t stride = argument(a).strides[size_t(plan_.region.rank() - 1)];
      lines[line_count++] = {place_of, base(a) + begin * stride * p.size, offsets_ + a, 0, shift};
    }
  }
  for (const int e : pass.elements) {
    const RowValue& v = plan_.row_values[size_t(e)];
    elements[element_count++] = {&work_[v.element_place], in_workspace(v.offset)};
  }
  for (const Reduction& x : pass.reductions) {
    char* vector = in_workspace(x.vector_offset);
    sums[sum_count++] = {&x, plan_.functions->fold[int(x.lane)][reduction_index(x.op)], vector,
                         vector + plan_.functions->vector_bytes,
                         in_workspace(plan_.row_values[size_t(x.row_value)].offset)};
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (size_t i = 0; i < line_count; ++i) {
      const Line& l = lines[i];
      *l.place = l.from + (l.offsets ? l.offsets[r * count] << l.shift : r * l.step);
    }
    for (size_t i = 0; i < element_count; ++i) *elements[i].place = elements[i].values + r * plan_.width;
    for (size_t i = 0; i < sum_count; ++i) start_sum(*sums[i].reduction, sums[i].total);
    if (!even) start_line();
    run(pass.code, whole);
    if (!even) tail(pass, full, n);
    for (size_t i = 0; i < sum_count; ++i) {
      const Sum& s = sums[i];
      s.fold(s.vector, s.total);
      finish_sum(*s.reduction, s.total, s.values + r * plan_.width);
    }
  }
  return true;
}

// The columns [begin, end) of the innermost dimension, for every position of the outer column dimensions.
void Runner::run_row(const Pass& pass, int64_t r, int64_t begin, int64_t end) {
  bind_elements(pass, r);
  start_reductions(pass);
  for (int64_t o = 0; o < outer_; ++o) {
    for (int64_t c = begin; c < end; c += plan_.chunk) {
      const int64_t n = std::min(plan_.chunk, end - c);
      bind_row(pass, r, o, c, n);
      line(pass, n);
      fold_reductions(pass);
      if (plan_.gathers) scatter_row(pass, r, o, c, n);
    }
  }
  finish_reductions(pass, r);
}

void Runner::bind_elements(const Pass& pass, int64_t r) {
  for (const int e : pass.elements) {
    const RowValue& v = plan_.row_values[size_t(e)];
    work_[v.element_place] = in_workspace(v.offset) + r * plan_.width;
  }
}

void Runner::scatter_row(const Pass& pass, int64_t r, int64_t outer, int64_t column, int64_t n) const {
  for (const int a : pass.arguments) {
    const ArgumentPlan& p = plan_.arguments[size_t(a)];
    if (p.reach != Reach::gathered || argument(a).role != Role::out) continue;
    const int64_t stride = argument(a).strides[size_t(plan_.region.rank() - 1)];
    const int64_t at = offsets_[r * argument_count() + a] +
                       offset_in(a, plan_.region.row_rank, plan_.region.rank() - 1, outer) + column * stride;
    scatter(a, in_workspace(p.panel), base(a) + at * p.size, stride, n);
  }
}

void Runner::bind_row(const Pass& pass, int64_t r, int64_t outer, int64_t column, int64_t n) {
  const int rank = plan_.region.rank(), rows = plan_.region.row_rank;
  for (const int a : pass.arguments) {
    const ArgumentPlan& p = plan_.arguments[size_t(a)];
    if (argument(a).role == Role::scratch) {
      place(p.place) = in_workspace(p.panel) + (r * plan_.scratch_line + outer * inner_ + column) * p.size;
      continue;
    }
    const int64_t stride = argument(a).strides[size_t(rank - 1)];
    int64_t at = offsets_[r * argument_count() + a] + column * stride;
    if (rank - rows > 1) at += offset_in(a, rows, rank - 1, outer);
    char* from = base(a) + at * p.size;
    if (p.reach == Reach::gathered) {
      char* panel = in_workspace(p.panel);
      if (argument(a).role == Role::in) gather(a, from, stride, panel, n);
      from = panel;
    }
    place(p.place) = from;
  }
}

void Runner::start_sum(const Reduction& x, char* total) {
  std::memcpy(total, region::is_float(x.lane) ? static_cast<const void*>(&x.start.real) : &x.start.integer,
              8);
}

void Runner::finish_sum(const Reduction& x, const char* total, char* lane) const {
  if (x.lane == Lane::f32) {
    double sum = 0;
    std::memcpy(&sum, total, sizeof sum);
    const float rounded = float(sum);
    std::memcpy(lane, &rounded, sizeof rounded);
  } else {  // integers: the low bytes come first
    std::memcpy(lane, total, size_t(plan_.width));
  }
}

void Runner::start_reductions(const Pass& pass) {
  for (const Reduction& x : pass.reductions)
    start_sum(x, in_workspace(x.vector_offset) + plan_.functions->vector_bytes);
}

void Runner::fold_reductions(const Pass& pass) {
  for (const Reduction& x : pass.reductions) {
    char* vector = in_workspace(x.vector_offset);
    plan_.functions->fold[int(x.lane)][reduction_index(x.op)](vector, vector + plan_.functions->vector_bytes);
  }
}

void Runner::finish_reductions(const Pass& pass, int64_t r) {
  for (const Reduction& x : pass.reductions)
    finish_sum(x, in_workspace(x.vector_offset) + plan_.functions->vector_bytes,
               in_workspace(plan_.row_values[size_t(x.row_value)].offset) + r * plan_.width);
}

// Arguments whose lanes are not neighbours, for all rows of a group at once: what lies side by side across the
// rows is read and written whole.
void Runner::run_panels(const Pass& pass, int64_t rows, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; c += plan_.chunk) {
    const int64_t n = std::min(plan_.chunk, end - c);
    for (const int a : pass.arguments) {
      if (plan_.arguments[size_t(a)].reach == Reach::gathered && argument(a).role == Role::in)
        move_panel(a, rows, c, n, false);
    }
    const bool even = n % plan_.block == 0;  // as in run_straight
    if (even) start_line();
    for (int64_t r = 0; r < rows; ++r) {
      bind_elements(pass, r);
      const int64_t* offsets = offsets_ + r * argument_count();
      for (const int a : pass.arguments) {
        const ArgumentPlan& p = plan_.arguments[size_t(a)];
        char* const from = p.reach == Reach::gathered
                               ? in_workspace(p.panel) + r * plan_.line_elements * p.size
                               : base(a) + (offsets[a] + c) * p.size;
        (even ? work_[p.place] : place(p.place)) = from;
      }
      if (even) {
        run(pass.code, n / plan_.block);
      } else {
        line(pass, n);
      }
    }
    for (const int a : pass.arguments) {
      if (plan_.arguments[size_t(a)].reach == Reach::gathered && argument(a).role == Role::out)
        move_panel(a, rows, c, n, true);
    }
  }
}

void Runner::move_panel(int a, int64_t rows, int64_t column, int64_t n, bool back) const {
  const ArgumentPlan& p = plan_.arguments[size_t(a)];
  const int64_t stride = argument(a).strides[size_t(plan_.region.rank() - 1)], count = argument_count();
  const int64_t line = plan_.line_elements;
  char* panel = in_workspace(p.panel);
  bool side_by_side = stride > 0;
  for (int64_t r = 1; r < rows; ++r)
    side_by_side = side_by_side && offsets_[r * count + a] == offsets_[a] + r;
  if (!side_by_side || rows == 1) {
    for (int64_t r = 0; r < rows; ++r) {
      char* memory = base(a) + (offsets_[r * count + a] + column * stride) * p.size;
      char* row = panel + r * line * p.size;
      back ? scatter(a, row, memory, stride, n) : gather(a, memory, stride, row, n);
    }
    return;
  }
  with_kernels(copies_, p.size, [&](const auto& k, auto element) {
    using T = decltype(element);
    T* memory = reinterpret_cast<T*>(base(a)) + offsets_[a] + column * stride;
    T* lines = reinterpret_cast<T*>(panel);
    if (back) return k.transpose(lines, line, memory, stride, rows, n, false);
    const int64_t strip = k.kStripBytes / int64_t(sizeof(T));
    for (int64_t c = 0; c < n; c += strip)
      k.transpose(memory + c * stride, stride, lines + c, line, std::min(strip, n - c), rows, false);
  });
}

// ---- columns ----

void Runner::run_lines(int64_t outer, int64_t lane, int64_t lanes) {
  const int rank = plan_.region.rank(), rows = plan_.region.row_rank;
  const int64_t columns = plan_.region.columns(), padded = blocks(lanes) * plan_.block;
  for (int64_t a = 0; a < argument_count(); ++a) {
    const Argument& x = argument(int(a));
    if (x.role != Role::scratch)
      offsets_[a] = offset_in(int(a), 0, rows - 1, outer) + lane * x.strides[size_t(rows - 1)];
  }
  for (const Pass& pass : plan_.passes) {
    row_values(pass, lanes,
               [&](int a, int64_t k) { return offsets_[a] + k * argument(a).strides[size_t(rows - 1)]; });
    if (pass.code.empty()) continue;
    for (const Reduction& x : pass.reductions) {
      const RowValue& v = plan_.row_values[size_t(x.row_value)];
      start_lanes(v.lane, x.start, padded, workspace_ + v.offset);
      start_lanes(v.lane, x.start, padded, workspace_ + x.vector_offset);
    }
    for (int64_t c = 0; c < columns; ++c) {
      for (const int a : pass.arguments) {
        const ArgumentPlan& p = plan_.arguments[size_t(a)];
        if (argument(a).role == Role::scratch) {
          place(p.place) = in_workspace(p.panel) + c * plan_.scratch_line * p.size;
          continue;
        }
        char* from = base(a) + (offsets_[a] + offset_in(a, rows, rank, c)) * p.size;
        const int64_t stride = argument(a).strides[size_t(rows - 1)];
        if (p.reach == Reach::direct && c + kLinesAhead < columns)
          fetch_line(base(a) + (offsets_[a] + offset_in(a, rows, rank, c + kLinesAhead)) * p.size,
                     lanes * p.size);
        if (p.reach == Reach::gathered) {
          char* panel = in_workspace(p.panel);
          if (argument(a).role == Role::in) gather(a, from, stride, panel, lanes);
          from = panel;
        }
        place(p.place) = from;
      }
      line(pass, lanes);
      for (const int a : pass.arguments) {
        const ArgumentPlan& p = plan_.arguments[size_t(a)];
        if (p.reach != Reach::gathered || argument(a).role != Role::out) continue;
        scatter(a, in_workspace(p.panel), base(a) + (offsets_[a] + offset_in(a, rows, rank, c)) * p.size,
                argument(a).strides[size_t(rows - 1)], lanes);
      }
      if ((c + 1) % kJoinEvery == 0) join_lines(pass, padded);
    }
    join_lines(pass, padded);
    for (const Reduction& x : pass.reductions)
      std::memcpy(workspace_ + plan_.row_values[size_t(x.row_value)].offset, workspace_ + x.vector_offset,
                  size_t(padded * plan_.width));
  }
}

void Runner::join_lines(const Pass& pass, int64_t lanes) {
  for (const Reduction& x : pass.reductions) {
    const RowValue& v = plan_.row_values[size_t(x.row_value)];
    join_lanes(v.lane, x.op, workspace_ + v.offset, lanes, workspace_ + x.vector_offset);
    start_lanes(v.lane, x.start, lanes, workspace_ + v.offset);
  }
}

// ---- lines ----

void Runner::start_line() {
  for (int k = 0; k < plan_.moving; ++k) work_[k] = places_[k];
}

void Runner::run(const Code& code, int64_t blocks) {
  plan_.functions->run(code.steps.data(), code.turn, work_, blocks, plan_.moves.data(), plan_.moving);
}

void Runner::line(const Pass& pass, int64_t n) {
  const int64_t full = n / plan_.block * plan_.block;
  start_line();
  run(pass.code, full / plan_.block);
  if (full < n) tail(pass, full, n);
}

void Runner::tail(const Pass& pass, int64_t full, int64_t n) {
  const int64_t left = n - full;
  for (int k = kOwnPlaces; k < plan_.moving; ++k)
    work_[k] = places_[k] + plan_.moves[size_t(k)] * (full / plan_.block);
  for (const int a : pass.arguments) {
    const ArgumentPlan& p = plan_.arguments[size_t(a)];
    if (argument(a).role == Role::scratch || p.reach == Reach::one) continue;
    char* staging = in_workspace(p.staging);
    if (argument(a).role == Role::in) {
      std::memcpy(staging, work_[p.place], size_t(left * p.size));
      std::memset(staging + left * p.size, 0, size_t((plan_.block - left) * p.size));
    } else {
      work_[p.flag] = nullptr;
    }
    work_[p.place] = staging;
  }
  work_[kLanesLeft] = reinterpret_cast<char*>(left);
  run(pass.code, 1);
  for (const int a : pass.arguments) {
    const ArgumentPlan& p = plan_.arguments[size_t(a)];
    if (argument(a).role != Role::out) continue;
    std::memcpy(place(p.place) + full * p.size, in_workspace(p.staging), size_t(left * p.size));
  }
}

void Runner::gather(int a, const char* from, int64_t stride, char* to, int64_t n) const {
  with_kernels(copies_, plan_.arguments[size_t(a)].size, [&](const auto& k, auto element) {
    using T = decltype(element);
    k.gather(reinterpret_cast<const T*>(from), stride, reinterpret_cast<T*>(to), n);
  });
}

void Runner::scatter(int a, const char* from, char* to, int64_t stride, int64_t n) const {
  with_kernels(copies_, plan_.arguments[size_t(a)].size, [&](const auto&, auto element) {
    using T = decltype(element);
    for (int64_t i = 0; i < n; ++i)
      reinterpret_cast<T*>(to)[i * stride] = reinterpret_cast<const T*>(from)[i];
  });
}

}  // namespace rlx::cpu::vm
