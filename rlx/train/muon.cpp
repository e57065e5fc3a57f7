// Muon: the momentum of a matrix with all its singular values brought near 1.
//
// With X = U S V^T, the odd polynomial a X + b (X X^T) X + c (X X^T)^2 X acts on the singular values alone:
// s -> a s + b s^3 + c s^5. Five rounds bring every s in (0, 1] into about [0.7, 1.2]; only products are needed.
#include <cmath>

#include "rlx/train/catalogue.h"
#include "rlx/train/settings.h"

namespace rlx::train {
namespace {

const auto kMuon = std::tuple{Member{"momentum", &Muon::momentum},
                              Member{"weight_decay", &Muon::weight_decay},
                              Member{"eps", &Muon::eps},
                              Member{"nesterov", &Muon::nesterov},
                              Member{"match_rms_adamw", &Muon::match_rms_adamw},
                              Member{"ns_steps", &Muon::ns_steps},
                              Member{"beta1", &Muon::beta1},
                              Member{"beta2", &Muon::beta2},
                              Member{"adam_eps", &Muon::adam_eps}};

constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;

// X X^T is the smaller square when X lies flat.
Tensor orthogonalised(const Tensor& matrix, int64_t steps, double eps) {
  const bool tall = matrix.dim(0).value() > matrix.dim(1).value();
  Tensor x = tall ? matrix.t() : matrix;
  x = x / (x * x).sum().sqrt().max(eps);
  for (int64_t i = 0; i < steps; ++i) {
    const Tensor gram = x.matmul(x.t());
    x = x * kA + (gram * kB + gram.matmul(gram) * kC).matmul(x);
  }
  return tall ? x.t() : x;
}

void matrix_step(Update& u, Trained& p, const Muon& o) {
  const Tensor before = u.state("momentum", p);
  const Tensor b = before + (p.gradient - before) * (1 - o.momentum);
  u.keep("momentum", p, b);
  const Tensor direction = o.nesterov ? p.gradient + (b - p.gradient) * o.momentum : b;
  const auto rows = double(p.value.dim(0).value()), columns = double(p.value.dim(1).value());
  const double factor =
      o.match_rms_adamw ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns));
  const Tensor value = p.value * as_type_of(p, 1.0 - p.rate64 * decay_of(p, o.weight_decay));
  p.next = value - as_type_of(p, p.rate64 * factor) * orthogonalised(direction, o.ns_steps, o.eps);
}

void muon_step(Update& u, const Muon& o) {
  const AdamW rest{.beta1 = o.beta1, .beta2 = o.beta2, .eps = o.adam_eps, .weight_decay = o.weight_decay};
  for (Trained& p : u.trained()) {
    if (p.value.rank() == 2 && p.value.shape().elements() > 0) {
      matrix_step(u, p, o);
    } else {
      adamw_step(u, p, rest);
    }
  }
}

}  // namespace

Optimizer muon(const Muon& o) {
  return {"muon", checked("muon", settings_of(o, kMuon)), [o](Update& u) { muon_step(u, o); }};
}

void add_muon(Catalogue& c) {
  c["muon"] = [](const Settings& s) { return muon(options_of<Muon>("muon", s, kMuon)); };
}

}  // namespace rlx::train
