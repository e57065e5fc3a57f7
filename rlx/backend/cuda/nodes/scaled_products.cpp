// Products of fp8 with fp8: tiles on the matrix units of warps at any strides.
#include "rlx/backend/cuda/nodes/scaled_products.h"

#include <algorithm>

#include "rlx/backend/cuda/compile/architecture.h"
#include "rlx/backend/cuda/kernels/cluster_blocks.h"
#include "rlx/backend/cuda/kernels/fp8_product.h"
#include "rlx/backend/cuda/kernels/matrix_fragments.h"
#include "rlx/backend/cuda/nodes/on_first_use.h"
#include "rlx/backend/cuda/nodes/packed_rows.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/backend/cuda/rounding.h"
#include "rlx/ops/quant/scaled_matmul.h"

namespace rlx::cuda {
namespace {

constexpr int64_t kColumns = 64, kManyRows = 64, kFewRows = 16, kDeep = 128, kPitch = 144, kStages = 3,
                  kThreads = 128;  // of the kernel
constexpr int64_t kMostSplit = 8, kLeastSlices = 2;
constexpr int64_t kStep = 32;  // of k: groups that share scales are whole numbers of it

/// The step of an axis counted from the last one; 0 where it is repeated or not there.
int64_t step_of(const Arg& x, int from_last) {
  const int axis = x.shape.rank() - from_last;
  return axis < 0 || x.shape.dim(axis) == Dim(1) ? 0 : x.layout.strides[size_t(axis)];
}

}  // namespace

int64_t ScaledProduct::places() const {
  int64_t count = 1;
  for (const Axis& a : outer) count *= a.size;
  return count;
}

int64_t ScaledProduct::offset(ScaledMember member, int64_t i) const {
  int64_t at = 0;
  for (const Axis& a : outer) {
    at += i % a.size * a.steps[member];
    i /= a.size;
  }
  return at;
}

ScaledProduct read_scaled_product(const Request& r) {
  const Arg *members[kScaledMembers] = {}, &y = r.out[0];
  for (size_t i = 0; i < r.in.size(); ++i) members[i] = &r.in[i];
  members[kScaledY] = &y;
  ScaledProduct p{.x = r.in[0].dtype(), .w = r.in[1].dtype(), .y = y.dtype()};
  p.m = y.shape.dim(-2).value(), p.n = y.shape.dim(-1).value(), p.k = r.in[0].shape.dim(-1).value();
  p.w_is_fixed = r.in[1].fixed && (r.in.size() < 4 || r.in[3].fixed);
  for (int i = 0; i < kScaledMembers; ++i) {
    if (members[i]) p.steps[i] = {step_of(*members[i], 2), step_of(*members[i], 1)};
  }
  p.scaled[0] = members[kScaledOfX], p.scaled[1] = members[kScaledOfW];
  const int64_t block = r.node.as<ops::ScaledMatmul>().block;
  const bool groups = (members[kScaledOfX] && members[kScaledOfX]->shape.dim(-1) != Dim(1)) ||
                      (members[kScaledOfW] && members[kScaledOfW]->shape.dim(-2) != Dim(1));
  if (groups) p.group = block;
  if (members[kScaledOfW] && members[kScaledOfW]->shape.dim(-1) != Dim(p.n)) p.column_block = block;
  bool joins = true;  // every axis so far became rows
  for (int from_last = 3; from_last <= y.shape.rank(); ++from_last) {
    ScaledProduct::Axis a{y.shape.dim(y.shape.rank() - from_last).value(), {}};
    if (a.size == 1) continue;
    for (int i = 0; i < kScaledMembers; ++i) a.steps[i] = members[i] ? step_of(*members[i], from_last) : 0;
    const auto goes_on = [&](ScaledMember i) {
      if (p.m == 1) p.steps[i].row = a.steps[i];
      return a.steps[i] == p.m * p.steps[i].row;
    };
    joins = joins && a.steps[kScaledW] == 0 && a.steps[kScaledOfW] == 0 && goes_on(kScaledX) &&
            goes_on(kScaledOfX) && goes_on(kScaledY);
    if (joins) {
      p.m *= a.size;  // one matrix for all: more rows
    } else {
      p.outer.push_back(a);
    }
  }
  if (!p.outer.empty()) {
    const ScaledProduct::Axis in = p.outer.front();
    p.outer.erase(p.outer.begin());
    p.batch = in.size;
    for (int i = 0; i < kScaledMembers; ++i) p.steps[i].batch = in.steps[i];
  }
  return p;
}

namespace {

/// How the kernel of the matrix units of warps is made.
struct Tiles {
  int64_t rows = kManyRows, split = 1;
};

Tiles tiles_of(const Device& device, const ScaledProduct& p) {
  Tiles t{.rows = p.m <= kFewRows ? kFewRows : kManyRows};
  if (!has_clusters(device.functions().architecture())) return t;
  const int64_t wanted = 2 * device.multiprocessors(), slices = ceil_div(p.k, kDeep);
  const int64_t blocks = ceil_div(p.n, kColumns) * ceil_div(p.m, t.rows) * p.batch;
  while (t.split < kMostSplit && blocks * t.split < wanted && slices >= kLeastSlices * t.split * 2)
    t.split *= 2;
  return t;
}

// Units of warps that multiply fp8 itself; Hopper has them for groups of warps alone.
bool has_fp8_units(const Device& device) {
  const int n = architecture_number(device.functions().architecture());
  return n == 89 || n >= 100;
}

std::string_view number_of(DType t) { return t == DType::f8e4m3 ? "E4M3" : "E5M2"; }

Source source_of(const Device& device, const ScaledProduct& p, const Tiles& t, bool aligned) {
  const auto flag = [](bool b) { return b ? "true" : "false"; };
  const auto wide = [&](int64_t step, int64_t line, int64_t batch) {
    return aligned && (step == 1 || p.k == 1) && line % int64_t(kVectorBytes) == 0 &&
           batch % int64_t(kVectorBytes) == 0;
  };
  const MatrixSteps &x = p.steps[kScaledX], &w = p.steps[kScaledW];
  return {
      "fp8_product",
      cat("typedef ", memory_type(p.y), " T;\n", kFp8Numbers, "typedef ", number_of(p.x), " Left;\ntypedef ",
          number_of(p.w), " Right;\nconstexpr int kTileRows = ", t.rows, ", kGroup = ", p.group,
          ", kSplit = ", t.split, ";\nconstexpr bool kScaledRows = ", flag(p.scaled[0]),
          ", kScaledColumns = ", flag(p.scaled[1]), ", kLeftRuns = ", flag(p.k == 1 || x.column == 1),
          ", kRightRuns = ", flag(p.w_runs_along_k()), ", kLeftWide = ", flag(wide(x.column, x.row, x.batch)),
          ", kRightWide = ", flag(wide(w.row, w.column, w.batch)), ", kEarly = ", flag(p.w_is_fixed),
          ", kUnits = ", flag(has_fp8_units(device) && p.y != DType::f32), ";\n#define kClusterShape ",
          t.split > 1 ? cat("__cluster_dims__(", t.split, ", 1, 1)") : "", "\n", kMatrixFragments,
          kClusterBlocks, kFp8Product)};
}

class ScaledStep final : public Step {
 public:
  ScaledStep(const Device& device, const ScaledProduct& p)
      : device_(device), p_(p), tiles_(tiles_of(device, p)), aligned_(load(true)) {
    const int64_t times = p.batch * p.places();
    note = cat(p.x, " x ", p.w, ", tiles of ", tiles_.rows, " x ", kColumns, ", ", p.m, " x ", p.n, " x ",
               p.k, times > 1 ? cat(", ", times, " times") : "",
               tiles_.split > 1 ? cat(", k in ", tiles_.split, " parts") : "");
  }

