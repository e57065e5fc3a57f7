#include "rlx/backend/cpu/kernels/selective_scan.h"

#include <map>

#include "tests/backend/cpu/support.h"

namespace rlx::cpu {
namespace {

using test::Array, test::random_array;

struct Case {
  int64_t batch = 2, length = 7, channels = 5, states = 3;
  bool carried = false;
};

struct Problem {
  Case c;
  int64_t rows, cells;  // batch * length, and those times states
  Array<float> x, delta, a, b, c_in, dy, state;

  explicit Problem(const Case& c, int offset)
      : c(c),
        rows(c.batch * c.length),
        cells(rows * c.states),
        x(random_array(rows * c.channels, 1, -1, 1, offset)),
        delta(random_array(rows * c.channels, 2, 0, 1, offset)),
        a(random_array(c.channels * c.states, 3, -2, 0.1f, offset)),
        b(random_array(cells, 4, -1, 1, offset)),
        c_in(random_array(cells, 5)),
        dy(random_array(rows * c.channels, 6)),
        state(random_array(c.batch * c.channels * c.states, 7)) {}

  SelectiveScan parameters(float* y) const {
    return {.batch = c.batch,
            .length = c.length,
            .channels = c.channels,
            .states = c.states,
            .x = x.data(),
            .delta = delta.data(),
            .a = a.data(),
            .b = b.data(),
            .c = c_in.data(),
            .y = y};
  }

