// Checking derivatives of any graph against differences and against each other.
//
// Inner products follow the Wirtinger convention: for complex tensors <a, b> = 2 Re sum conj(a) b, so that
// dL = <dL/d(conj z), dz>; for real ones it is the plain sum.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "rlx/ir/interpreter.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/sample.h"
#include "rlx/ir/text.h"
#include "rlx/transform/transform.h"
#include "tests/support/compare.h"

namespace rlx::test {

inline double inner(const Literal& a, const Literal& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.elements(); ++i) {
    const auto p = a.complex_at(i), q = b.complex_at(i);
    sum += is_complex(a.dtype()) ? 2 * (p.real() * q.real() + p.imag() * q.imag()) : p.real() * q.real();
  }
  return sum;
}

inline double inner(const Literals& a, const Literals& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += inner(a[i], b[i]);
  return sum;
}

inline std::vector<double> real_parts(const std::vector<std::complex<double>>& v) {
  std::vector<double> out(v.size());
  for (size_t i = 0; i < v.size(); ++i) out[i] = v[i].real();
  return out;
}

/// x + h v
inline Literal moved(const Literal& x, const Literal& v, double h) {
  std::vector<std::complex<double>> out = x.to_complexes();
  for (int64_t i = 0; i < x.elements(); ++i) out[size_t(i)] += h * v.complex_at(i);
  return is_complex(x.dtype()) ? Literal::complexes(x.shape(), out)
                               : Literal::reals(x.shape(), real_parts(out));
}

inline Literals moved(Literals xs, const std::vector<size_t>& which, const Literals& vs, double h) {
  for (size_t i = 0; i < which.size(); ++i) xs[which[i]] = moved(xs[which[i]], vs[i], h);
  return xs;
}

inline Literal random_like(const Shape& s, uint64_t seed) { return ir::sample_literal(cat(s), seed); }

/// With `elements`, inputs of up to kFewElements elements are moved one element at a time too (for complex
/// ones, each part); all inputs are moved along a random direction.
class DerivativeCheck {
 public:
  static constexpr int64_t kFewElements = 8;

  DerivativeCheck(const ir::Graph& g, Literals leaves, bool smooth, bool elements = false)
      : g_(g), leaves_(std::move(leaves)), smooth_(smooth), elements_(elements) {
    const auto ids = g.leaves();
    for (size_t i = 0; i < ids.size(); ++i) {
      const ir::Node& n = g.node(ids[i]);
      if (!is_differentiable(n.shapes[0].dtype())) continue;
      which_.push_back(i);
      names_.push_back(static_cast<const ir::NamedLeaf*>(n.attrs.get())->name);
      directions_.push_back(random_like(n.shapes[0], 77 + i));
      single_ = single_ || is_complex(n.shapes[0].dtype());
    }
    for (size_t i = 0; i < g.outputs().size(); ++i) {
      const Shape& s = g.shape(g.outputs()[i]);
      if (!is_differentiable(s.dtype())) continue;
      outputs_.push_back(i);
      cotangents_.push_back(random_like(s, 99 + i));
      single_ = single_ || is_complex(s.dtype());
    }
  }

  bool applies() const { return !which_.empty() && !outputs_.empty(); }

  void run() {
    const Literals gradients = check_reverse();
    if (smooth_ && elements_) check_elements(gradients);
    const double forward = check_forward();
    if (testing::Test::HasFatalFailure()) return;
    const double reverse = inner(gradients, directions_);
    // Forward and reverse mode are transposes of each other, exactly up to rounding.
    EXPECT_NEAR(forward, reverse, (single_ ? 2e-4 : 1e-10) * (1 + std::fabs(forward) + scale_))
        << "jvp and vjp disagree";
    check_second_order();
  }

 private:
  // Differences of single precision (complex) values need a large step.
  double step() const { return single_ ? 2e-2 : 1e-5; }
  double tolerance() const { return single_ ? 2e-2 : 2e-6; }

  Literals picked(const Literals& all) const {
    Literals out;
    for (const size_t i : outputs_) out.push_back(all[i]);
    return out;
  }

  Literals evaluate(double h) const {
    return picked(ir::interpret(g_, moved(leaves_, which_, directions_, h)));
  }

  Literals check_reverse() {
    const ir::Graph pulled = transform::grad(g_, names_, {.cotangent_inputs = true});
    for (const auto& e : pulled.verify()) ADD_FAILURE() << cat(e);
    Literals in = leaves_;
    in.insert(in.end(), cotangents_.begin(), cotangents_.end());
    const Literals gradients = ir::interpret(pulled, in);
    const Literals plus = evaluate(step()), minus = evaluate(-step());
    const double upper = inner(cotangents_, plus), lower = inner(cotangents_, minus);
    difference_ = (upper - lower) / (2 * step());
    scale_ = std::fabs(upper) + std::fabs(lower);
    const double got = inner(gradients, directions_);
    if (smooth_) {
      EXPECT_NEAR(got, difference_, tolerance() * (1 + std::fabs(difference_) + scale_))
          << "vjp against differences";
    }
    return gradients;
  }