  void run(const Launch& l) const override {
    for (int64_t i = 0; i < p_.places(); ++i) {
      std::byte* at[kScaledMembers] = {};
      const bool there[] = {true, true, p_.scaled[0], p_.scaled[1], true};
      for (int member = 0; member < kScaledMembers; ++member) {
        if (there[member])
          at[member] = (member == kScaledY ? l.out[0] : l.in[member]) +
                       p_.offset(ScaledMember(member), i) * bytes_of(ScaledMember(member));
      }
      run_one(l, at);
    }
  }

 private:
  struct Factors {
    const std::byte* at;
    int64_t row, column, batch;
    int block;
  };
  struct Params {
    const std::byte *x, *w;
    std::byte* y;
    MatrixSteps xs, ws, ys;
    Factors of_x, of_w;
    int m, n, k;
  };

  int64_t bytes_of(ScaledMember i) const {
    if (i == kScaledY) return int64_t(dtype_size(p_.y));
    return i == kScaledOfX || i == kScaledOfW ? int64_t(sizeof(float)) : 1;
  }

  FunctionRef load(bool aligned) const {
    return device_.functions().get(source_of(device_, p_, tiles_, aligned));
  }

  void run_one(const Launch& l, std::byte* const* at) const {
    const bool aligned = are_aligned({at[kScaledX], at[kScaledW]});
    const FunctionRef& function = aligned ? aligned_ : anywhere_.get([&] { return load(false); });
    const auto shared =
        size_t(std::max(kStages * (tiles_.rows + kColumns) * kPitch, tiles_.rows * kColumns * 4));
    constexpr int64_t kMostBlocks = 65535;
    for (int64_t first = 0; first < p_.batch; first += kMostBlocks) {
      const auto place = [&](ScaledMember i) {
        return at[i] ? at[i] + first * p_.steps[i].batch * bytes_of(i) : nullptr;
      };
      const auto factors = [&](ScaledMember i, int64_t block) {
        const MatrixSteps& s = p_.steps[i];
        return Factors{place(i), s.row, s.column, s.batch, int(block)};
      };
      const Params params{place(kScaledX),
                          place(kScaledW),
                          place(kScaledY),
                          p_.steps[kScaledX],
                          p_.steps[kScaledW],
                          p_.steps[kScaledY],
                          factors(kScaledOfX, 1),
                          factors(kScaledOfW, p_.column_block),
                          int(p_.m),
                          int(p_.n),
                          int(p_.k)};
      const Grid grid{ceil_div(p_.n, kColumns) * tiles_.split, ceil_div(p_.m, tiles_.rows),
                      std::min(kMostBlocks, p_.batch - first)};
      (*function)(stream_of(l).handle, grid, {kThreads}, shared, params);
    }
  }

