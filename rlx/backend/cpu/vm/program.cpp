#include "rlx/backend/cpu/vm/program.h"

#include <algorithm>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/copy.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/vm/plan.h"
#include "rlx/backend/cpu/vm/runner.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE(vm::Functions, vm_functions)
RLX_ISA_TABLE(CopyKernels, copy_kernels)

namespace {

using vm::Plan;
using vm::Schedule;

constexpr int64_t kPiece = 4096;  // columns of a tile

/// The pieces of work of a plan: groups of rows, cut along the columns for tiles; lines for schedule columns.
struct Pieces {
  int64_t across = 1, down = 1;  // pieces per group, groups
  int64_t group = 1, piece = 1;  // rows or lanes of a group, columns of a piece
  int64_t grain = 1;             // pieces that are worth a thread
  int64_t count() const { return across * down; }
};

// Per element, roughly: instructions, long functions counted tenfold.
int64_t work_per_element(const Plan& plan) {
  int64_t work = 0;
  for (const vm::Instruction& i : plan.region.code) {
    if (!i.per_row) work += i.op >= vm::Op::exp && i.op <= vm::Op::softplus ? 10 : 1;
  }
  return std::max<int64_t>(work, 1);
}

Pieces pieces_of(const Plan& plan, int threads) {
  const region::Region& r = plan.region;
  Pieces p;
  int64_t elements = 0;
  if (plan.schedule == Schedule::columns) {
    const int64_t lanes = r.dims[size_t(r.row_rank - 1)];
    const int64_t outer = lanes == 0 ? 0 : r.rows() / lanes;
    p.group = std::min(
        plan.group,
        std::max(plan.block,
                 ceil_div(ceil_div(lanes, std::max<int64_t>(1, 2 * threads / std::max<int64_t>(outer, 1))),
                          plan.block) *
                     plan.block));
    p.across = ceil_div(lanes, p.group);
    p.down = outer;
    elements = p.group * r.columns();
  } else {
    p.group = plan.group;
    if (plan.schedule == Schedule::rows)  // enough groups for all threads
      p.group = std::min(p.group, std::max<int64_t>(1, ceil_div(r.rows(), 4 * int64_t(threads))));
    p.down = ceil_div(r.rows(), p.group);
    p.piece =
        plan.schedule == Schedule::rows ? r.columns() : std::max<int64_t>(1, std::min(kPiece, r.columns()));
    if (plan.schedule == Schedule::tiles) p.across = ceil_div(r.columns(), p.piece);
    elements = p.group * p.piece;
  }
  p.grain = ceil_div(kGrain * 4, std::max<int64_t>(1, elements * work_per_element(plan)));
  return p;
}

// Neighbouring pieces of one group are one piece.
void run_pieces(const Plan& plan, const Pieces& p, vm::Runner& runner, int64_t begin, int64_t end) {
  const region::Region& r = plan.region;
  for (int64_t i = begin; i < end;) {
    const int64_t down = i / p.across, across = i % p.across;
    if (plan.schedule == Schedule::columns) {
      const int64_t lanes = r.dims[size_t(r.row_rank - 1)], lane = across * p.group;
      runner.run_lines(down, lane, std::min(p.group, lanes - lane));
      ++i;
      continue;
    }
    const int64_t last = std::min(end, (down + 1) * p.across), row = down * p.group;
    const int64_t columns = plan.schedule == Schedule::rows ? r.dims.back() : r.columns();
    const int64_t from = plan.schedule == Schedule::rows ? 0 : across * p.piece;
    const int64_t to =
        plan.schedule == Schedule::rows ? columns : std::min(columns, (last - down * p.across) * p.piece);
    runner.run_group(row, std::min(p.group, r.rows() - row), from, to);
    i = last;
  }
}

}  // namespace

std::optional<std::string> RegionProgram::refuses(const region::Region& r) {
  if (const auto wrong = region::problem(r)) return wrong;
  return vm::missing(r, vm_functions());
}

RegionProgram::RegionProgram(const region::Region& r) {
  const auto why = refuses(r);
  RLX_CHECK(!why, "region program: ", *why);
  plan_ = std::make_unique<const Plan>(vm::make_plan(r, vm_functions()));
}
RegionProgram::~RegionProgram() = default;
RegionProgram::RegionProgram(RegionProgram&&) noexcept = default;
RegionProgram& RegionProgram::operator=(RegionProgram&&) noexcept = default;

size_t RegionProgram::workspace(int threads) const {
  return size_t(plan_->thread_bytes) * size_t(std::max(threads, 1));
}

std::string_view RegionProgram::schedule() const { return vm::schedule_name(plan_->schedule); }

void RegionProgram::run(Team team, std::span<std::byte* const> arguments, std::byte* workspace) const {
  const Plan& plan = *plan_;
  const region::Region& r = plan.region;
  if (r.rows() == 0 || (r.columns() == 0 && plan.schedule == Schedule::tiles)) return;
  const Pieces p = pieces_of(plan, team.threads());
  const CopyKernels& copies = copy_kernels();
  const int parts = int(std::min<int64_t>(team.threads(), ceil_div(p.count(), p.grain)));
  team.run(parts, [&](int part) {
    const Range range = split_range(p.count(), 1, parts, part);
    vm::Runner runner(plan, copies, arguments, workspace + size_t(part) * size_t(plan.thread_bytes));
    run_pieces(plan, p, runner, range.begin, range.end);
    if (plan.may_stream) runner.finish();
  });
}

bool RegionProgram::may_overwrite(int result, int input) const {
  const region::Region& r = plan_->region;
  const int out = r.count(region::Role::in) + result;
  const region::Argument &to = r.arguments[size_t(out)], &from = r.arguments[size_t(input)];
  if (to.strides != from.strides || dtype_size(to.dtype) != dtype_size(from.dtype)) return false;
  // Operands are read where they are used, so the last use counts, not the load.
  int stored = -1, read = -1;
  for (int n = 0; n < int(r.code.size()); ++n) {
    const region::Instruction& i = r.code[size_t(n)];
    if (i.op == region::Op::store && i.argument == out && stored < 0) stored = n;
    if (i.op == region::Op::load && i.argument == input) read = n;
    for (int k = 0; k < region::arity(i.op); ++k) {
      const region::Instruction& o = r.code[size_t(i.operands[size_t(k)])];
      if (o.op == region::Op::load && o.argument == input) read = n;
    }
  }
  return read <= stored;
}

}  // namespace rlx::cpu
