// Adam and its relatives. m and v are running means of the gradient and of its square; what depends on the number of the
// step alone is computed in f64, once for all tensors.
#include <cmath>

#include "rlx/train/catalogue.h"
#include "rlx/train/settings.h"

namespace rlx::train {
namespace {

template <class Options>
auto moments() {
  return std::tuple{Member{"beta1", &Options::beta1}, Member{"beta2", &Options::beta2},
                    Member{"eps", &Options::eps}, Member{"weight_decay", &Options::weight_decay}};
}
const auto kAdam = std::tuple_cat(moments<Adam>(), std::tuple{Member{"amsgrad", &Adam::amsgrad}});
const auto kAdamW = std::tuple_cat(moments<AdamW>(), std::tuple{Member{"amsgrad", &AdamW::amsgrad}});
const auto kNAdam =
    std::tuple_cat(moments<NAdam>(), std::tuple{Member{"momentum_decay", &NAdam::momentum_decay}});
const auto kRAdam = moments<RAdam>();
const auto kAdamax = moments<Adamax>();

// base^exponent for a scalar exponent of f64.
Tensor power(double base, const Tensor& exponent) { return (exponent * std::log(base)).exp(); }
// 1 - beta^t, exact also where beta is near 1.
Tensor correction(double beta, const Tensor& count) {
  return beta > 0 ? -(count * std::log(beta)).expm1() : count.ones_like();
}

Tensor running_mean(Update& u, const char* name, const Trained& p, const Tensor& x, double beta) {
  const Tensor mean = u.state(name, p) * beta + x * (1 - beta);
  u.keep(name, p, mean);
  return mean;
}

// sqrt(v / (1 - beta2^t)) + eps, where v may be its largest so far.
Tensor spread(Update& u, const Trained& p, Tensor v, double beta2, double eps, bool amsgrad) {
  if (amsgrad) {
    v = u.state("largest", p).max(v);
    u.keep("largest", p, v);
  }
  return v.sqrt() / as_type_of(p, correction(beta2, u.count()).sqrt()) + eps;
}

template <class Options>
void plain_step(Update& u, Trained& p, const Options& o, const Tensor& value, const Tensor& g) {
  const Tensor m = running_mean(u, "m", p, g, o.beta1);
  const Tensor v = running_mean(u, "v", p, g * g, o.beta2);
  const Tensor rate = as_type_of(p, p.rate64 / correction(o.beta1, u.count()));
  p.next = value - rate * (m / spread(u, p, v, o.beta2, o.eps, o.amsgrad));
}

void nadam_step(Update& u, const NAdam& o) {
  const auto weight = [&](const Tensor& t) {
    return o.beta1 * (1.0 - 0.5 * power(0.96, t * o.momentum_decay));
  };
  const Tensor now = weight(u.count()), soon = weight(u.count() + 1.0);
  const Tensor product = u.state("weights", Shape::scalar(DType::f64), 1) * now;
  u.keep("weights", product);
  for (Trained& p : u.trained()) {
    const Tensor g = decayed_gradient(p, o.weight_decay);
    const Tensor m = running_mean(u, "m", p, g, o.beta1);
    const Tensor v = running_mean(u, "v", p, g * g, o.beta2);
    const Tensor root = spread(u, p, v, o.beta2, o.eps, false);
    const Tensor by_gradient = as_type_of(p, p.rate64 * (1.0 - now) / (1.0 - product));
    const Tensor by_mean = as_type_of(p, p.rate64 * soon / (1.0 - product * soon));
    p.next = p.value - by_gradient * (g / root) - by_mean * (m / root);
  }
}

// rho, the length of the average behind v, decides: above 5 its variance is known well enough to divide by sqrt(v).
void radam_step(Update& u, const RAdam& o) {
  const Tensor& t = u.count();
  const double most = 2 / (1 - o.beta2) - 1;
  const Tensor rho = most - 2.0 * t * power(o.beta2, t) / correction(o.beta2, t);
  const Tensor known = rho > 5.0;
  const Tensor safe = known.where(rho, 6.0);  // the other side is not used, but must have a value
  const Tensor factor =
      ((safe - 4.0) * (safe - 2.0) * most / ((most - 4) * (most - 2) * safe) * correction(o.beta2, t)).sqrt();
  for (Trained& p : u.trained()) {
    const Tensor g = decayed_gradient(p, o.weight_decay);
    const Tensor m = running_mean(u, "m", p, g, o.beta1);
    const Tensor v = running_mean(u, "v", p, g * g, o.beta2);
    const Tensor step = m * as_type_of(p, p.rate64 / correction(o.beta1, t));
    p.next = p.value - known.where(step * as_type_of(p, factor) / (v.sqrt() + o.eps), step);
  }
}

void adamax_step(Update& u, const Adamax& o) {
  for (Trained& p : u.trained()) {
    const Tensor g = decayed_gradient(p, o.weight_decay);
    const Tensor m = running_mean(u, "m", p, g, o.beta1);
    const Tensor largest = (u.state("largest", p) * o.beta2).max(g.abs() + o.eps);
    u.keep("largest", p, largest);
    p.next = p.value - as_type_of(p, p.rate64 / correction(o.beta1, u.count())) * (m / largest);
  }
}

}  // namespace

void adamw_step(Update& u, Trained& p, const AdamW& o) {
  const double decay = decay_of(p, o.weight_decay);
  const Tensor value = decay == 0 ? p.value : p.value * as_type_of(p, 1.0 - p.rate64 * decay);
  plain_step(u, p, o, value, p.gradient);
}

Optimizer adam(const Adam& o) {
  return {"adam", checked("adam", settings_of(o, kAdam)), [o](Update& u) {
            for (Trained& p : u.trained()) plain_step(u, p, o, p.value, decayed_gradient(p, o.weight_decay));
          }};
}
Optimizer adamw(const AdamW& o) {
  return {"adamw", checked("adamw", settings_of(o, kAdamW)), [o](Update& u) {
            for (Trained& p : u.trained()) adamw_step(u, p, o);
          }};
}
Optimizer nadam(const NAdam& o) {
  return {"nadam", checked("nadam", settings_of(o, kNAdam)), [o](Update& u) { nadam_step(u, o); }};
}
Optimizer radam(const RAdam& o) {
  return {"radam", checked("radam", settings_of(o, kRAdam)), [o](Update& u) { radam_step(u, o); }};
}
Optimizer adamax(const Adamax& o) {
  return {"adamax", checked("adamax", settings_of(o, kAdamax)), [o](Update& u) { adamax_step(u, o); }};
}

void add_adam(Catalogue& c) {
  c["adam"] = [](const Settings& s) { return adam(options_of<Adam>("adam", s, kAdam)); };
  c["adamw"] = [](const Settings& s) { return adamw(options_of<AdamW>("adamw", s, kAdamW)); };
  c["nadam"] = [](const Settings& s) { return nadam(options_of<NAdam>("nadam", s, kNAdam)); };
  c["radam"] = [](const Settings& s) { return radam(options_of<RAdam>("radam", s, kRAdam)); };
  c["adamax"] = [](const Settings& s) { return adamax(options_of<Adamax>("adamax", s, kAdamax)); };
}

}  // namespace rlx::train
