// The gated delta rule and the selective scan.
#include <cmath>

#include "rlx/backend/cuda/kernels/recurrence.h"
#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/ops/sequence/gated_delta_net.h"
#include "rlx/ops/sequence/selective_scan.h"

namespace rlx::cuda {
namespace {

int64_t size(const Arg& x, int axis) { return x.shape.dim(axis).value(); }

// `states` is the number of registers that a thread needs most of.
Support accepts(const Request& r, int64_t states, int64_t most) {
  const DType t = r.in[0].dtype();
  if (t != DType::f32 && t != DType::f16 && t != DType::bf16) return Support::no("no recurrence of ", t);
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
    if (size_t(r.in[i].shape.elements()) > size_t(1) << 31) return Support::no("2^31 elements or more");
  }
  if (states < 1 || states > most) return Support::no("states of ", states, "; 1 to ", most, " fit");
  return Support::yes();
}

/// The kernel for addresses that are multiples of 16 bytes, and the one for all others.
struct TwoWays {
  FunctionRef wide, any;

  // `text` follows the constants; rows of `row` elements are read.
  static TwoWays make(const Request& r, const std::string& entry, const std::string& constants,
                      std::string_view text, int64_t row) {
    const DType t = r.in[0].dtype();
    const auto source = [&](bool wide) {
      return Source{entry, cat("typedef ", memory_type(t), " T;\nconstexpr bool kWide = ",
                               wide ? "true" : "false", ";\n", constants, kRecurrenceShared, text)};
    };
    TwoWays out;
    out.any = device_of(r).functions().get(source(false));
    if (t == DType::f32 && row % 4 == 0) out.wide = device_of(r).functions().get(source(true));
    return out;
  }
  const Function& of(const Launch& l, int first, int second) const {
    const auto address = reinterpret_cast<uintptr_t>(l.in[first]) | reinterpret_cast<uintptr_t>(l.in[second]);
    return wide && address % 16 == 0 ? *wide : *any;
  }
};

// ---- gated delta rule ----

constexpr int64_t kMostLanes = 256, kColumns = 32, kEach = 2;  // columns of a block, of eight threads

Support accepts_delta(const Request& r) { return accepts(r, size(r.in[0], 3), kMostLanes); }

std::unique_ptr<Step> prepare_delta(const Request& r) {
  const Arg& q = r.in[0];
  const int64_t batch = size(q, 0), length = size(q, 1), heads = size(q, 2), n = size(q, 3);
  const int64_t padded = (n + 31) / 32 * 32, times = padded > 128 ? 8 : 16;
  const bool carry = r.in.size() > 5;
  const TwoWays f =
      TwoWays::make(r, "gated_delta_net",
                    cat("constexpr bool kCarry = ", carry ? "true" : "false", ";\nconstexpr int kSize = ", n,
                        ", kPadded = ", padded, ", kColumns = ", kColumns, ", kEach = ", kEach, ";\n"),
                    kGatedDeltaNet, n);
  const auto shared = size_t(2 * times * (2 * padded + kColumns + 2)) * sizeof(float);
  const Grid grid{batch * heads * ((n + kColumns - 1) / kColumns)};
  const auto scale = float(1 / std::sqrt(double(n)));
  return make_gpu_step("eight threads for two columns of the state", [=](Stream& s, const Launch& l) {
    const std::byte* const before = carry ? l.in[5] : nullptr;
    f.of(l, 0, 1)(s.handle, grid, {kColumns / kEach * 8}, shared, l.in[0], l.in[1], l.in[2], l.in[3], l.in[4],
                  before, l.out[0], l.out[1], int(length), int(heads), scale);
  });
}

// ---- selective scan ----

constexpr int64_t kMostStates = 64, kChannels = 16, kTile = 64;

Support accepts_scan(const Request& r) { return accepts(r, size(r.in[2], 1), kMostStates); }

std::unique_ptr<Step> prepare_scan(const Request& r) {
  const int64_t batch = size(r.in[0], 0), length = size(r.in[0], 1), channels = size(r.in[0], 2),
                states = size(r.in[2], 1);
  const TwoWays f = TwoWays::make(r, "selective_scan", cat("constexpr int kStates = ", states, ";\n"),
                                  kSelectiveScan, states);
  const int64_t groups = (states + 15) / 16;
  const auto shared =
      size_t(2 * (3 * kChannels * (kTile + 4) + 2 * groups * (kTile * 16 + kTile / 8 * 16))) * sizeof(float);
  const Grid grid{batch * ((channels + kChannels - 1) / kChannels)};
  return make_gpu_step("tiles of 64 times", [=](Stream& s, const Launch& l) {
    f.of(l, 3, 4)(s.handle, grid, {256}, shared, l.in[0], l.in[1], l.in[2], l.in[3], l.in[4], l.out[0],
                  int(length), int(channels));
  });
}

}  // namespace

void add_recurrence(KernelTable& table) {
  table.add<ops::GatedDeltaNet>({"gated_delta_net", accepts_delta, prepare_delta});
  table.add<ops::GatedDeltaNetCarry>({"gated_delta_net", accepts_delta, prepare_delta});
  table.add<ops::SelectiveScan>({"selective_scan", accepts_scan, prepare_scan});
}

}  // namespace rlx::cuda
