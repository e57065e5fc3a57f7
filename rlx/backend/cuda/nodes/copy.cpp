// Copies between layouts: plain runs by the driver, transposes through tiles in shared memory, the rest by runs of up to 16
// bytes.
#include <algorithm>
#include <mutex>

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
std::string offsets(const std::vector<Axis>& axes, const std::string& number,
                    std::string_view index = "i64") {
  std::string out = cat("  ", index, " rest = ", number, ", i;\n  i64 x = 0, y = 0;\n");
  for (size_t k = axes.size(); k-- > 0;) {
    out += cat("  i = rest % ", axes[k].size, "; rest /= ", axes[k].size, "; x += i * i64(", axes[k].from,
               "); y += i * i64(", axes[k].to, ");\n");
  }
  return out;
}

// Neighbours that can be moved together: runs of the result that are runs, or one element, of the operand.
int widest_run(const std::vector<Axis>& axes, size_t bytes) {
  const Axis& last = axes.back();
  if (last.to != 1 || (last.from != 1 && last.from != 0)) return 1;
  int width = int(16 / bytes);
  const auto fits = [&](int64_t n) {
    while (n % width != 0) width /= 2;
  };
  fits(last.size);
  for (size_t k = 0; k + 1 < axes.size(); ++k) {
    fits(axes[k].to);
    if (last.from == 1) fits(axes[k].from);
  }
  return width;
}

Source element_copy(std::vector<Axis> axes, int64_t count, size_t bytes, int width) {
  const bool one = axes.back().from == 0;  // the same element for a whole run
  axes.back() = {axes.back().size / width, axes.back().from * width, axes.back().to * width};
  const std::string_view index = count < (int64_t(1) << 31) ? "u32" : "i64";
  std::string text = "extern \"C\" __global__ void __launch_bounds__(256) copy" + parameters(bytes);
  text +=
      cat("  const ", index, " e = ", index, "(blockIdx.x) * 256 + threadIdx.x;\n  if (e >= ", count / width,
          ") return;\n", offsets(axes, "e", index));
  if (width == 1) return {"copy", text + "  to[y] = from[x];\n}\n"};
  if (!one) return {"copy", text + cat("  store(to + y, load<", width, ">(from + x));\n}\n")};
  return {"copy", text + cat("  Pack<", word_type(bytes), ", ", width,
                             "> all;\n  #pragma unroll\n  for (int u = 0; u < ", width,
                             "; ++u) all.v[u] = from[x];\n  store(to + y, all);\n}\n")};
}

/// Several elements at a time where the addresses allow it.
class ElementCopy final : public Step {
 public:
  ElementCopy(const Device& device, std::vector<Axis> axes, int64_t count, size_t bytes)
      : device_(device),
        axes_(std::move(axes)),
        count_(count),
        bytes_(bytes),
        width_(widest_run(axes_, bytes)) {
    wide_ = load(width_);
    note = width_ > 1 ? cat(width_, " elements at a time") : "element by element";
  }

  void run(const Launch& l) const override {
    const auto fits = [&](const std::byte* p) {
      return reinterpret_cast<uintptr_t>(p) % (bytes_ * size_t(width_)) == 0;
    };
    const bool wide = fits(l.out[0]) && (axes_.back().from == 0 || fits(l.in[0]));
    if (!wide) std::call_once(once_, [&] { narrow_ = load(1); });
    const int64_t threads = wide ? count_ / width_ : count_;
    (*(wide ? wide_ : narrow_))(stream_of(l).handle, {(threads + 255) / 256}, {256}, 0, l.in[0], l.out[0]);
  }

 private:
  FunctionRef load(int width) const {
    return device_.functions().get(element_copy(axes_, count_, bytes_, width));
  }

  const Device& device_;
  std::vector<Axis> axes_;
  int64_t count_;
  size_t bytes_;
  int width_;
  FunctionRef wide_;
  mutable std::once_flag once_;
  mutable FunctionRef narrow_;
};

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
  return std::make_unique<ElementCopy>(device, std::move(axes), count, bytes);
}

}  // namespace rlx::cuda
