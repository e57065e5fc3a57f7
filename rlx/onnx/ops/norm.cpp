// Normalisations.
#include "rlx/lang/operators.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

// [C] as [1, C, 1, ..] for an input of this rank.
Tensor per_channel(const Tensor& v, int rank) {
  Dims dims(size_t(rank), 1);
  dims[1] = v.shape().num_elements();
  return v.reshape(dims);
}

Tensor as(const Tensor& t, DType type) { return t.dtype() == type ? t : t.cast(type); }

std::vector<int> axes_from(int first, int rank) {
  std::vector<int> out;
  for (int i = first; i < rank; ++i) out.push_back(i);
  return out;
}

Items batch_norm(Call& c) {
  const Tensor x = c.in(0);
  const double eps = c.real("epsilon", 1e-5), momentum = c.real("momentum", 0.9);
  c.ignore("spatial"), c.ignore("is_test"), c.ignore("consumed_inputs");
  const bool training = c.flag("training_mode");
  const DType wide = c.dtype(3);
  Tensor mean = c.in(3), variance = c.in(4);
  Tensor running_mean, running_variance;
  if (training) {
    std::vector<int> axes = axes_from(2, x.rank());
    axes.insert(axes.begin(), 0);
    const Tensor m = as(x, wide).mean(axes), v = as(x, wide).variance(axes);
    running_mean = mean * momentum + m * (1 - momentum);
    running_variance = variance * momentum + v * (1 - momentum);
    mean = m, variance = v;
  }
  // One factor and one shift for each channel.
  const Tensor factor = as(c.in(1), wide) / rlx::sqrt(variance + eps);
  const Tensor shift = as(c.in(2), wide) - mean * factor;
  const Tensor y = as(as(x, wide) * per_channel(factor, x.rank()) + per_channel(shift, x.rank()), x.dtype());
  if (!training) return {y};
  return {y, running_mean, running_variance};
}

Items instance_norm(Call& c) {
  const Tensor x = c.in(0);
  c.ignore("consumed_inputs");
  return {
      rlx::group_norm(x, c.in(1), c.in(2), {.num_groups = x.dim(1).value(), .eps = c.real("epsilon", 1e-5)})};
}

Items group_norm(Call& c) {
  const Tensor x = c.in(0);
  const int64_t groups = c.integer("num_groups", 1);
  Tensor scale = c.in(1), bias = c.in(2);
  c.ignore("stash_type");
  if (c.opset() < 21) {
    // One number for each group, repeated for its channels.
    const Dim each = floordiv(x.dim(1), groups);
    const auto spread = [&](const Tensor& t) {
      return t.reshape({groups, 1}).expand({groups, each}).reshape({x.dim(1)});
    };
    scale = spread(scale), bias = spread(bias);
  }
  return {rlx::group_norm(x, scale, bias, {.num_groups = groups, .eps = c.real("epsilon", 1e-5)})};
}

// The axes from `axis` on, normalised together, are one axis of the library's operators.
struct Flattened {
  Tensor x;
  Dims dims;
  Dim rest;
};

Flattened flattened(const Tensor& x, int axis) {
  Flattened out{x, x.shape().dims(), 1};
  for (int i = axis; i < x.rank(); ++i) out.rest = out.rest * x.dim(i);
  if (axis == x.rank() - 1) return out;
  Dims to(out.dims.begin(), out.dims.begin() + axis);
  to.push_back(out.rest);
  out.x = x.reshape(to);
  return out;
}

// Scale and shift may broadcast: they are brought to the full size of the normalised axes where they differ.
Tensor full_rest(const Tensor& v, const Tensor& x, int axis, Dim rest) {
  if (v.is_empty()) return v;
  if (v.rank() == 1 && x.rank() - axis == 1 && v.dim(0) == rest) return v;
  const Dims dims(x.shape().dims().begin() + axis, x.shape().dims().end());
  if (v.rank() > int(dims.size())) return Tensor();
  return v.expand(dims).reshape({rest});
}

