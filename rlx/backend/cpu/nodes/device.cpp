#include "rlx/backend/cpu/nodes/device.h"

#include "rlx/backend/control.h"
#include "rlx/backend/cpu/isa.h"
#include "rlx/backend/cpu/nodes/conv_codes.h"
#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/backend/cpu/nodes/fused_conv.h"
#include "rlx/backend/cpu/nodes/product_groups.h"
#include "rlx/backend/cpu/nodes/scalar_loop.h"
#include "rlx/backend/grouping.h"
#include "rlx/backend/reference.h"

namespace rlx::cpu {
namespace {

#define RLX_FAMILY(add) \
  Family { #add, add }
constexpr Family kFamilies[] = {
    RLX_FAMILY(add_scalar_loops),
    RLX_FAMILY(backend::add_control),
    RLX_FAMILY(add_attention),
    RLX_FAMILY(add_conv),
    RLX_FAMILY(add_conv_codes),
    RLX_FAMILY(add_conv_gathered),
    RLX_FAMILY(add_cumulative),
    RLX_FAMILY(add_dequantize),
    RLX_FAMILY(add_dot_general),
    RLX_FAMILY(add_factorize),
    RLX_FAMILY(add_fft),
    RLX_FAMILY(add_fused_conv),
    RLX_FAMILY(add_fused_products),
    RLX_FAMILY(add_group_norm),
    RLX_FAMILY(add_grouped),
    RLX_FAMILY(add_index),
    RLX_FAMILY(add_loss),
    RLX_FAMILY(add_matmul),
    RLX_FAMILY(add_integer_products),
    RLX_FAMILY(add_norm_gradients),
    RLX_FAMILY(add_order),
    RLX_FAMILY(add_pool),
    RLX_FAMILY(add_product_groups),
    RLX_FAMILY(add_quant),
    RLX_FAMILY(add_quant_conv),
    RLX_FAMILY(add_random),
    RLX_FAMILY(add_reduce),
    RLX_FAMILY(add_regions),
    RLX_FAMILY(add_resize),
    RLX_FAMILY(add_rope),
    RLX_FAMILY(add_rows),
    RLX_FAMILY(add_sequence),
    RLX_FAMILY(add_shape),
    RLX_FAMILY(add_solve),
    RLX_FAMILY(add_splat),
    RLX_FAMILY(add_windows),
    // After regions, which take everything else that is elementwise.
    RLX_FAMILY(add_cast),
    RLX_FAMILY(add_complex),
};
#undef RLX_FAMILY

class Device final : public backend::Backend, public backend::Grouping {
 public:
  Device() {
    for (const Family& f : kFamilies) f.add(kernels_);
    kernels_.add_last_resort(backend::reference_kernel());
  }

  std::string_view name() const override { return "cpu"; }
  std::string description() const override {
    const int threads = default_pool().threads();
    return cat(threads, threads == 1 ? " thread, " : " threads, ", isa_name(current_isa()));
  }
  std::unique_ptr<Step> prepare_copy(const Arg& from, const Arg& to, int) const override {
    return cpu::prepare_copy(from, to);
  }
  std::optional<ir::Graph> grouped(const ir::Graph& g) const override {
    return backend::with_groups(g, *this, product_groups(g));
  }
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

const backend::Backend& device() {
  static const Device device;
  return device;
}

}  // namespace rlx::cpu
