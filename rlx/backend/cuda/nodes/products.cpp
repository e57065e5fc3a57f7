// Matrix products of two operands with broadcast leading axes.
#include "rlx/backend/batch_axes.h"
#include "rlx/backend/control/body.h"
#include "rlx/backend/cuda/driver/blas.h"
#include "rlx/backend/cuda/kernels/product.h"
#include "rlx/backend/cuda/nodes/copied_tiles.h"
#include "rlx/backend/cuda/nodes/families.h"
#include "rlx/backend/cuda/nodes/few_rows.h"
#include "rlx/backend/cuda/nodes/streamed_tiles.h"
#include "rlx/backend/cuda/region/printer.h"
#include "rlx/ops/linalg/dot_general.h"
#include "rlx/ops/linalg/matmul.h"

namespace rlx::cuda {
namespace {

using backend::BatchAxis;

/// Strides of a matrix in elements, as the tiled kernel takes them.
struct MatrixStrides {
  int64_t row = 0, column = 0, batch = 0;
};

struct Product {
  DType a_type, b_type, c_type;
  int64_t m = 0, n = 0, k = 0, batch = 1;
  MatrixStrides a, b, c;
  std::vector<BatchAxis> outer;  // beside the batch
  bool b_is_fixed = false;

  int64_t places() const {
    int64_t count = 1;
    for (const BatchAxis& x : outer) count *= x.size;
    return count;
  }
};

Product describe(const Arg& a, const Arg& b, const Arg& c) {
  const auto strides = [](const Arg& x) {
    const size_t rank = x.layout.strides.size();
    return MatrixStrides{x.layout.strides[rank - 2], x.layout.strides[rank - 1]};
  };
  Product p{a.dtype(), b.dtype(), c.dtype()};
  p.b_is_fixed = b.fixed;
  p.m = c.shape.dim(-2).value();
  p.n = c.shape.dim(-1).value();
  p.k = a.shape.dim(-1).value();
  p.a = strides(a), p.b = strides(b), p.c = strides(c);
  p.outer = batch_axes(a, b, c);
  if (p.outer.empty()) return p;
  const BatchAxis in = p.outer.front();
  p.outer.erase(p.outer.begin());
  if (in.b == 0 && in.a == p.m * p.a.row && in.c == p.m * p.c.row) {
    p.m *= in.size;  // one matrix for all: more rows
  } else {
    p.batch = in.size;
    p.a.batch = in.a, p.b.batch = in.b, p.c.batch = in.c;
  }
  return p;
}

// As the library takes it; nothing when neither rows nor columns are runs.
std::optional<BlasMatrix> blas_matrix(const MatrixStrides& x, int64_t rows, int64_t columns) {
  const int64_t row = rows == 1 ? std::max<int64_t>(columns, 1) : x.row;
  const int64_t column = columns == 1 ? 1 : x.column;
  if (column == 1 && row >= columns) return BlasMatrix{false, row, x.batch};
  if ((rows == 1 || x.row == 1) && x.column >= rows) return BlasMatrix{true, x.column, x.batch};
  return std::nullopt;
}

std::shared_ptr<const BlasPlan> blas_plan(const Device& device, const Product& p) {
  const DType t = p.a_type;
  const bool known = t == DType::f32 || t == DType::f64 || t == DType::f16 || t == DType::bf16;
  if (!known || p.b_type != t || p.c_type != t || !device.gpu()) return nullptr;
  const auto a = blas_matrix(p.a, p.m, p.k), b = blas_matrix(p.b, p.k, p.n), c = blas_matrix(p.c, p.m, p.n);
  if (!a || !b || !c || c->transposed) return nullptr;
  return BlasPlan::make(
      *device.gpu(), {.dtype = t, .m = p.m, .n = p.n, .k = p.k, .batch = p.batch, .a = *a, .b = *b, .c = *c});
}

// One matrix whose rows on the left and in the result are runs.
template <class Kernel, class... Others>
std::optional<Kernel> rows_kernel(const Device& device, const Product& p, const Others&... others) {
  const bool runs = (p.k == 1 || p.a.column == 1) && (p.n == 1 || p.c.column == 1);
  if (p.b_type != p.a_type || p.c_type != p.a_type || p.batch != 1 || p.places() != 1 || !runs)
    return std::nullopt;
  return Kernel::make(device,
                      {.dtype = p.a_type,
                       .m = p.m,
                       .n = p.n,
                       .k = p.k,
                       .a_row = p.m == 1 ? 0 : p.a.row,
                       .c_row = p.c.row,
                       .b_row = p.b.row,
                       .b_column = p.b.column,
                       .b_is_fixed = p.b_is_fixed},
                      others...);
}

Source tiled_source(const Product& p) {
  const bool complex = p.a_type == DType::c64, whole = is_integer(p.a_type), wide = p.a_type == DType::f64;
  std::string text;
  if (complex) text += "struct c64 { f32 x, y; };\n";
  const auto type = [&](DType t) { return complex ? std::string("c64") : std::string(memory_type(t)); };
  text += cat("typedef ", type(p.a_type), " A;\ntypedef ", type(p.b_type), " B;\ntypedef ", type(p.c_type),
              " C;\n");
  if (complex) {
    text +=
        "typedef c64 Acc;\ninline Acc read_a(A x) { return x; }\ninline Acc read_b(B x) { return x; }\n"
        "inline void write_c(C& to, Acc x) { to = x; }\n"
        "inline Acc mad(Acc s, Acc x, Acc y) { return {fmaf(x.x, y.x, fmaf(-x.y, y.y, s.x)), fmaf(x.x, y.y, fmaf(x.y, y.x, s.y))}; }\n";
  } else {
    const char* acc = whole ? (p.c_type == DType::i32 ? "i32" : "i64") : wide ? "f64" : "f32";
    text += cat("typedef ", acc, " Acc;\ninline Acc read_a(A x) { return as_", acc,
                "(x); }\ninline Acc read_b(B x) { return as_", acc,
                "(x); }\ninline void write_c(C& to, Acc x) { put(to, x); }\n");
    text += cat("inline Acc mad(Acc s, Acc x, Acc y) { return ",
                whole ? "op_add(s, op_mul(x, y))" : "op_fma(x, y, s)", "; }\n");
  }
  return {"product", text + kProductKernel};
}

Support accepts(const Arg& x, const Arg& y, const Arg& z) {
  const DType a = x.dtype(), b = y.dtype(), c = z.dtype();
  const auto is_byte = [](DType t) { return t == DType::i8 || t == DType::u8; };
  if (is_byte(a) && is_byte(b) && c == DType::i32) return Support::yes();
  if (a == DType::bool_ || is_storage_only(a)) return Support::no("no product of ", a);
  if (b != a || c != a) return Support::no("dtypes are mixed");
  return Support::yes();
}

constexpr size_t kWorkspaceAlignment = 256;  // what the library asks of its workspace

class ProductStep final : public Step {
 public:
  ProductStep(const Device& device, const Product& p)
      : p_(p),
        few_(rows_kernel<FewRowsKernel>(device, p)),
        tiles_(rows_kernel<StreamedTiles>(device, p)),
        blas_(blas_plan(device, p)),
        copied_(few_ || tiles_ ? std::nullopt : rows_kernel<CopiedTiles>(device, p, blas_.get())) {
    if (blas_ && blas_->workspace() > 0) workspace = blas_->workspace() + kWorkspaceAlignment;
    if (copied_) workspace = std::max(workspace, copied_->workspace());
    tiled_ = device.functions().get(tiled_source(p));
    note = cat(few_      ? "few rows"
               : tiles_  ? "weights that stream"
               : copied_ ? "weights by the copy engine, " + copied_->tiling().text()
               : blas_   ? "cuBLASLt"
                         : "tiles of 64 x 64",
               ", ", p.m, " x ", p.n, " x ", p.k,
               p.batch * p.places() > 1 ? cat(", ", p.batch * p.places(), " times") : "");
  }