  // The states of one channel after each step, from `start` on; [length + 1][states].
  std::vector<double> states(int64_t row, int64_t h, bool carried) const {
    const size_t n = size_t(c.states);
    std::vector<double> s(size_t(c.length + 1) * n);
    for (size_t i = 0; i < n && carried; ++i)
      s[i] = double(state[(row * c.channels + h) * c.states + int64_t(i)]);
    for (int64_t t = 0; t < c.length; ++t) {
      const int64_t at = (row * c.length + t) * c.channels + h, cell = (row * c.length + t) * c.states;
      for (size_t i = 0; i < n; ++i) {
        s[size_t(t + 1) * n + i] =
            std::exp(double(delta[at]) * double(a[h * c.states + int64_t(i)])) * s[size_t(t) * n + i] +
            double(delta[at]) * double(b[cell + int64_t(i)]) * double(x[at]);
      }
    }
    return s;
  }
};

// States stay below about 8 (steps of size 1 that decay by e^-0.5 on average); an exponential and a few
// roundings a step, which the decay forgets.
double tolerance(const Case& c) { return 4e-6 * double(4 + c.states); }

void check_forward(Team team, const Case& c, int offset) {
  SCOPED_TRACE(testing::Message() << "length " << c.length << " channels " << c.channels << " states "
                                  << c.states);
  const Problem x(c, offset);
  Array<float> y(x.rows * c.channels, offset), last(x.state.size());
  SelectiveScan p = x.parameters(y.data());
  p.state = c.carried ? x.state.data() : nullptr;
  p.final_state = last.data();
  Array<std::byte> workspace(int64_t(selective_scan_workspace(p, team.threads())));
  selective_scan(team, p, workspace.data());
  for (int64_t row = 0; row < c.batch; ++row) {
    for (int64_t h = 0; h < c.channels; ++h) {
      const auto s = x.states(row, h, c.carried);
      for (int64_t t = 0; t < c.length; ++t) {
        double want = 0;
        for (int64_t i = 0; i < c.states; ++i)
          want += double(x.c_in[(row * c.length + t) * c.states + i]) * s[size_t((t + 1) * c.states + i)];
        ASSERT_NEAR(y[(row * c.length + t) * c.channels + h], want, tolerance(c))
            << row << " " << h << " " << t;
      }
      for (int64_t i = 0; i < c.states; ++i)
        ASSERT_NEAR(last[(row * c.channels + h) * c.states + i], s[size_t(c.length * c.states + i)],
                    tolerance(c));
    }
  }
}

struct Gradients {
  Array<float> dx, ddelta, da, db, dc;
};

Gradients gradients(Team team, const Problem& x) {
  const int64_t size = x.rows * x.c.channels;
  Gradients g{Array<float>(size, 1), Array<float>(size), Array<float>(x.a.size()), Array<float>(x.cells),
              Array<float>(x.cells, 3)};
  const SelectiveScanBackward p{.forward = x.parameters(nullptr),
                                .dy = x.dy.data(),
                                .dx = g.dx.data(),
                                .ddelta = g.ddelta.data(),
                                .da = g.da.data(),
                                .db = g.db.data(),
                                .dc = g.dc.data()};
  Array<std::byte> workspace(int64_t(selective_scan_backward_workspace(p, team.threads())));
  selective_scan_backward(team, p, workspace.data());
  return g;
}

void check_backward(Team team, const Case& c, int offset) {
  SCOPED_TRACE(testing::Message() << "length " << c.length << " channels " << c.channels << " states "
                                  << c.states);
  const Problem x(c, offset);
  const Gradients got = gradients(team, x);
  std::vector<double> dx(size_t(x.x.size())), ddelta(dx.size()), da(size_t(x.a.size())), db(size_t(x.cells)),
      dc(db.size());
  for (int64_t row = 0; row < c.batch; ++row) {
    for (int64_t h = 0; h < c.channels; ++h) {
      const auto s = x.states(row, h, false);
      std::vector<double> g(size_t(c.states));
      for (int64_t t = c.length - 1; t >= 0; --t) {
        const int64_t at = (row * c.length + t) * c.channels + h;
        for (int64_t i = 0; i < c.states; ++i) {
          const size_t cell = size_t((row * c.length + t) * c.states + i);
          const double a = double(x.a[h * c.states + i]), delta = double(x.delta[at]), in = double(x.x[at]);
          const double e = std::exp(delta * a), before = s[size_t(t * c.states + i)], dy = double(x.dy[at]);
          g[size_t(i)] += double(x.c_in[int64_t(cell)]) * dy;
          dc[cell] += dy * s[size_t((t + 1) * c.states + i)];
          db[cell] += g[size_t(i)] * delta * in;
          dx[size_t(at)] += g[size_t(i)] * delta * double(x.b[int64_t(cell)]);
          ddelta[size_t(at)] += g[size_t(i)] * (a * e * before + double(x.b[int64_t(cell)]) * in);
          da[size_t(h * c.states + i)] += g[size_t(i)] * delta * e * before;
          g[size_t(i)] *= e;
        }
      }
    }
  }
  const double each = 2 * tolerance(c);
  test::expect_near(got.dx.data(), dx.data(), got.dx.size(), each, "dx");
  test::expect_near(got.ddelta.data(), ddelta.data(), got.ddelta.size(), 4 * each, "ddelta");
  test::expect_near(got.da.data(), da.data(), got.da.size(), each * std::sqrt(double(1 + x.rows)) * 4, "da");
  test::expect_near(got.db.data(), db.data(), got.db.size(), each * std::sqrt(double(1 + c.channels)), "db");
  test::expect_near(got.dc.data(), dc.data(), got.dc.size(), each * std::sqrt(double(1 + c.channels)), "dc");
}

const Case kCases[] = {{},
                       {.carried = true},
                       {.batch = 1, .length = 1, .channels = 1, .states = 1},
                       {.batch = 1, .length = 0, .channels = 3, .states = 2, .carried = true},
                       {.batch = 1, .length = 100, .channels = 16, .states = 16},
                       {.batch = 3, .length = 33, .channels = 71, .states = 20, .carried = true},
                       {.batch = 1, .length = 64, .channels = 150, .states = 4},
                       {.length = 2, .states = 0}};

TEST(SelectiveScan, agrees_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (const Case& c : kCases) check_forward(team, c, c.states % 2 == 0 ? 1 : 0);
  });
}

TEST(SelectiveScan, gradients_agree_with_a_plain_loop) {
  test::at_every_level([](Team team) {
    for (const Case& c : kCases) check_backward(team, c, c.states % 2 == 0 ? 1 : 0);
  });
}

TEST(SelectiveScan, thread_counts_give_the_same_bits) {
  std::map<Isa, std::vector<float>> first;
  test::at_every_level([&](Team team) {
    const Problem x({.batch = 2, .length = 40, .channels = 90, .states = 5}, 0);
    const Gradients g = gradients(team, x);
    std::vector<float> all;
    for (const Array<float>* a : {&g.dx, &g.ddelta, &g.da, &g.db, &g.dc})
      all.insert(all.end(), a->data(), a->data() + a->size());
    const auto [at, is_new] = first.try_emplace(current_isa(), all);
    ASSERT_TRUE(at->second == all);
  });
}

}  // namespace
}  // namespace rlx::cpu
