// What changes nothing goes, the rest has one spelling: the text before and after, and both run.
#include "rlx/passes/canonicalise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "rlx/passes/cse.h"
#include "tests/passes/expect_rewrite.h"
#include "tests/support/graphs.h"

namespace rlx::passes {
namespace {

using test::graph;

void expect_canonical(std::string_view before, std::string_view after) {
  const ir::Rewritten r = canonicalise(graph(before));
  EXPECT_GT(r.changes, 0u);
  expect_rewrite(r.graph, before, after);
  EXPECT_EQ(canonicalise(graph(after)).changes, 0u) << after;
}

TEST(Canonicalise, leaves_out_what_changes_nothing) {
  expect_canonical(R"(graph @g(x: f32[2,3], z: c64[3]) {
    a = cast(x, to=f32)
    b = reshape(a, shape=(2,3))
    c = transpose(b, perm=[0,1])
    d = expand(c, shape=(2,3))
    e = narrow(d, axis=1, start=0, len=3)
    f = slice(e, start=(0,0), limit=(2,3))
    g = concat(f, axis=0)
    h = pad(g, low=(0,0), high=(0,0))
    y = exp(h)
    w = cast(z, to=c64)
    return y, w, same=f
  })",
                   R"(graph @g(x: f32[2,3], z: c64[3]) {
    y = exp(x)
    return y, w=z, same=x
  })");
}

TEST(Canonicalise, keeps_what_only_looks_as_if_it_changed_nothing) {
  EXPECT_EQ(canonicalise(graph(R"(graph @g(x: f32[2,2], h: f16[2], i: i32[2], f: f32[2]) {
    a = transpose(x, perm=[1,0])
    b = pad(a, low=(0,1), high=(0,-0))
    c = flip(x)
    d = slice(x, start=(0,0), limit=(2,2), stride=[1,2])
    e = reshape(reshape(x, shape=(4)), shape=(1,4))
    j = cast(cast(f, to=i32), to=f32)
    k = cast(cast(i, to=f32), to=i32)
    l = cast(cast(h, to=bf16), to=f16)
    m = cast(cast(i, to=i16), to=i32)
    n = cast(cast(i, to=u32), to=i32)
    o = cast(cast(h, to=bool), to=f16)
    return b, c, d, e, j, k, l, m, n, o
  })"))
                .changes,
            0u);
}

TEST(Canonicalise, turns_once_what_is_turned_twice) {
  expect_canonical(R"(graph @g(x: f32[2,3,4]) {
    a = transpose(x, perm=[1,2,0])
    b = transpose(a, perm=[0,2,1])
    c = transpose(a, perm=[2,0,1])
    d = reshape(reshape(x, shape=(6,4)), shape=(2,3,4))
    y = sub(c, d)
    return b, y
  })",
                   R"(graph @g(x: f32[2,3,4]) {
    b = transpose(x, perm=[1,0,2])
    y = sub(x, x)
    return b, y
  })");
}

TEST(Canonicalise, puts_numbers_last) {
  expect_canonical(R"(graph @g(x: f32[2], i: i32[2]) {
    two = full(shape=f32[], value=2.0)
    three = full(shape=i32[], value=3.0)
    a = add(two, x)
    b = mul(two, a)
    c = max(three, i)
    s = sub(two, b)
    return s, c
  })",
                   R"(graph @g(x: f32[2], i: i32[2]) {
    two = full(shape=f32[], value=2.0)
    three = full(shape=i32[], value=3.0)
    a = add(x, two)
    b = mul(a, two)
    c = max(i, three)
    s = sub(two, b)
    return s, c
  })");
}

TEST(Canonicalise, leaves_the_sign_of_zero_to_the_order_of_max_and_min) {
  const auto text = R"(graph @g(x: f32[2], y: f32[2]) {
    zero = full(shape=f32[], value=0.0)
    a = max(zero, x)
    b = min(x, y)
    c = min(y, x)
    return a, b, c
  })";
  EXPECT_EQ(canonicalise(graph(text)).changes, 0u);
  EXPECT_EQ(cse(graph(text)).changes, 0u);
}

