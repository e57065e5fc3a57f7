#include "rlx/backend/cpu/kernels/gated_delta_net.h"

#include <map>

#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array, test::random_array;

struct Case {
  int64_t batch = 2, length = 7, heads = 3, size = 5;
  bool carried = false, in_place = false, closed_gates = false;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "batch " << c.batch << " length " << c.length << " heads " << c.heads << " size " << c.size
             << " carried " << c.carried << " closed gates " << c.closed_gates;
}

struct Problem {
  Case c;
  int64_t rows, square;
  Array<float> q, k, v, g, beta, state, dy, dlast;

  explicit Problem(const Case& c, int offset = 1)
      : c(c),
        rows(c.batch * c.length * c.heads),
        square(c.size * c.size),
        q(random_array(rows * c.size, 1, -1, 1, offset)),
        k(random_array(rows * c.size, 2, -1, 1, offset)),
        v(random_array(rows * c.size, 3, -1, 1, offset)),
        g(random_array(rows, 4, -0.5f, 0.05f, offset)),
        beta(random_array(rows, 5, 0, 1, offset)),
        state(random_array(c.batch * c.heads * square, 6, -1, 1, offset)),
        dy(random_array(rows * c.size, 7, -1, 1, offset)),
        dlast(random_array(state.size(), 8)) {
    // Keys of length 1, as models have them: a longer one would make the recurrence unstable.
    for (int64_t r = 0; r < rows; ++r) {
      float sum = 1e-6f;
      for (int64_t i = 0; i < c.size; ++i) sum += k[r * c.size + i] * k[r * c.size + i];
      for (int64_t i = 0; i < c.size; ++i) k[r * c.size + i] /= std::sqrt(sum);
      if (c.closed_gates && r % 4 == 1) g[r] = -INFINITY;
    }
  }

  GatedDeltaNet parameters() const {
    return {.batch = c.batch,
            .length = c.length,
            .heads = c.heads,
            .size = c.size,
            .q = q.data(),
            .k = k.data(),
            .v = v.data(),
            .g = g.data(),
            .beta = beta.data(),
            .state = c.carried ? state.data() : nullptr};
  }
};

// One head in f64: y, all states, and what a step needs backwards.
struct Trace {
  const Problem& x;
  int64_t batch, head, n;
  std::vector<std::vector<double>> states, faded, read, d;  // states[t] before step t

  Trace(const Problem& x, int64_t batch, int64_t head) : x(x), batch(batch), head(head), n(x.c.size) {
    std::vector<double> s(size_t(n * n));
    for (int64_t i = 0; i < n * n && x.c.carried; ++i)
      s[size_t(i)] = double(x.state[(batch * x.c.heads + head) * n * n + i]);
    states.push_back(s);
    for (int64_t t = 0; t < x.c.length; ++t) {
      const double gate = std::exp(double(x.g[row(t)]));
      for (double& value : s) value *= gate;
      faded.push_back(s);
      std::vector<double> r(size_t(n), 0.0), error(size_t(n), 0.0);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) r[size_t(j)] += s[size_t(i * n + j)] * key(t, i);
      for (int64_t j = 0; j < n; ++j)
        error[size_t(j)] = double(x.beta[row(t)]) * (double(x.v[row(t) * n + j]) - r[size_t(j)]);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) s[size_t(i * n + j)] += key(t, i) * error[size_t(j)];
      read.push_back(r);
      d.push_back(error);
      states.push_back(s);
    }
  }

  int64_t row(int64_t t) const { return (batch * x.c.length + t) * x.c.heads + head; }
  double key(int64_t t, int64_t i) const { return double(x.k[row(t) * n + i]); }
  double query(int64_t t, int64_t i) const { return double(x.q[row(t) * n + i]); }
  double scale() const { return 1 / std::sqrt(double(n)); }
  double y(int64_t t, int64_t j) const {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += states[size_t(t + 1)][size_t(i * n + j)] * query(t, i);
    return sum * scale();
  }
};

// A state is a sum of about as many steps as the gates remember (ten), each rounded some n times.
double tolerance(const Case& c) { return 2e-6 * std::sqrt(double(4 + c.size)) * 4; }

void check_forward(Team team, const Case& c) {
  SCOPED_TRACE(testing::Message() << c);
  const Problem x(c);
  Array<float> y(x.q.size(), 1), last = x.state;
  GatedDeltaNet p = x.parameters();
  p.y = y.data();
  p.final_state = last.data();
  if (c.in_place) p.state = last.data();
  Array<std::byte> workspace(int64_t(gated_delta_net_workspace(p, team.threads())));
  gated_delta_net(team, p, workspace.data());
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.heads; ++h) {
      const Trace want(x, b, h);
      for (int64_t t = 0; t < c.length; ++t) {
        for (int64_t j = 0; j < c.size; ++j)
          ASSERT_NEAR(y[want.row(t) * c.size + j], want.y(t, j), tolerance(c)) << b << " " << h << " " << t;
      }
      test::expect_near(last.data() + (b * c.heads + h) * x.square, want.states.back().data(), x.square,
                        tolerance(c), "state");
    }
  }
}

struct Gradients {
  Array<float> dq, dk, dv, dg, dbeta, dstate;

  std::vector<const Array<float>*> all() const { return {&dq, &dk, &dv, &dg, &dbeta, &dstate}; }
};