  const Device& device_;
  ScaledProduct p_;
  Tiles tiles_;
  FunctionRef aligned_;
  OnFirstUse<FunctionRef> anywhere_;
};

Support accepts(const Request& r) {
  const DType y = r.out[0].dtype();
  if (y == DType::f64) return Support::no("results of f64");
  for (size_t i = 2; i < r.in.size(); ++i) {
    if (r.in[i].dtype() != DType::f32) return Support::no("scales of ", r.in[i].dtype());
  }
  const ScaledProduct p = read_scaled_product(r);
  if (p.group % kStep != 0) return Support::no("groups of ", p.group, " along k");
  constexpr int64_t kMost = int64_t(1) << 30, kMostRows = kFewRows * 65535;
  if (p.m > kMostRows || p.n > kMost || p.k > kMost) return Support::no("axes of 2^20 rows or 2^30 others");
  return Support::yes();
}

std::unique_ptr<Step> prepare(const Request& r) {
  const ScaledProduct p = read_scaled_product(r);
  if (auto empty = prepare_empty_sum(r.out[0].shape, p.k)) return empty;
  return on_groups_of_warps(r, p, std::make_unique<ScaledStep>(device_of(r), p));
}

}  // namespace

void add_scaled_products(KernelTable& table) {
  table.add<ops::ScaledMatmul>({"scaled_product", accepts, prepare});
}

}  // namespace rlx::cuda
