#include <algorithm>
#include <map>

#include "rlx/base/error.h"
#include "rlx/region/canonical.h"
#include "rlx/region/scalar.h"

namespace rlx::region {
namespace {

// In steps of a machine that reads native operands for nothing: what is dearer is kept, not computed again.
constexpr int kCheap = 2;
constexpr int kDear = 100;

class Placement {
 public:
  explicit Placement(Region& r) : region_(r), from_(r.code) {}

  void run() {
    find_phases();
    find_kept();
    find_stores();
    region_.code.clear();
    for (int phase = 0; phase < phases_; ++phase) {
      if (phase > 0) region_.add({.op = Op::barrier, .per_row = true});
      phase_ = phase;
      emitted_.assign(from_.size(), -1);
      emit_phase();
    }
  }

 private:
  const Instruction& at(int n) const { return from_[size_t(n)]; }
  bool native(const Instruction& load) const {
    const DType t = region_.arguments[size_t(load.argument)].dtype;
    return (load.lane == Lane::f32 && t == DType::f32) || (load.lane == Lane::f64 && t == DType::f64) ||
           (load.lane == Lane::i32 && t == DType::i32) || (load.lane == Lane::i64 && t == DType::i64);
  }

  // known_[n]: the first phase that can use value n; a reduction is known one phase behind its operand.
  void find_phases() {
    known_.resize(from_.size());
    cost_.resize(from_.size());
    depth_.resize(from_.size());
    for (size_t n = 0; n < from_.size(); ++n) {
      const Instruction& i = from_[n];
      int phase = 0,
          cost = i.op == Op::load ? int(!native(i))
                 : i.per_row      ? 0
                 : is_exact(i.op) ? 1
                                  : kDear,
          depth = 0;
      for (int k = 0; k < arity(i.op); ++k) {
        const size_t o = size_t(i.operands[size_t(k)]);
        phase = std::max(phase, known_[o]);
        if (!i.per_row) cost += cost_[o];
        depth = std::max(depth, depth_[o] + 1);
      }
      known_[n] = phase + int(is_reduction(i.op));
      cost_[n] = i.per_row ? 0 : std::min(cost, 1000);
      depth_[n] = i.per_row ? 0 : depth;
      phases_ = std::max(phases_, known_[n] + 1);
    }
  }

  /// The phase in which an instruction stands: reductions stand where their operand does.
  int stands(size_t n) const { return known_[n] - int(is_reduction(from_[n].op)); }

  void find_kept() {
    kept_.assign(from_.size(), -1);
    for (size_t n = 0; n < from_.size(); ++n) need(int(n), stands(n));
  }

  // What instruction n, standing in `phase`, needs of earlier phases.
  void need(int n, int phase) {
    for (int k = 0; k < arity(at(n).op); ++k) {
      const int o = at(n).operands[size_t(k)];
      if (at(o).per_row || at(o).op == Op::load || known_[size_t(o)] == phase) continue;
      if (cost_[size_t(o)] <= kCheap) {
        need(o, phase);
      } else if (kept_[size_t(o)] < 0) {
        kept_[size_t(o)] = int(region_.arguments.size());
        region_.arguments.push_back({.role = Role::scratch, .dtype = scratch_type(at(o).lane)});
      }
    }
  }

  static DType scratch_type(Lane lane) {
    switch (lane) {
      case Lane::mask:
        return DType::bool_;
      case Lane::i32:
        return DType::i32;
      case Lane::i64:
        return DType::i64;
      case Lane::f32:
        return DType::f32;
      default:
        return DType::f64;
    }
  }

  void find_stores() {
    stores_.resize(from_.size());
    for (size_t n = 0; n < from_.size(); ++n) {
      if (from_[n].op == Op::store && !from_[n].per_row)
        stores_[size_t(from_[n].operands[0])].push_back(int(n));
    }
  }