Gradients gradients(Team team, const Problem& x) {
  const int64_t size = x.q.size();
  Gradients g{Array<float>(size, 1), Array<float>(size),   Array<float>(size),
              Array<float>(x.rows),  Array<float>(x.rows), Array<float>(x.state.size(), 1)};
  const GatedDeltaNetBackward p{.forward = x.parameters(),
                                .dy = x.dy.data(),
                                .dfinal_state = x.c.carried ? x.dlast.data() : nullptr,
                                .dq = g.dq.data(),
                                .dk = g.dk.data(),
                                .dv = g.dv.data(),
                                .dg = g.dg.data(),
                                .dbeta = g.dbeta.data(),
                                .dstate = x.c.carried ? g.dstate.data() : nullptr};
  Array<std::byte> workspace(int64_t(gated_delta_net_backward_workspace(p, team.threads())));
  gated_delta_net_backward(team, p, workspace.data());
  return g;
}

void check_backward(Team team, const Case& c) {
  SCOPED_TRACE(testing::Message() << c);
  const Problem x(c);
  const Gradients got = gradients(team, x);
  const int64_t n = c.size;
  std::vector<double> dq(size_t(x.q.size())), dk(dq.size()), dv(dq.size()), dg(size_t(x.rows)),
      dbeta(dg.size()), dstate(size_t(x.state.size()));
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.heads; ++h) {
      const Trace f(x, b, h);
      std::vector<double> ds(size_t(n * n));
      for (int64_t i = 0; i < n * n && c.carried; ++i)
        ds[size_t(i)] = double(x.dlast[(b * c.heads + h) * n * n + i]);
      for (int64_t t = c.length - 1; t >= 0; --t) {
        const size_t step = size_t(t), at = size_t(f.row(t) * n), gate = size_t(f.row(t));
        std::vector<double> dd(size_t(n), 0.0);
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            const size_t cell = size_t(i * n + j);
            const double dy = double(x.dy[int64_t(at) + j]) * f.scale();
            dq[at + size_t(i)] += f.states[step + 1][cell] * dy;
            ds[cell] += f.query(t, i) * dy;
            dd[size_t(j)] += ds[cell] * f.key(t, i);
            dk[at + size_t(i)] += ds[cell] * f.d[step][size_t(j)];
          }
        }
        const double beta = double(x.beta[int64_t(gate)]);
        for (int64_t j = 0; j < n; ++j) {
          dv[at + size_t(j)] = beta * dd[size_t(j)];
          dbeta[gate] += dd[size_t(j)] * (double(x.v[int64_t(at) + j]) - f.read[step][size_t(j)]);
        }
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            const size_t cell = size_t(i * n + j);
            dk[at + size_t(i)] -= f.faded[step][cell] * beta * dd[size_t(j)];
            ds[cell] -= f.key(t, i) * beta * dd[size_t(j)];
            dg[gate] += ds[cell] * f.faded[step][cell];
            ds[cell] *= std::exp(double(x.g[int64_t(gate)]));
          }
        }
      }
      std::copy(ds.begin(), ds.end(), dstate.begin() + (b * c.heads + h) * n * n);
    }
  }
  const double each = 8 * tolerance(c);
  test::expect_near(got.dq.data(), dq.data(), got.dq.size(), each, "dq");
  test::expect_near(got.dk.data(), dk.data(), got.dk.size(), each, "dk");
  test::expect_near(got.dv.data(), dv.data(), got.dv.size(), each, "dv");
  test::expect_near(got.dbeta.data(), dbeta.data(), got.dbeta.size(), each, "dbeta");
  test::expect_near(got.dg.data(), dg.data(), got.dg.size(), each * 4, "dg");
  if (c.carried) test::expect_near(got.dstate.data(), dstate.data(), got.dstate.size(), each, "dstate");
}

const Case kCases[] = {{},
                       {.carried = true},
                       {.carried = true, .in_place = true},
                       {.batch = 1, .length = 1, .heads = 1, .size = 1},
                       {.length = 0, .carried = true},
                       {.length = 3, .size = 40, .carried = true},
                       {.batch = 1, .length = 32, .heads = 2, .size = 32},
                       {.batch = 1, .length = 75, .heads = 3, .size = 33, .carried = true},
                       {.batch = 1, .length = 130, .heads = 1, .size = 64, .carried = true},
                       {.batch = 1, .length = 100, .heads = 2, .size = 100, .carried = true},
                       {.batch = 1, .length = 40, .heads = 2, .size = 16, .closed_gates = true},
                       {.length = 5, .size = 0}};

TEST(GatedDeltaNet, chunks_and_single_steps_agree_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (const Case& c : kCases) check_forward(team, c);
  });
}

TEST(GatedDeltaNet, gradients_agree_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (const Case& c : kCases) {
      if (!c.in_place) check_backward(team, c);
    }
  });
}

TEST(GatedDeltaNet, thread_counts_give_the_same_bits) {
  std::map<Isa, std::vector<float>> first;
  test::at_every_level([&](Team team) {
    const Problem x({.batch = 2, .length = 50, .heads = 3, .size = 20, .carried = true});
    const Gradients g = gradients(team, x);
    std::vector<float> all;
    for (const Array<float>* a : g.all()) all.insert(all.end(), a->data(), a->data() + a->size());
    const auto [at, is_new] = first.try_emplace(current_isa(), all);
    ASSERT_TRUE(at->second == all);
  });
}

}  // namespace
}  // namespace rlx::cpu