Items layer_norm(Call& c) {
  const Tensor x = c.in(0);
  const int axis = c.axis(c.integer("axis", -1), x.rank());
  const double eps = c.real("epsilon", 1e-5);
  c.ignore("stash_type");
  const Flattened f = flattened(x, axis);
  const Tensor scale = c.in(1), bias = c.in_or_empty(2);
  Tensor y;
  if (scale.rank() <= x.rank() - axis && (bias.is_empty() || bias.rank() <= x.rank() - axis)) {
    y = rlx::layer_norm(f.x, full_rest(scale, x, axis, f.rest), full_rest(bias, x, axis, f.rest),
                        {.axis = -1, .eps = eps})
            .reshape(f.dims);
  } else {
    y = rlx::layer_norm(f.x, {}, {}, {.axis = -1, .eps = eps}).reshape(f.dims) * scale;
    if (!bias.is_empty()) y = y + bias;
  }
  Items out{y};
  if (c.node().outputs.size() > 1) {
    const auto axes = axes_from(axis, x.rank());
    const Tensor wide = as(x, DType::f32);
    out.push_back(wide.mean(axes, true));
    out.push_back(rlx::rsqrt(wide.variance(axes, true) + eps));
  }
  return out;
}

Items rms_norm(Call& c) {
  const Tensor x = c.in(0);
  const int axis = c.axis(c.integer("axis", -1), x.rank());
  const double eps = c.real("epsilon", 1e-5);
  c.ignore("stash_type");
  const Flattened f = flattened(x, axis);
  const Tensor scale = c.in(1);
  if (scale.rank() > x.rank() - axis)
    return {rlx::rms_norm(f.x, {}, {}, {.axis = -1, .eps = eps}).reshape(f.dims) * as(scale, x.dtype())};
  return {rlx::rms_norm(f.x, as(full_rest(scale, x, axis, f.rest), x.dtype()), {}, {.axis = -1, .eps = eps})
              .reshape(f.dims)};
}

Items lp_norm(Call& c) {
  const Tensor x = c.in(0);
  const int axis = c.axis(c.integer("axis", -1), x.rank());
  const int64_t p = c.integer("p", 2);
  if (p != 1 && p != 2) throw c.wrong("p is ", p, "; it must be 1 or 2");
  const Tensor norm = p == 1 ? rlx::abs(x).sum({axis}, true) : rlx::sqrt((x * x).sum({axis}, true));
  // A row of zeros stays one.
  return {x / norm.eq(0).where(1.0, norm)};
}

// Squares over a window of channels.
Items local_response(Call& c) {
  const Tensor x = c.in(0);
  const int64_t size = c.integer("size", 1);
  const double alpha = c.real("alpha", 1e-4), beta = c.real("beta", 0.75), bias = c.real("bias", 1);
  if (size < 1 || size > 4096) throw c.wrong("a window of ", size, " channels; 1 to 4096 are expected");
  const int64_t before = (size - 1) / 2, after = size - 1 - before;
  Dims low(size_t(x.rank()), 0), high(size_t(x.rank()), 0);
  low[1] = before, high[1] = after;
  const Tensor squares = rlx::pad(x * x, {.low = low, .high = high});
  Tensor sum = squares.narrow(1, 0, x.dim(1));
  for (int64_t i = 1; i < size; ++i) sum = sum + squares.narrow(1, i, x.dim(1));
  return {x / (bias + alpha / double(size) * sum).pow(beta)};
}

Items mean_variance(Call& c) {
  const Tensor x = c.in(0);
  std::vector<int> axes = c.axes(c.integers("axes", {0, 2, 3}), x.rank());
  const Tensor centred = x - x.mean(axes, true);
  return {centred / (rlx::sqrt((centred * centred).mean(axes, true)) + 1e-9)};
}

}  // namespace

std::span<const Entry> norm_entries() {
  static const std::vector<Entry> kEntries{
      {"BatchNormalization", 1, batch_norm, BoundsRule::rows},
      {"GroupNormalization", 18, group_norm, BoundsRule::rows},
      {"InstanceNormalization", 1, instance_norm, BoundsRule::rows},
      {"LRN", 1, local_response, BoundsRule::rows},
      {"LayerNormalization", 1, layer_norm, BoundsRule::rows},
      {"LpNormalization", 1, lp_norm},
      {"MeanVarianceNormalization", 9, mean_variance},
      {"RMSNormalization", 23, rms_norm, BoundsRule::rows},
      {"SimplifiedLayerNormalization", 1, rms_norm, BoundsRule::rows},
  };
  return kEntries;
}

}  // namespace rlx::onnx
