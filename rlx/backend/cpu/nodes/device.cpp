#include "rlx/backend/cpu/nodes/device.h"

#include "rlx/backend/control.h"
#include "rlx/backend/cpu/nodes/conv_codes.h"
#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/backend/cpu/nodes/fused_conv.h"
#include "rlx/backend/cpu/nodes/product_groups.h"
#include "rlx/backend/cpu/nodes/scalar_loop.h"
#include "rlx/backend/grouping.h"
#include "rlx/backend/reference.h"

namespace rlx::cpu {
namespace {

class Device final : public backend::Backend, public backend::Grouping {
 public:
  Device() {
    add_scalar_loops(kernels_);
    backend::add_control(kernels_);
    add_attention(kernels_);
    add_conv(kernels_);
    add_conv_codes(kernels_);
    add_conv_gathered(kernels_);
    add_cumulative(kernels_);
    add_dequantize(kernels_);
    add_dot_general(kernels_);
    add_factorize(kernels_);
    add_fft(kernels_);
    add_fused_conv(kernels_);
    add_fused_products(kernels_);
    add_group_norm(kernels_);
    add_grouped(kernels_);
    add_index(kernels_);
    add_loss(kernels_);
    add_matmul(kernels_);
    add_integer_products(kernels_);
    add_norm_gradients(kernels_);
    add_order(kernels_);
    add_pool(kernels_);
    add_product_groups(kernels_);
    add_quant(kernels_);
    add_quant_conv(kernels_);
    add_random(kernels_);
    add_reduce(kernels_);
    add_regions(kernels_);
    add_resize(kernels_);
    add_rope(kernels_);
    add_rows(kernels_);
    add_sequence(kernels_);
    add_shape(kernels_);
    add_solve(kernels_);
    add_splat(kernels_);
    add_windows(kernels_);
    // After regions, which take everything else that is elementwise.
    add_cast(kernels_);
    add_complex(kernels_);
    kernels_.add_last_resort(backend::reference_kernel());
  }

  std::string_view name() const override { return "cpu"; }
  std::unique_ptr<Step> prepare_copy(const Arg& from, const Arg& to, int) const override {
    return cpu::prepare_copy(from, to);
  }
  std::optional<ir::Graph> grouped(const ir::Graph& g) const override {
    return backend::with_groups(g, *this, product_groups(g));
  }
};

}  // namespace

const backend::Backend& device() {
  static const Device device;
  return device;
}

Support all_row_major(const Request& r) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  return Support::yes();
}

Support all_of(const Request& r, DType dtype) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (r.in[i].dtype() != dtype) return Support::no("operand ", i, " is ", r.in[i].dtype(), ", not ", dtype);
  }
  for (size_t i = 0; i < r.out.size(); ++i) {
    if (r.out[i].dtype() != dtype)
      return Support::no("result ", i, " is ", r.out[i].dtype(), ", not ", dtype);
  }
  return Support::yes();
}

Support plain_f32(const Request& r) {
  if (const Support s = all_of(r, DType::f32); !s) return s;
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

Support none_empty(const Request& r) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (r.in[i].shape.elements() == 0) return Support::no("operand ", i, " is empty");
  }
  for (size_t i = 0; i < r.out.size(); ++i) {
    if (r.out[i].shape.elements() == 0) return Support::no("result ", i, " is empty");
  }
  return Support::yes();
}

}  // namespace rlx::cpu
