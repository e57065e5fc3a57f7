// Optimisers that scale the gradient: SGD, RMSprop, Adagrad, Adadelta, Lion.
#include "rlx/train/catalogue.h"
#include "rlx/train/settings.h"

namespace rlx::train {
namespace {

const auto kSgd = std::tuple{Member{"momentum", &Sgd::momentum}, Member{"dampening", &Sgd::dampening},
                             Member{"weight_decay", &Sgd::weight_decay}, Member{"nesterov", &Sgd::nesterov}};
const auto kRmsProp = std::tuple{
    Member{"alpha", &RmsProp::alpha}, Member{"eps", &RmsProp::eps}, Member{"momentum", &RmsProp::momentum},
    Member{"weight_decay", &RmsProp::weight_decay}, Member{"centered", &RmsProp::centered}};
const auto kAdagrad =
    std::tuple{Member{"lr_decay", &Adagrad::lr_decay},
               Member{"initial_accumulator_value", &Adagrad::initial_accumulator_value},
               Member{"eps", &Adagrad::eps}, Member{"weight_decay", &Adagrad::weight_decay}};
const auto kAdadelta = std::tuple{Member{"rho", &Adadelta::rho}, Member{"eps", &Adadelta::eps},
                                  Member{"weight_decay", &Adadelta::weight_decay}};
const auto kLion = std::tuple{Member{"beta1", &Lion::beta1}, Member{"beta2", &Lion::beta2},
                              Member{"weight_decay", &Lion::weight_decay}};

void sgd_step(Update& u, const Sgd& o) {
  for (Trained& p : u.trained()) {
    const Tensor g = decayed_gradient(p, o.weight_decay);
    Tensor direction = g;
    if (o.momentum != 0) {
      const Tensor before = u.state("momentum", p);
      // The state starts at 0, so that the first step gives g by itself unless dampening scales it.
      Tensor b = before * o.momentum + g * (1 - o.dampening);
      if (o.dampening != 0) b = u.count().eq(1.0).where(g, b);
      u.keep("momentum", p, b);
      direction = o.nesterov ? g + b * o.momentum : b;
    }
    p.next = p.value - p.rate * direction;
  }
}

void rmsprop_step(Update& u, const RmsProp& o) {
  for (Trained& p : u.trained()) {
    const Tensor g = decayed_gradient(p, o.weight_decay);
    const Tensor v = u.state("square", p) * o.alpha + g * g * (1 - o.alpha);
    u.keep("square", p, v);
    Tensor spread = v;
    if (o.centered) {
      const Tensor before = u.state("mean", p);
      const Tensor m = before + (g - before) * (1 - o.alpha);
      u.keep("mean", p, m);
      spread = v - m * m;
    }
    Tensor d = g / (spread.sqrt() + o.eps);
    if (o.momentum != 0) {
      d = u.state("momentum", p) * o.momentum + d;
      u.keep("momentum", p, d);
    }
    p.next = p.value - p.rate * d;
  }
}

void adagrad_step(Update& u, const Adagrad& o) {
  for (Trained& p : u.trained()) {
    const Tensor g = decayed_gradient(p, o.weight_decay);
    const Tensor v = u.state("square", p, o.initial_accumulator_value) + g * g;
    u.keep("square", p, v);
    const Tensor rate = o.lr_decay == 0 ? p.rate64 : p.rate64 / ((u.count() - 1.0) * o.lr_decay + 1.0);
    p.next = p.value - as_type_of(p, rate) * (g / (v.sqrt() + o.eps));
  }
}

void adadelta_step(Update& u, const Adadelta& o) {
  for (Trained& p : u.trained()) {
    const Tensor g = decayed_gradient(p, o.weight_decay);
    const Tensor v = u.state("square", p) * o.rho + g * g * (1 - o.rho);
    const Tensor before = u.state("moved", p);
    const Tensor d = (before + o.eps).sqrt() / (v + o.eps).sqrt() * g;
    u.keep("square", p, v);
    u.keep("moved", p, before * o.rho + d * d * (1 - o.rho));
    p.next = p.value - p.rate * d;
  }
}

void lion_step(Update& u, const Lion& o) {
  for (Trained& p : u.trained()) {
    const Tensor m = u.state("m", p);
    Tensor direction = (m * o.beta1 + p.gradient * (1 - o.beta1)).sign();
    if (const double decay = decay_of(p, o.weight_decay); decay != 0) direction += p.value * decay;
    u.keep("m", p, m * o.beta2 + p.gradient * (1 - o.beta2));
    p.next = p.value - p.rate * direction;
  }
}

}  // namespace

Optimizer sgd(const Sgd& o) {
  return {"sgd", checked("sgd", settings_of(o, kSgd)), [o](Update& u) { sgd_step(u, o); }};
}
Optimizer rmsprop(const RmsProp& o) {
  return {"rmsprop", checked("rmsprop", settings_of(o, kRmsProp)), [o](Update& u) { rmsprop_step(u, o); }};
}
Optimizer adagrad(const Adagrad& o) {
  return {"adagrad", checked("adagrad", settings_of(o, kAdagrad)), [o](Update& u) { adagrad_step(u, o); }};
}
Optimizer adadelta(const Adadelta& o) {
  return {"adadelta", checked("adadelta", settings_of(o, kAdadelta)),
          [o](Update& u) { adadelta_step(u, o); }};
}
Optimizer lion(const Lion& o) {
  return {"lion", checked("lion", settings_of(o, kLion)), [o](Update& u) { lion_step(u, o); }};
}

void add_first_order(Catalogue& c) {
  c["sgd"] = [](const Settings& s) { return sgd(options_of<Sgd>("sgd", s, kSgd)); };
  c["rmsprop"] = [](const Settings& s) { return rmsprop(options_of<RmsProp>("rmsprop", s, kRmsProp)); };
  c["adagrad"] = [](const Settings& s) { return adagrad(options_of<Adagrad>("adagrad", s, kAdagrad)); };
  c["adadelta"] = [](const Settings& s) { return adadelta(options_of<Adadelta>("adadelta", s, kAdadelta)); };
  c["lion"] = [](const Settings& s) { return lion(options_of<Lion>("lion", s, kLion)); };
}

}  // namespace rlx::train