  // dL = <g, dz> for dz a step in one part of one element: g itself for a real one, 2 Re g and 2 Im g else.
  void check_elements(const Literals& gradients) {
    for (size_t w = 0; w < which_.size(); ++w) {
      const Literal& x = leaves_[which_[w]];
      if (x.elements() > kFewElements) continue;
      const bool complex = is_complex(x.dtype());
      for (int64_t i = 0; i < x.elements(); ++i) {
        for (int part = 0; part < (complex ? 2 : 1); ++part) {
          const auto loss = [&](double h) {
            std::vector<std::complex<double>> v = x.to_complexes();
            v[size_t(i)] += part == 0 ? std::complex<double>(h) : std::complex<double>(0, h);
            Literals at = leaves_;
            at[which_[w]] =
                complex ? Literal::complexes(x.shape(), v) : Literal::reals(x.shape(), real_parts(v));
            return inner(cotangents_, picked(ir::interpret(g_, at)));
          };
          // Five points: the error is of fourth order, which an input near a pole needs.
          const double h = step(), upper = loss(h), lower = loss(-h),
                       difference = (8 * (upper - lower) - loss(2 * h) + loss(-2 * h)) / (12 * h);
          const auto g = gradients[w].complex_at(i);
          EXPECT_NEAR(complex ? 2 * (part == 0 ? g.real() : g.imag()) : g.real(), difference,
                      tolerance() * (1 + std::fabs(difference) + std::fabs(upper) + std::fabs(lower)))
              << "vjp against differences at " << names_[w] << " element " << i << " part " << part;
        }
      }
    }
  }

  double check_forward() {
    const ir::Graph pushed = transform::jvp(g_, names_);
    for (const auto& e : pushed.verify()) ADD_FAILURE() << cat(e);
    Literals in = leaves_;
    in.insert(in.end(), directions_.begin(), directions_.end());
    const Literals out = ir::interpret(pushed, in);
    const Literals tangents(out.begin() + long(g_.outputs().size()), out.end());
    if (tangents.size() != cotangents_.size()) return ADD_FAILURE() << "wrong number of tangents", 0.0;
    const double forward = inner(cotangents_, tangents);
    if (smooth_) {
      EXPECT_NEAR(forward, difference_, tolerance() * (1 + std::fabs(difference_) + scale_))
          << "jvp against differences";
    }
    return forward;
  }

  // Differences of the gradient against forward over reverse, and reverse over reverse against that.
  void check_second_order() {
    const ir::Graph pulled = transform::grad(g_, names_, {.cotangent_inputs = true});
    const ir::Graph pushed = transform::jvp(pulled, names_);
    Literals in = leaves_;
    in.insert(in.end(), cotangents_.begin(), cotangents_.end());
    in.insert(in.end(), directions_.begin(), directions_.end());
    const Literals all = ir::interpret(pushed, in);
    const Literals second(all.begin() + long(which_.size()), all.end());
    Literals probes;
    for (size_t i = 0; i < second.size(); ++i) probes.push_back(random_like(second[i].shape(), 55 + i));
    const double forward = inner(probes, second);
    if (smooth_) {
      const auto gradient_at = [&](double h) {
        Literals at = moved(leaves_, which_, directions_, h);
        at.insert(at.end(), cotangents_.begin(), cotangents_.end());
        return inner(probes, ir::interpret(pulled, at));
      };
      const double upper = gradient_at(step()), lower = gradient_at(-step()),
                   difference = (upper - lower) / (2 * step());
      EXPECT_NEAR(forward, difference,
                  10 * tolerance() * (1 + std::fabs(difference) + std::fabs(upper) + std::fabs(lower)))
          << "second derivative against differences of the first";
    }
    const ir::Graph twice = transform::grad(pulled, names_, {.cotangent_inputs = true});
    Literals again = leaves_;
    again.insert(again.end(), cotangents_.begin(), cotangents_.end());
    again.insert(again.end(), probes.begin(), probes.end());
    const double reverse = inner(ir::interpret(twice, again), directions_);
    EXPECT_NEAR(reverse, forward, (single_ ? 1e-3 : 1e-9) * (1 + std::fabs(forward) + scale_))
        << "reverse over reverse";
  }

  const ir::Graph& g_;
  Literals leaves_;
  bool smooth_, elements_;
  std::vector<size_t> which_, outputs_;
  std::vector<std::string> names_;
  Literals directions_, cotangents_;
  bool single_ = false;
  double scale_ = 0, difference_ = 0;  // of <cotangents, f> along the directions
};

}  // namespace rlx::test