TEST(Canonicalise, opens_the_body_of_a_branch_that_is_taken) {
  expect_canonical(R"(graph @g(x: f32[3], w: f32[3]) {
    yes = full(shape=bool[], value=1.0)
    no = constant(value=i32[]{0})
    a:2 = if(yes, x, w, then_body=graph @t(x: f32[3], w: f32[3]) {
      p = mul(x, w)
      return p, q=x
    }, else_body=graph @e(x: f32[3], w: f32[3]) {
      p = div(x, w)
      return p, q=w
    })
    b = if(no, a#1, then_body=graph @t(x: f32[3]) {
      p = exp(x)
      return p
    }, else_body=graph @e(x: f32[3]) {
      p = cast(sin(x), to=f32)
      return p
    })
    return a, b
  })",
                   R"(graph @g(x: f32[3], w: f32[3]) {
    p = mul(x, w)
    b = sin(x)
    return output0=p, b
  })");
}

TEST(Canonicalise, looks_into_bodies) {
  expect_canonical(R"(graph @g(x: f32[3]) {
    y = scan(x, length=2, carries=1, body=graph @step(c: f32[3]) {
      one = full(shape=f32[], value=1.0)
      d = add(one, cast(c, to=f32))
      return d
    })
    return y
  })",
                   R"(graph @g(x: f32[3]) {
    y = scan(x, length=2, carries=1, body=graph @step(c: f32[3]) {
      one = full(shape=f32[], value=1.0)
      d = add(c, one)
      return d
    })
    return y
  })");
}

// All values of 8 and 16 bits, and of the wider ones those at the borders of the others.
Literal values_of(DType t) {
  const size_t size = dtype_size(t);
  std::vector<uint64_t> bits;
  if (size <= 2) {
    for (uint64_t i = 0; i < (t == DType::bool_ ? 2u : 1u << (8 * size)); ++i) bits.push_back(i);
  } else {
    for (size_t i = 0; i < 8 * size; ++i) {
      for (const uint64_t near : {~uint64_t(0), uint64_t(0), uint64_t(1)})
        bits.push_back((uint64_t(1) << i) + near), bits.push_back(~((uint64_t(1) << i) + near));
    }
  }
  Literal out = Literal::zeros(Shape(t, {int64_t(bits.size())}));
  const auto to = out.mutable_bytes();
  for (size_t i = 0; i < bits.size(); ++i) std::memcpy(&to[i * size], &bits[i], size);
  return out;
}

TEST(Canonicalise, leaves_out_casts_that_come_back_where_every_value_does) {
  int gone = 0;
  for (int from = 0; from < kDTypeCount; ++from) {
    for (int middle = 0; middle < kDTypeCount; ++middle) {
      const DType a = DType(from), b = DType(middle);
      if (is_complex(a) || is_complex(b) || is_storage_only(a) || is_storage_only(b)) continue;
      SCOPED_TRACE(cat(a, " through ", b));
      const Literal x = values_of(a);
      const ir::Graph g =
          graph(cat("graph @g(x: ", x.shape(), ") { y = cast(cast(x, to=", b, "), to=", a, ") return y }"));
      const Literal y = ir::interpret(g, Literals{x})[0];
      bool same = true;
      for (int64_t i = 0; i < x.elements(); ++i) {
        const bool nan = is_float(a) && std::isnan(x.real_at(i));
        const size_t size = dtype_size(a);
        same = same &&
               (nan ? std::isnan(y.real_at(i))
                    : std::memcmp(&x.bytes()[size_t(i) * size], &y.bytes()[size_t(i) * size], size) == 0);
      }
      EXPECT_EQ(canonicalise(g).changes > 0, same);
      gone += same;
    }
  }
  EXPECT_GT(gone, 11);  // more than casts of a type to itself
}

TEST(Cse, finds_operands_that_changed_places) {
  const auto before = R"(graph @g(x: f32[4], y: f32[4], b: bool[4], c: bool[4], z: c64[4]) {
    p = mul(x, y)
    q = mul(y, x)
    r = logical_and(b, c)
    s = logical_and(c, b)
    t = sub(x, y)
    u = sub(y, x)
    v = where(r, p, t)
    w = where(s, q, u)
    return v, w
  })";
  expect_rewrite(cse(graph(before)).graph, before,
                 R"(graph @g(x: f32[4], y: f32[4], b: bool[4], c: bool[4], z: c64[4]) {
    p = mul(x, y)
    r = logical_and(b, c)
    t = sub(x, y)
    u = sub(y, x)
    v = where(r, p, t)
    w = where(r, p, u)
    return v, w
  })");
}

}  // namespace
}  // namespace rlx::passes
