// oneDNN's matrix product with packed weights, as a peer; empty without the library.
#pragma once

#ifdef RLX_BENCH_DNNL
#include <omp.h>

#include <cstdint>

#include "bench/bench.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace rlx::bench {

struct DnnlMatmul {
  using Type = dnnl::memory::data_type;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul product;
  dnnl::memory a, b, c;

  /// b_data is row-major [k, n] and is reordered into the library's own layout.
  DnnlMatmul(int64_t m, int64_t k, int64_t n, Type a_type, void* a_data, Type b_type, void* b_data,
             Type c_type, void* c_data) {
    using M = dnnl::memory;
    omp_set_num_threads(threads());
    const M::desc ad({m, k}, a_type, M::format_tag::ab), cd({m, n}, c_type, M::format_tag::ab);
    const M::desc bd({k, n}, b_type, M::format_tag::ab), any({k, n}, b_type, M::format_tag::any);
    const dnnl::matmul::primitive_desc pd({ad, any, cd}, engine);
    product = dnnl::matmul(pd);
    a = M(ad, engine, a_data);
    c = M(cd, engine, c_data);
    M plain(bd, engine, b_data);
    b = M(pd.weights_desc(), engine);
    dnnl::reorder(plain, b).execute(stream, plain, b);
    stream.wait();
  }
  void run() {
    product.execute(stream, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    stream.wait();
  }
};

}  // namespace rlx::bench
#endif