  void run(const Launch& l) const override {
    for (int64_t i = 0; i < p_.places(); ++i) {
      int64_t rest = i, a = 0, b = 0, c = 0;
      for (const BatchAxis& x : p_.outer) {
        const int64_t k = rest % x.size;
        rest /= x.size;
        a += k * x.a, b += k * x.b, c += k * x.c;
      }
      run_one(l, l.in[0] + a * int64_t(dtype_size(p_.a_type)), l.in[1] + b * int64_t(dtype_size(p_.b_type)),
              l.out[0] + c * int64_t(dtype_size(p_.c_type)));
    }
  }

 private:
  void run_one(const Launch& l, std::byte* a, std::byte* b, std::byte* c) const {
    if (few_ && few_->fits(a, b)) return few_->run(l, a, b, c);
    const Stream& s = stream_of(l);
    s.gpu.use();
    if (tiles_ && tiles_->fits(a, b)) return tiles_->run(s, a, b, c);
    if (copied_ && copied_->fits(a, b)) return copied_->run(s.handle, a, {b, b}, c, l.workspace);
    if (blas_ && blas_->fits(a, b, c)) {
      const auto place =
          (reinterpret_cast<uintptr_t>(l.workspace) + kWorkspaceAlignment - 1) / kWorkspaceAlignment;
      void* const aligned = workspace > 0 ? reinterpret_cast<void*>(place * kWorkspaceAlignment) : nullptr;
      return blas_->run(s.handle, a, b, c, aligned);
    }
    constexpr int64_t kMostBlocks = 65535, kMostRows = kMostBlocks * 64;
    const int64_t a_bytes = int64_t(dtype_size(p_.a_type)), b_bytes = int64_t(dtype_size(p_.b_type)),
                  c_bytes = int64_t(dtype_size(p_.c_type));
    for (int64_t first = 0; first < p_.batch; first += kMostBlocks) {
      const int64_t count = std::min(kMostBlocks, p_.batch - first);
      for (int64_t row = 0; row < p_.m; row += kMostRows) {
        const int64_t rows = std::min(kMostRows, p_.m - row);
        const Grid grid{(p_.n + 63) / 64, (rows + 63) / 64, count};
        (*tiled_)(s.handle, grid, {256}, 0, a + (first * p_.a.batch + row * p_.a.row) * a_bytes,
                  b + first * p_.b.batch * b_bytes, c + (first * p_.c.batch + row * p_.c.row) * c_bytes,
                  int(rows), int(p_.n), int(p_.k), p_.a, p_.b, p_.c);
      }
    }
  }

