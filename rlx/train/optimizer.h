// Optimisers as graph functions: gradients and state in, new weights and state out.
//
//   Optimizer o = adamw({.weight_decay = 0.1});
//
// An optimiser is a value: its name, its settings, and a function that adds the nodes of one step to a graph. One of your
// own is a function of Update; `count` is the number of this step, from 1.
//
//   Optimizer mine{"halve", {}, [](Update& u) {
//     for (Trained& p : u.trained()) p.next = p.value - p.rate * 0.5 * p.gradient;
//   }};
//
// The formulas are those of PyTorch 2 where it has the method.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rlx/lang/graph.h"
#include "rlx/lang/tensor.h"

namespace rlx::train {

/// A tensor that is trained, in the graph of a step.
struct Trained {
  std::string name;
  Tensor value, gradient;              // before the step; f32 where the weight has 16 bits
  Tensor rate;                         // learning rate, a scalar of the value's type,
  Tensor rate64;                       // and as f64, for what is computed of it
  std::optional<double> weight_decay;  // instead of the optimiser's own
  Tensor next;                         // set by the optimiser
};

/// What an optimiser sees of the graph of a step.
class Update {
 public:
  /// `count`: number of this step, from 1, a scalar f64.
  Update(Graph& graph, Tensor count, std::vector<Trained> trained);

  /// The tensors that are trained; the optimiser sets `next` of each.
  std::vector<Trained>& trained() { return trained_; }
  /// The number of this step, from 1, a scalar f64.
  const Tensor& count() const { return count_; }
  /// The graph of the step, for rules that need more than tensors.
  Graph& graph() { return graph_; }

  /// A tensor kept between steps, as the last step left it; `initial` before the first. A name is asked for once.
  Tensor state(const std::string& name, const Shape&, double initial = 0);
  /// One for a trained tensor, of its type: "m/l0.w".
  Tensor state(const std::string& name, const Trained&, double initial = 0);
  /// The value that a state has in the next step.
  void keep(const std::string& name, const Tensor& next);
  void keep(const std::string& name, const Trained&, const Tensor& next);

  /// What is kept between steps under a name.
  struct State {
    std::string name;
    double initial = 0;
    Tensor before, after;
  };
  /// All that were asked for, in order.
  const std::vector<State>& states() const { return states_; }

 private:
  Graph& graph_;
  Tensor count_;
  std::vector<Trained> trained_;
  std::vector<State> states_;
};

using Settings = std::map<std::string, double, std::less<>>;

struct Optimizer {
  std::string name;
  Settings settings;
  /// Adds the rule to the graph of a step.
  std::function<void(Update&)> update;
};

/// g += decay p; b = momentum b + (1 - dampening) g, b = g at first; p -= rate (nesterov ? g + momentum b : b).
struct Sgd {
  double momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false;
};
Optimizer sgd(const Sgd& = {});

/// m and v are running means of g and g^2; p -= rate / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + eps). With amsgrad, v is
/// its largest so far. Adam adds decay p to g; AdamW first scales p by 1 - rate decay.
struct Adam {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false;
};
Optimizer adam(const Adam& = {});
/// Adam with decay of the value itself.
struct AdamW {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
  bool amsgrad = false;
};
/// Adam with decay of the value itself.
Optimizer adamw(const AdamW& = {});

/// Adam with Nesterov's momentum, whose weight grows as beta1 (1 - 0.96^(t momentum_decay) / 2).
struct NAdam {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0, momentum_decay = 4e-3;
};
Optimizer nadam(const NAdam& = {});
/// Adam that begins without v, as long as too few steps tell its variance.
struct RAdam {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
};
Optimizer radam(const RAdam& = {});
/// Adam with the largest |g| of a fading past instead of sqrt(v).
struct Adamax {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
};
Optimizer adamax(const Adamax& = {});

/// v = alpha v + (1 - alpha) g^2, less m^2 if centered; d = g / (sqrt(v) + eps); p -= rate (momentum ? b = momentum b + d : d).
struct RmsProp {
  double alpha = 0.99, eps = 1e-8, momentum = 0, weight_decay = 0;
  bool centered = false;
};
Optimizer rmsprop(const RmsProp& = {});

/// v += g^2; p -= rate / (1 + (t - 1) lr_decay) g / (sqrt(v) + eps).
struct Adagrad {
  double lr_decay = 0, initial_accumulator_value = 0, eps = 1e-10, weight_decay = 0;
};
Optimizer adagrad(const Adagrad& = {});

/// v = rho v + (1 - rho) g^2; d = sqrt((a + eps) / (v + eps)) g; a = rho a + (1 - rho) d^2; p -= rate d.
struct Adadelta {
  double rho = 0.9, eps = 1e-6, weight_decay = 0;
};
Optimizer adadelta(const Adadelta& = {});

/// p -= rate (sign(beta1 m + (1 - beta1) g) + decay p); m = beta2 m + (1 - beta2) g.
struct Lion {
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
};
Optimizer lion(const Lion& = {});

/// Matrices: p = (1 - rate decay) p - rate sqrt(max(1, rows / columns)) orthogonal(momentum of g), where five steps of an odd
/// quintic bring the singular values near 1. With match_rms_adamw the factor is 0.2 sqrt(max(rows, columns)). Other
/// tensors: AdamW with the same rate and decay.
struct Muon {
  double momentum = 0.95, weight_decay = 0.1, eps = 1e-7;
  bool nesterov = true, match_rms_adamw = false;
  int64_t ns_steps = 5;
  double beta1 = 0.9, beta2 = 0.95, adam_eps = 1e-8;  // of AdamW
};
Optimizer muon(const Muon& = {});

/// Limited-memory BFGS on the vector of all trained tensors, one direction a step, no line search; see lbfgs.cpp.
struct Lbfgs {
  int64_t history_size = 10;
};
Optimizer lbfgs(const Lbfgs& = {});

/// The names that optimizer_named knows.
std::vector<std::string> optimizer_names();
/// By name, with the settings that differ from the defaults. Unknown names of either are user errors that list the known.
Optimizer optimizer_named(const std::string& name, const Settings& = {});

}  // namespace rlx::train
