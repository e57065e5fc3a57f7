// The families of kernels that graphs may use on a GPU. A family is one source here; device.cpp lists them.
#pragma once

#include "rlx/backend/builder.h"
#include "rlx/backend/cuda/device.h"
#include "rlx/backend/cuda/queue.h"

namespace rlx::cuda {

using backend::Arg;
using backend::Kernel;
using backend::KernelTable;
using backend::Launch;
using backend::Request;
using backend::Step;
using backend::Support;

void add_attention(KernelTable&, std::string_view architecture);
void add_casts(KernelTable&);
void add_cholesky(KernelTable&);
void add_complex(KernelTable&);
void add_control(KernelTable&);
void add_conv(KernelTable&);
void add_conv_codes(KernelTable&);
void add_conv_direct(KernelTable&);
void add_conv_groups(KernelTable&);
void add_cross_entropy(KernelTable&);
void add_encode_blocks(KernelTable&);
void add_factors(KernelTable&);
void add_fft(KernelTable&);
void add_index(KernelTable&);
void add_many_regions(KernelTable&);
void add_moves(KernelTable&);
void add_packed(KernelTable&);
void add_paged_attention(KernelTable&);
void add_product_elements(KernelTable&, const std::string& architecture);
void add_product_groups(KernelTable&, const std::string& architecture);
void add_products(KernelTable&);
void add_random(KernelTable&);
void add_recurrence(KernelTable&);
void add_regions(KernelTable&);
void add_resize(KernelTable&);
void add_rope(KernelTable&);
void add_rows_groups(KernelTable&);
void add_running(KernelTable&);
void add_scaled_products(KernelTable&);
void add_scan_products(KernelTable&, const std::string& architecture);
void add_scatter(KernelTable&);
void add_schemes(KernelTable&);
void add_solve(KernelTable&);
void add_sort(KernelTable&);
void add_splat(KernelTable&);
void add_sums_groups(KernelTable&);
void add_turned_groups(KernelTable&, const std::string& architecture);
void add_windows(KernelTable&);

/// Any node by its reference rule on the host: operands are fetched, results sent back. The last resort.
Kernel on_host_kernel();
/// A copy between any two layouts of one type.
std::unique_ptr<Step> prepare_gpu_copy(const Device&, const Arg& from, const Arg& to);

inline const Device& device_of(const Request& r) { return static_cast<const Device&>(r.builder->backend()); }

/// A step of one kernel: its run launches, with the addresses of a launch.
template <class Run>
std::unique_ptr<Step> make_gpu_step(std::string note, Run run, size_t workspace = 0) {
  auto step =
      backend::make_step([run = std::move(run)](const Launch& l) { run(stream_of(l), l); }, workspace);
  step->note = std::move(note);
  return step;
}

}  // namespace rlx::cuda
