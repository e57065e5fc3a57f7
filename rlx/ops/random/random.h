// Random numbers with explicit state. A draw is a pure function of (key, counter, position), by
// Philox4x32-10: the same operands give the same numbers on every device and thread count.
//
// key and counter are integers: scalars, or tensors that broadcast together, with one stream for each of
// their elements. The result has their extents in front of those asked for.
#pragma once

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

struct RandomBits {
  static constexpr std::string_view name = "random_bits", summary = "Uniform 32-bit words.",
                                    operands = "key, counter";
  static constexpr std::string_view doc =
      "y[e] = word e mod 4 of Philox4x32-10 at position (e / 4, counter) under key, e the row-major number "
      "of the element; u32. Tensors of keys or counters give one such tensor for each";
  static constexpr Traits traits{.zero_gradient = true};
  struct Attrs {
    Dims shape;
    static constexpr auto fields() {
      return std::tuple{field("shape", &Attrs::shape, "extents drawn from each stream")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct RandomUniform {
  static constexpr std::string_view name = "random_uniform", summary = "Uniform numbers between two bounds.",
                                    operands = "key, counter";
  static constexpr std::string_view doc =
      "y = low + (high - low) u, u uniform in [0, 1) from the top bits of random_bits: 24 for f32, 11 for "
      "f16, 8 for bf16, and 53 of two words for f64";
  static constexpr Traits traits{.zero_gradient = true};
  struct Attrs {
    Shape shape;
    double low = 0, high = 1;
    static constexpr auto fields() {
      return std::tuple{field("shape", &Attrs::shape, "type drawn from each stream; a float"),
                        field("low", &Attrs::low, "lower bound, included"),
                        field("high", &Attrs::high, "upper bound, not included but for rounding; above low")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct RandomNormal {
  static constexpr std::string_view name = "random_normal", summary = "Normally distributed numbers.",
                                    operands = "key, counter";
  static constexpr std::string_view doc =
      "y = mean + stddev sqrt(-2 ln(1 - u)) cos(2 pi v), the Box-Muller transform of the uniform pair u, v "
      "of each element; computed in f32 or wider";
  static constexpr Traits traits{.zero_gradient = true};
  struct Attrs {
    Shape shape;
    double mean = 0, stddev = 1;
    static constexpr auto fields() {
      return std::tuple{field("shape", &Attrs::shape, "type drawn from each stream; a float"),
                        field("mean", &Attrs::mean, "centre of the distribution"),
                        field("stddev", &Attrs::stddev, "standard deviation, not negative")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

/// Refuses a key or counter, operands i and i + 1, that is not of integers.
void require_stream(const Infer& c, int i);

Expr random_bits(Expr key, Expr counter, Dims shape);
Expr random_uniform(Expr key, Expr counter, const Shape& shape, double low = 0, double high = 1);
Expr random_normal(Expr key, Expr counter, const Shape& shape, double mean = 0, double stddev = 1);

}  // namespace rlx::ops
