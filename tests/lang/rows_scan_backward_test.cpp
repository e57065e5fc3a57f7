// Rows of the public surface: gradients of scans by hand. The loop is c' = c^2 x, five steps.
#include "tests/lang/rows.h"
#include "tests/support/errors.h"

namespace rlx {
namespace {

using namespace test;

constexpr int64_t kLength = 5;
const Literal kInit = f64({}, {0.9}), kXs = f64({kLength}, {1.1, 0.8, 1.2, 0.7, 1.3}), kUp = f64({}, {2});

Graph forward_body() {
  return Graph::parse("graph(c: f64[], x: f64[]) {\n  s = mul(c, c)\n  n = mul(s, x)\n  return n\n}");
}
// d c = 2 c x d, d x = c^2 d
Graph body_vjp() {
  return Graph::parse(
      "graph(c: f64[], x: f64[], d_output: f64[]) {\n  s = mul(c, c)\n  dx = mul(s, d_output)\n  cx = mul(c, "
      "x)\n"
      "  twice = add(cx, cx)\n  dc = mul(twice, d_output)\n  return dc, dx\n}");
}

Value final_carry(Graph& g, const Values& v) { return g.scan_with_xs(v[0], {v[1]}, forward_body(), kLength); }
Value all_carries(Graph& g, const Values& v) {
  Graph body = forward_body();
  body.set_outputs({body.outputs()[0], body.outputs()[0]});
  return g.scan_all({v[0]}, {}, {v[1]}, body, kLength)[1];
}
Literal trajectory() { return run({kInit, kXs}, all_carries)[0]; }
// Rows ceil((k + 1) L / K) - 1 for K = 2: 2 and 4.
Literal checkpoints() { return f64({2}, {trajectory().real_at(2), trajectory().real_at(4)}); }

TEST(GraphRow, scan_backward) {
  expect_row(
      {kInit, trajectory(), kUp, kXs},
      [](Graph& g, const Values& v) {
        return g.scan_backward(v[0], v[1], v[2], {v[3]}, body_vjp(), kLength, false);
      },
      difference_gradient({kInit, kXs}, 0, kUp, final_carry), 1e-7);
  const Literal all = mixed({kLength}, 3);  // a gradient for every carry
  expect_row(
      {kInit, trajectory(), all, kXs},
      [](Graph& g, const Values& v) {
        return g.scan_backward(v[0], v[1], v[2], {v[3]}, body_vjp(), kLength, true);
      },
      difference_gradient({kInit, kXs}, 0, all, all_carries), 1e-7);
}
TEST(GraphRow, scan_backward_xs) {
  expect_row(
      {kInit, trajectory(), kUp, kXs},
      [](Graph& g, const Values& v) {
        return g.scan_backward_xs(v[0], v[1], v[2], {v[3]}, body_vjp(), kLength, false, 0);
      },
      difference_gradient({kInit, kXs}, 1, kUp, final_carry), 1e-7);
  EXPECT_EQ(message_of([] {
              run({kInit, trajectory(), kUp, kXs}, [](Graph& g, const Values& v) {
                return g.scan_backward_xs(v[0], v[1], v[2], {v[3]}, body_vjp(), kLength, false, 1);
              });
            }),
            "scan_backward: xs_idx 1; there are 1 sequences");
}
TEST(GraphRow, scan_backward_with_checkpoints) {
  const Literal all = mixed({kLength}, 3);
  expect_row(
      {kInit, checkpoints(), all, kXs},
      [](Graph& g, const Values& v) {
        return g.scan_backward_with_checkpoints(v[0], v[1], v[2], {v[3]}, body_vjp(), kLength, true, 2,
                                                forward_body());
      },
      difference_gradient({kInit, kXs}, 0, all, all_carries), 1e-7);
  EXPECT_EQ(message_of([] {
              run({kInit, checkpoints(), kUp, kXs}, [](Graph& g, const Values& v) {
                return g.scan_backward_with_checkpoints(v[0], v[1], v[2], {v[3]}, body_vjp(), kLength, false,
                                                        2, {});
              });
            }),
            "scan_backward: checkpoints need forward_body, which computes the carries between them");
}
TEST(GraphRow, scan_backward_xs_with_checkpoints) {
  expect_row(
      {kInit, checkpoints(), kUp, kXs},
      [](Graph& g, const Values& v) {
        return g.scan_backward_xs_with_checkpoints(v[0], v[1], v[2], {v[3]}, body_vjp(), kLength, false, 2,
                                                   forward_body(), 0);
      },
      difference_gradient({kInit, kXs}, 1, kUp, final_carry), 1e-7);
}

}  // namespace
}  // namespace rlx