  // A result that is stored as soon as it is known need not be kept. But it may then take the memory of those
  // inputs only that nothing reads any more: one that lies alike and was read must be left to it.
  bool may_store_now(int store) const {
    const Argument& to = region_.arguments[size_t(at(store).argument)];
    bool alike = false;
    for (size_t a = 0; a < region_.arguments.size(); ++a) {
      const Argument& from = region_.arguments[a];
      if (from.role != Role::in || from.strides != to.strides ||
          dtype_size(from.dtype) != dtype_size(to.dtype))
        continue;
      alike = true;
      if (is_read_up(int(a))) return true;
    }
    return !alike;
  }
  bool is_read_up(int argument) const {
    bool read = false;
    for (size_t n = 0; n < from_.size(); ++n) {
      for (int k = 0; k < arity(from_[n].op); ++k) {
        const Instruction& o = at(from_[n].operands[size_t(k)]);
        if (o.op != Op::load || o.argument != argument || stands(n) != phase_) continue;
        if (emitted_[n] < 0 && !row_values_.contains(int(n))) return false;
        read = true;
      }
    }
    return read;
  }

  // Row values first, then what the phase is for: reductions, kept values and stores, in their order.
  void emit_phase() {
    for (size_t n = 0; n < from_.size(); ++n) {
      if (from_[n].per_row && !is_reduction(from_[n].op) && stands(n) == phase_) emit_row(int(n));
    }
    for (size_t n = 0; n < from_.size(); ++n) {
      if (from_[n].per_row && !is_reduction(from_[n].op)) continue;
      if (stands(n) != phase_) continue;
      if (from_[n].op == Op::store || is_reduction(from_[n].op)) emit(int(n));
      if (kept_[n] >= 0) emit(int(n));
    }
  }

  void emit_row(int n) {
    Instruction i = at(n);
    for (int k = 0; k < arity(i.op); ++k) i.operands[size_t(k)] = row_values_.at(i.operands[size_t(k)]);
    row_values_[n] = region_.add(i);
  }

  int emit(int n) {
    if (const auto row = row_values_.find(n); row != row_values_.end()) return row->second;
    if (emitted_[size_t(n)] >= 0) return emitted_[size_t(n)];
    Instruction i = at(n);
    if (kept_[size_t(n)] >= 0 && known_[size_t(n)] < phase_) {
      i = {.op = Op::load, .lane = i.lane, .argument = kept_[size_t(n)]};
      return emitted_[size_t(n)] = region_.add(i);
    }
    int order[3] = {0, 1, 2};
    std::stable_sort(order, order + arity(i.op), [&](int a, int b) {
      return depth_[size_t(i.operands[size_t(a)])] > depth_[size_t(i.operands[size_t(b)])];
    });
    auto operands = i.operands;
    for (int k = 0; k < arity(i.op); ++k) operands[size_t(order[k])] = emit(i.operands[size_t(order[k])]);
    if (emitted_[size_t(n)] >= 0) return emitted_[size_t(n)];  // a store that followed its value
    i.operands = operands;
    const int made = region_.add(i);
    if (is_reduction(i.op)) {
      row_values_[n] = made;
    } else {
      emitted_[size_t(n)] = made;
    }
    if (kept_[size_t(n)] >= 0)
      region_.add(
          {.op = Op::store, .lane = i.lane, .operands = {made, -1, -1}, .argument = kept_[size_t(n)]});
    for (const int store : stores_[size_t(n)]) {
      if (stands(size_t(store)) == phase_ && emitted_[size_t(store)] < 0 && may_store_now(store)) emit(store);
    }
    return made;
  }

  Region& region_;
  const std::vector<Instruction> from_;
  std::vector<int> known_, cost_, depth_, kept_, emitted_;
  std::vector<std::vector<int>> stores_;  // of each value
  std::map<int, int> row_values_;         // old place -> new place
  int phases_ = 1, phase_ = 0;
};

}  // namespace

void place_phases(Region& r) { Placement(r).run(); }

}  // namespace rlx::region
