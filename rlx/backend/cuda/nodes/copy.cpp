// Copies between layouts: plain runs by the driver, transposes through tiles in shared memory, the rest
// element by element.
#include <algorithm>

#include "rlx/backend/cuda/nodes/element_kernel.h"

namespace rlx::cuda {
namespace {

struct Axis {
  int64_t size, from, to;  // strides in elements
};

std::vector<Axis> axes_of(const Arg& from, const Arg& to) {
  std::vector<Axis> axes;
  for (int i = 0; i < from.shape.rank(); ++i) {
    const int64_t size = from.shape.dim(i).value();
    if (size != 1) axes.push_back({size, from.layout.strides[size_t(i)], to.layout.strides[size_t(i)]});
  }
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return std::abs(a.to) > std::abs(b.to); });
  std::vector<Axis> out;
  for (const Axis& a : axes) {
    if (!out.empty() && out.back().from == a.size * a.from && out.back().to == a.size * a.to) {
      out.back() = {out.back().size * a.size, a.from, a.to};
    } else {
      out.push_back(a);
    }
  }
  if (out.empty()) out.push_back({1, 1, 1});
  return out;
}

std::string parameters(size_t bytes) {
  return cat("(const ", word_type(bytes), "* from, ", word_type(bytes), "* to) {\n");
}

// The offsets of place number `e` among the axes, the last one moving fastest.
std::string offsets(const std::vector<Axis>& axes, const std::string& number) {
  std::string out = cat("  i64 rest = ", number, ", x = 0, y = 0, i;\n");
  for (size_t k = axes.size(); k-- > 0;) {
    out += cat("  i = rest % ", axes[k].size, "; rest /= ", axes[k].size, "; x += i * i64(", axes[k].from,
               "); y += i * i64(", axes[k].to, ");\n");
  }
  return out;
}

Source element_copy(const std::vector<Axis>& axes, int64_t count, size_t bytes) {
  std::string text = "extern \"C\" __global__ void __launch_bounds__(256) copy" + parameters(bytes);
  text += cat("  const i64 e = i64(blockIdx.x) * 256 + threadIdx.x;\n  if (e >= ", count, ") return;\n");
  text += offsets(axes, "e") + "  to[y] = from[x];\n}\n";
  return {"copy", text};
}

// A tile of 32 x 32 with `p` the neighbours of the result and `q` those of the operand; `others` are walked
// by blockIdx.z.
Source tile_copy(const Axis& p, const Axis& q, const std::vector<Axis>& others, int64_t count, size_t bytes) {
  std::string text = "extern \"C\" __global__ void __launch_bounds__(256) transpose" + parameters(bytes);
  text += cat("  __shared__ ", word_type(bytes), " tile[32][33];\n");
  text += cat("  const i64 p0 = i64(blockIdx.x) * 32, q0 = i64(blockIdx.y) * 32;\n");
  text += cat("  for (i64 at = blockIdx.z; at < ", count, "; at += gridDim.z) {\n");
  text += offsets(others, "at");
  text += "  __syncthreads();\n";
  text += cat("  for (int k = threadIdx.y; k < 32; k += 8) if (p0 + k < ", p.size, " && q0 + threadIdx.x < ",
              q.size, ") tile[k][threadIdx.x] = from[x + (p0 + k) * i64(", p.from,
              ") + (q0 + threadIdx.x) * i64(", q.from, ")];\n");
  text += "  __syncthreads();\n";
  text += cat("  for (int k = threadIdx.y; k < 32; k += 8) if (q0 + k < ", q.size, " && p0 + threadIdx.x < ",
              p.size, ") to[y + (q0 + k) * i64(", q.to, ") + (p0 + threadIdx.x) * i64(", p.to,
              ")] = tile[threadIdx.x][k];\n");
  text += "  }\n}\n";
  return {"transpose", text};
}

}  // namespace

std::unique_ptr<Step> prepare_gpu_copy(const Device& device, const Arg& from, const Arg& to) {
  const size_t bytes = dtype_size(from.dtype());
  const int64_t count = from.shape.elements();
  if (count == 0) return make_gpu_step("nothing to copy", [](Stream&, const Launch&) {});
  std::vector<Axis> axes = axes_of(from, to);
  if (axes.size() == 1 && axes[0].to == 1 && axes[0].from == 1) {
    return make_gpu_step("one run", [n = size_t(count) * bytes](Stream& s, const Launch& l) {
      check(s.gpu.use().MemcpyDtoDAsync(device_pointer(l.out[0]), device_pointer(l.in[0]), n, s.handle),
            "a copy");
    });
  }
  const Axis p = axes.back();
  const auto q = std::find_if(axes.begin(), axes.end(), [](const Axis& a) { return a.from == 1; });
  if (p.to == 1 && p.from != 1 && q != axes.end() && p.size >= 8 && q->size >= 8) {
    const Axis inner = *q;
    axes.erase(q);
    axes.pop_back();
    int64_t others = 1;
    for (const Axis& a : axes) others *= a.size;
    const FunctionRef f = device.functions().get(tile_copy(p, inner, axes, others, bytes));
    const Grid grid{(p.size + 31) / 32, (inner.size + 31) / 32, std::min<int64_t>(others, 65535)};
    if (grid.y <= 65535) {
      return make_gpu_step("tiles of 32 x 32", [f, grid](Stream& s, const Launch& l) {
        (*f)(s.handle, grid, {32, 8}, 0, l.in[0], l.out[0]);
      });
    }
    axes = axes_of(from, to);
  }
  const FunctionRef f = device.functions().get(element_copy(axes, count, bytes));
  return make_gpu_step("element by element", [f, count](Stream& s, const Launch& l) {
    (*f)(s.handle, {(count + 255) / 256}, {256}, 0, l.in[0], l.out[0]);
  });
}

}  // namespace rlx::cuda