  Product p_;
  std::optional<FewRowsKernel> few_;
  std::optional<StreamedTiles> tiles_;
  std::shared_ptr<const BlasPlan> blas_;
  std::optional<CopiedTiles> copied_;
  FunctionRef tiled_;
};

Support accepts_matmul(const Request& r) { return accepts(r.in[0], r.in[1], r.out[0]); }

std::unique_ptr<Step> prepare(const Request& r, const Arg& a, const Arg& b, const Arg& c) {
  const auto bytes = size_t(c.shape.size_bytes());
  if (bytes == 0) return make_gpu_step("empty", [](Stream&, const Launch&) {});
  if (a.shape.dim(-1) == Dim(0)) {
    return make_gpu_step("an empty sum", [bytes](Stream& s, const Launch& l) {
      check(s.gpu.use().MemsetD8Async(device_pointer(l.out[0]), 0, bytes, s.handle), "a fill");
    });
  }
  return std::make_unique<ProductStep>(device_of(r), describe(a, b, c));
}

std::unique_ptr<Step> prepare_matmul(const Request& r) { return prepare(r, r.in[0], r.in[1], r.out[0]); }

// ---- contractions ----

// Several axes as one; nothing when no stride tells it.
struct Run {
  int64_t size = 1, stride = 0;
};
std::optional<Run> joined(const Arg& x, const std::vector<int>& axes) {
  Run out;
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t size = x.shape.dim(axes[i]).value(), stride = x.layout.strides[size_t(axes[i])];
    if (size == 1) continue;
    if (out.size > 1 && stride != out.size * out.stride) return std::nullopt;
    if (out.size == 1) out.stride = stride;
    out.size *= size;
  }
  return out;
}

std::vector<int> free_axes(const Arg& x, const std::vector<int>& contracted, const std::vector<int>& batch) {
  std::vector<int> out;
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (std::find(contracted.begin(), contracted.end(), i) == contracted.end() &&
        std::find(batch.begin(), batch.end(), i) == batch.end())
      out.push_back(i);
  }
  return out;
}

