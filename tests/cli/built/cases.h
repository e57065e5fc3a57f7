// Graphs whose plans hold what samples of operators do not: fused pieces, packed weights, bodies, views, results without elements.
#pragma once

#include <string_view>

namespace rlx::test {

struct BuiltCase {
  std::string_view name, text;
};

inline constexpr BuiltCase kBuiltCases[] = {
    {"epilogue", R"(graph(x: f32[9,40], param w: f32[40,24], param b: f32[24]) {
  h = matmul(x, w)
  a = add(h, b)
  y = gelu(a)
  return y
})"},
    {"network",
     R"(graph(x: f32[7,32], param g: f32[32], param c: f32[32], param w: f32[32,64], param b: f32[64], param v: f32[64,10]) {
  n = layer_norm(x, g, c)
  h = matmul(n, w)
  s = add(h, b)
  u = gelu_approx(s)
  d = matmul(u, v)
  y = softmax(d, axis=1)
  m = reduce(d, axes=[0], kind=mean)
  return y, m
})"},
    {"encoder",
     R"(graph(x: f32[2,12,32], param wq: f32[32,32], param wk: f32[32,32], param wv: f32[32,32], param wo: f32[32,32], param g: f32[32]) {
  q = matmul(x, wq)
  k = matmul(x, wk)
  v = matmul(x, wv)
  a:2 = attention(q, k, v, num_heads=4, mask_kind=causal)
  o = matmul(a, wo)
  r = add(x, o)
  y = rms_norm(r, g)
  return y
})"},
    {"residual_norm",
     R"(graph(x: f32[6,32], r: f32[6,32], param g: f32[32], param w: f32[32,32]) {
  s = add(x, r)
  y = rms_norm(s, g)
  h = matmul(y, w)
  z = mul(softmax(h, axis=1), s)
  return z
})"},
    {"narrow_cache", R"(graph(q: f32[1,4,32], k: f16[1,9,32], v: f16[1,9,32]) {
  kf = cast(k, to=f32)
  vf = cast(v, to=f32)
  y:2 = attention(q, kf, vf, num_heads=4)
  return y
})"},
    {"image",
     R"(graph(x: f32[2,8,14,14], r: f32[2,24,14,14], param w: f32[24,8,3,3], param b: f32[24], param v: f32[24,24,3,3]) {
  c = conv2d(x, w, padding=[1,1])
  br = reshape(b, shape=(1,24,1,1))
  c1 = add(c, br)
  h = relu(c1)
  d = conv2d(h, v, padding=[1,1])
  d1 = add(d, r)
  y = relu(d1)
  p = pool(y, kind=max, kernel_size=[2,2])
  return y, p
})"},
    {"codes", R"(graph(x: u8[4,7,40], param w: i8[50,40], param ws: f32[50], param b: f32[50]) {
  s = constant(value=f32[]{0.05})
  z = constant(value=f32[]{100.0})
  xf = cast(x, to=f32)
  xc = sub(xf, z)
  xd = mul(xc, s)
  wf = cast(w, to=f32)
  wr = reshape(ws, shape=(50,1))
  wd = mul(wf, wr)
  wt = transpose(wd, perm=[1,0])
  m = matmul(xd, wt)
  h = add(m, b)
  sy = constant(value=f32[]{4.0})
  q = div(h, sy)
  r = round(q)
  l = clamp(r, lo=-128.0, hi=127.0)
  y = cast(l, to=i8)
  return y
})"},
    {"conv_codes", R"(graph(x: i8[1,32,12,12], param w: i8[40,32,3,3]) {
  xd = dequantize(x, scale=0.01, zero_point=-5)
  wd = dequantize(w, scale=0.002)
  c = conv2d(xd, wd, padding=[1,1])
  y = tanh(c)
  return y
})"},
    {"int8", R"(graph(x: i8[9,24], param w: i8[24,40], param b: i32[40]) {
  y = q_matmul(x, w, b, x_zp=3, mult=0.2)
  return y
})"},
    {"blocks",
     R"(graph(x: f32[3,256], param w: u8[40,144], param v: u8[24,144], param u: u8[24,210], param t: u8[8,40]) {
  a = dequant_matmul(x, w, scheme="gguf_q4_0")
  b = dequant_matmul(x, v, scheme="gguf_q4_k")
  c = dequant_matmul(x, u, scheme="gguf_q6_k")
  d = mul(b, c)
  return a, d, b
})"},
    {"same_blocks", R"(graph(x: f32[1,64], param w: u8[48,36], param v: u8[24,36]) {
  a = dequant_matmul(x, w, scheme="gguf_q4_0")
  b = dequant_matmul(x, v, scheme="gguf_q4_0")
  c = silu(a)
  return c, b
})"},
    {"tokens", R"(graph(ids: i64[5], flags: bool[5,1], param table: f32[2,6]) {
  e = gather(table, ids, axis=0)
  z = full(shape=f32[5,6], value=0)
  y = where(flags, e, z)
  n = logical_not(flags)
  return y, n, ids
})"},
    {"loop", R"(graph(c: f32[8,16], xs: f32[5,8,16], param w: f32[16,16]) {
  r:2 = scan(c, w, xs, body=graph @step(c: f32[8,16], w: f32[16,16], x: f32[8,16]) {
    h = matmul(c, w)
    s = add(h, x)
    n = tanh(s)
    return n, s
  }, length=5, carries=1, consts=1)
  return r, r#1
})"},
    {"rows", R"(graph(c: f32[16,64], xs: f32[6,16,64], param w: f32[64,64], param b: f32[64]) {
  r:2 = scan(c, w, b, xs, body=graph @step(c: f32[16,64], w: f32[64,64], b: f32[64], x: f32[16,64]) {
    h = matmul(c, w)
    s = add(h, b)
    t = add(s, x)
    n = tanh(t)
    return n, t
  }, length=6, carries=1, consts=2)
  return r, r#1
})"},
    {"block_loop", R"(graph(c: f32[2,64], xs: f32[4,2,64], param w: u8[64,36], param v: u8[64,36]) {
  r:2 = scan(c, w, v, xs, body=graph @step(c: f32[2,64], w: u8[64,36], v: u8[64,36], x: f32[2,64]) {
    a = dequant_matmul(c, w, scheme="gguf_q4_0")
    b = dequant_matmul(c, v, scheme="gguf_q4_0")
    s = sigmoid(a)
    t = mul(s, b)
    n = add(t, x)
    m = tanh(n)
    return m, t
  }, length=4, carries=1, consts=2)
  return r, r#1
})"},
    {"numbers", R"(graph(c: f32[], xs: f32[9]) {
  r:2 = scan(c, xs, body=graph @step(c: f32[], x: f32[]) {
    p = mul(c, x)
    n = add(p, x)
    return n, p
  }, length=9, carries=1)
  return r, r#1
})"},
    {"until", R"(graph(i: i32[], z: f32[2]) {
  n = constant(value=i32[]{0})
  k = mul(i, n)
  r:2 = while(k, z, carries=2, cond=graph @more(i: i32[], z: f32[2]) {
    n = constant(value=i32[]{5})
    p = compare(i, n, kind=lt)
    return p
  }, body=graph @step(i: i32[], z: f32[2]) {
    one = constant(value=i32[]{1})
    j = add(i, one)
    y = sin(z)
    return j, y
  })
  return r, r#1
})"},
    {"branches", R"(graph(up: bool[], c: f32[6,32], param w: f32[32,32]) {
  y = if(up, c, w, then_body=graph @up(c: f32[6,32], w: f32[32,32]) {
    v = matmul(c, w)
    r:2 = scan(v, v, body=graph @sum(a: f32[6,32], x: f32[32]) {
      s = add(a, x)
      return s, x
    }, length=6, carries=1)
    return r
  }, else_body=graph @down(c: f32[6,32], w: f32[32,32]) {
    v = softmax(c, axis=1)
    return v
  })
  return y
})"},
    {"function", R"(graph(x: f32[4,6], param w: f32[4]) {
  y = custom_fn(x, w, fwd_body=graph @f(a: f32[4,6], b: f32[4]) {
    c = rms_norm(a, b, axis=0)
    return c
  })
  z = exp(y)
  return z
})"},
    {"spectrum", R"(graph(x: c64[24,40]) {
  a = fft(x)
  b = transpose(a, perm=[1,0])
  c = fft(b, norm=forward)
  d = conjugate(c)
  e = mul(d, c)
  y = real(e)
  return y, d
})"},
    {"halves", R"(graph(x: bf16[6,16], y: f16[16], param w: bf16[16,8], param v: f16[16]) {
  a = matmul(x, w)
  b = exp(a)
  c = cast(y, to=bf16)
  d = add(x, c)
  e = mul(y, v)
  f = sqrt(e)
  return b, d, f
})"},
    {"casts", R"(graph(x: i64[5], y: f32[3,7]) {
  a = cast(x, to=bool)
  b = cast(x, to=i8)
  c = cast(y, to=f8e4m3)
  return a, b, c
})"},
    {"draws", R"(graph(key: i64[], counter: i64[]) {
  a = random_bits(key, counter, shape=(3,5))
  b = random_uniform(key, counter, shape=f32[4,4], low=-1.0, high=3.0)
  c = random_normal(key, counter, shape=f32[7])
  return a, b, c
})"},
    {"views", R"(graph(x: f32[6,4], y: i64[3], param w: f32[4,6]) {
  t = transpose(x, perm=[1,0])
  r = reshape(x, shape=(24))
  n = narrow(x, axis=0, start=2, len=3)
  s = add(t, w)
  f = flip(x, axes=[1])
  return x, t, r, n, n, y, w, s, f
})"},
    {"empty", R"(graph(x: f32[0,4], y: f32[3,4], param w: f32[4,5]) {
  a = matmul(x, w)
  b = exp(x)
  c = concat(x, y, axis=0)
  s = reduce(x, axes=[0], kind=sum)
  n = narrow(y, axis=0, start=1, len=0)
  return a, b, c, s, n
})"},
    {"parts", R"(graph(x: f32[2,64], y: f32[3,64]) {
  a = exp(x)
  b = sin(y)
  c = concat(a, b, x, axis=0)
  d:2 = sort(c, axis=0)
  e:2 = top_k(d, k=3)
  return c, e, e#1
})"},
    {"solvers", R"(graph(x: f32[5,5], b: f32[5,2]) {
  t = transpose(x, perm=[1,0])
  p = matmul(x, t)
  i = one_hot(iota(shape=i32[5], axis=0), depth=5)
  s = add(p, i)
  y = dense_solve(s, b)
  l = cholesky(s)
  return y, l
})"},
    {"nothing_to_do", R"(graph(x: f32[3], param w: f32[3]) {
  return x, w, c=constant(value=f32[20]{nan, inf, -inf, -0.0, 1e-45, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0, 18.0, 19.0, 20.0})
})"},
};

}  // namespace rlx::test
