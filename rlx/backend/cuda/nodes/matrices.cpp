#include "rlx/backend/cuda/nodes/matrices.h"

#include <algorithm>

#include "rlx/backend/cuda/kernels/matrix_numbers.h"
#include "rlx/backend/cuda/kernels/product.h"
#include "rlx/backend/cuda/kernels/substitute.h"

namespace rlx::cuda {

DType matrix_type(DType t) { return t == DType::f64 || t == DType::c64 ? t : DType::f32; }

std::string matrix_numbers(DType memory, DType wide) {
  const std::string types =
      is_complex(memory) ? "#define COMPLEX\n"
                         : cat("typedef ", dtype_name(memory), " X;\ntypedef ", dtype_name(wide), " W;\n");
  return types + kMatrixNumbers;
}

Support accepts_matrices(const Request& r) {
  for (size_t i = 0; i < r.in.size(); ++i) {
    if (const DType t = r.in[i].dtype(); (!is_float(t) && !is_complex(t)) || is_storage_only(t))
      return Support::no("no factors of ", t);
    if (!r.in[i].is_row_major()) return Support::no("operand ", i, " is strided");
  }
  return Support::yes();
}

size_t block_memory(const Device& device) { return size_t(device.shared_memory()) - (4 << 10); }

int threads_for_rows(int64_t n) { return n <= 8 ? 32 : n <= 32 ? 128 : n <= 64 ? 256 : 512; }

Systems Systems::of(const Shape& a) {
  Systems s{.n = a.dim(-1).value(), .batch = 1};
  for (int i = 0; i + 2 < a.rank(); ++i) s.batch *= a.dim(i).value();
  return s;
}

Systems Systems::of(const Shape& a, const Shape& b) {
  Systems s = of(a);
  s.k = s.n * s.batch == 0 ? 0 : b.elements() / (s.n * s.batch);
  return s;
}

Substitution::Substitution(const Device& device, DType memory, DType wide, const Options& o) {
  const auto flag = [](const char* name, bool on) {
    return cat("constexpr bool ", name, " = ", on ? "true" : "false", ";\n");
  };
  kernel_ = device.functions().get(
      {"substitute", cat(matrix_numbers(memory, wide), "typedef ", o.a, " A;\ntypedef ", o.b, " B;\n",
                         flag("kUnit", o.unit), flag("kConjugate", o.conjugate), flag("kResult", o.result),
                         kSubstituteKernel)});
}

void Substitution::operator()(const Stream& s, int64_t n, int64_t k, int64_t batch, const Where& w,
                              bool backwards, uint64_t fault) const {
  (*kernel_)(s.handle, {(k + 31) / 32 * batch}, {256}, 0, w.a, w.b, w.x, w.y, int(n), int(k), w.a_lies,
             w.b_lies, w.x_lies, w.y_lies, int(backwards), s.fault, fault);
}

Subtraction::Subtraction(const Device& device, DType wide, bool conjugate) : bytes_(dtype_size(wide)) {
  kernel_ = device.functions().get(
      {"product",
       cat(matrix_numbers(wide, wide), "typedef W A;\ntypedef W B;\ntypedef W C;\ntypedef W Acc;\n",
           "inline W read_a(W x) { return x; }\ninline W read_b(W x) { return ",
           conjugate ? "conjugated(x)" : "x", "; }\n",
           "inline W mad(W s, W x, W y) { return minus_product(s, x, y); }\n",
           "inline void write_c(W& to, W x) { to = to + x; }\n", kProductKernel)});
}

void Subtraction::operator()(const Stream& s, int64_t m, int64_t n, int64_t k, int64_t batch, const Matrix& a,
                             const Matrix& b, const Matrix& c) const {
  constexpr int64_t kMost = 65535;  // blocks along z
  const auto place = [&](const Matrix& x, int64_t first) {
    return static_cast<std::byte*>(x.at) + first * x.lies.batch * int64_t(bytes_);
  };
  for (int64_t first = 0; first < batch; first += kMost) {
    (*kernel_)(s.handle, {(n + 63) / 64, (m + 63) / 64, std::min(kMost, batch - first)}, {256}, 0,
               place(a, first), place(b, first), place(c, first), int(m), int(n), int(k), a.lies, b.lies,
               c.lies);
  }
}

}  // namespace rlx::cuda