/// The operand as matrices [batch.., rows, columns].
std::optional<Arg> matrices(const Arg& x, const std::vector<int>& batch, const std::vector<int>& rows,
                            const std::vector<int>& columns) {
  const auto r = joined(x, rows), c = joined(x, columns);
  if (!r || !c) return std::nullopt;
  Dims dims;
  Arg out;
  for (const int axis : batch) {
    dims.push_back(x.shape.dim(axis));
    out.layout.strides.push_back(x.layout.strides[size_t(axis)]);
  }
  dims.push_back(r->size), dims.push_back(c->size);
  out.layout.strides.push_back(r->stride), out.layout.strides.push_back(c->stride);
  out.shape = Shape(x.dtype(), dims);
  out.fixed = x.fixed;
  return out;
}

/// The operand with its axes in this order.
Arg ordered(const Arg& x, const std::vector<int>& axes) {
  Dims dims;
  Arg out;
  for (const int axis : axes) {
    dims.push_back(x.shape.dim(axis));
    out.layout.strides.push_back(x.layout.strides[size_t(axis)]);
  }
  out.shape = Shape(x.dtype(), dims);
  return out;
}

/// An operand of a contraction as matrices; where no strides tell them, of a copy whose axes lie as they are needed.
struct Factor {
  Arg matrices;
  std::shared_ptr<Step> copy;
  size_t bytes = 0;  // of the copy
};
Factor factor_of(const Request& r, const Arg& x, const std::vector<int>& batch, const std::vector<int>& rows,
                 const std::vector<int>& columns) {
  if (auto found = matrices(x, batch, rows, columns)) return {*found, nullptr, 0};
  std::vector<int> axes = batch;
  axes.insert(axes.end(), rows.begin(), rows.end());
  axes.insert(axes.end(), columns.begin(), columns.end());
  const Arg from = ordered(x, axes);
  Arg to = from;
  to.layout = backend::Layout::row_major(to.shape.dims());
  const auto range = [](size_t begin, size_t count) {
    std::vector<int> out(count);
    for (size_t i = 0; i < count; ++i) out[i] = int(begin + i);
    return out;
  };
  return {*matrices(to, range(0, batch.size()), range(batch.size(), rows.size()),
                    range(batch.size() + rows.size(), columns.size())),
          prepare_gpu_copy(device_of(r), from, to), backend::aligned_size(size_t(to.shape.size_bytes()))};
}

Support accepts_dot_general(const Request& r) { return accepts(r.in[0], r.in[1], r.out[0]); }

std::unique_ptr<Step> prepare_dot_general(const Request& r) {
  const auto& d = r.node.as<ops::DotGeneral>();
  const Arg &x = r.in[0], &y = r.in[1];
  const Factor a =
      factor_of(r, x, d.lhs_batch, free_axes(x, d.lhs_contracting, d.lhs_batch), d.lhs_contracting);
  const Factor b =
      factor_of(r, y, d.rhs_batch, d.rhs_contracting, free_axes(y, d.rhs_contracting, d.rhs_batch));
  Dims dims(a.matrices.shape.dims().begin(), a.matrices.shape.dims().end() - 1);
  dims.push_back(b.matrices.shape.dim(-1));
  Arg c{.shape = Shape(r.out[0].dtype(), dims)};
  c.layout = backend::Layout::row_major(dims);
  std::unique_ptr<Step> product = prepare(r, a.matrices, b.matrices, c);
  if (!a.copy && !b.copy) return product;
  const std::shared_ptr<Step> inside = std::move(product);
  return make_gpu_step(
      cat(inside->note, ", of copies"),
      [=](Stream&, const Launch& l) {
        std::byte* places[] = {l.workspace, l.workspace + a.bytes};
        std::byte* in[] = {l.in[0], l.in[1]};
        const std::shared_ptr<Step> copies[] = {a.copy, b.copy};
        for (size_t i = 0; i < 2; ++i) {
          if (!copies[i]) continue;
          Launch one = l;
          one.in = l.in + i, one.out = places + i;
          copies[i]->run(one);
          in[i] = places[i];
        }
        Launch rest = l;
        rest.in = in, rest.workspace = l.workspace + a.bytes + b.bytes;
        inside->run(rest);
      },
      a.bytes + b.bytes + inside->workspace);
}

}  // namespace

void add_products(KernelTable& table) {
  table.add<ops::Matmul>({"matmul", accepts_matmul, prepare_matmul});
  table.add<ops::DotGeneral>({"dot_general", accepts_dot_general, prepare_dot_general});
}

}  // namespace rlx::cuda
