// What a wrong call says, written as a line of the text form: the first word of the message is the operator.
#include <gtest/gtest.h>

#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "tests/support/errors.h"

namespace rlx::ops {
namespace {

/// The message for `y = call` in a graph with these inputs, without the position.
std::string refused(std::string_view inputs, std::string_view call) {
  const std::string message = test::message_of([&] {
    ir::parse_graph(cat("graph @g(", inputs, ") {\n  result = ", call, "\n  return result\n}\n"), table());
  });
  return message.starts_with("parse: ") ? message.substr(7) : message;
}

TEST(Calls, elementwise_functions) {
  EXPECT_EQ(refused("x: i32[3]", "atan(x)"), "atan: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "ceil(x)"), "ceil: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "cos(x)"), "cos: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "erf(x)"), "erf: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "expm1(x)"), "expm1: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "floor(x)"), "floor: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "gelu(x)"), "gelu: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "gelu_approx(x)"), "gelu_approx: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "log1p(x)"), "log1p: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "relu(x)"), "relu: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "rsqrt(x)"), "rsqrt: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "round(x)"), "round: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "sigmoid(x)"), "sigmoid: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "silu(x)"), "silu: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "sin(x)"), "sin: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "softplus(x)"), "softplus: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "tan(x)"), "tan: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "tanh(x)"), "tanh: x: i32[3] has dtype i32; it takes floats");
  EXPECT_EQ(refused("x: i32[3]", "exp(x)"), "exp: x: i32[3] has dtype i32; it takes floats, complex numbers");
  EXPECT_EQ(refused("x: i32[3]", "log(x)"), "log: x: i32[3] has dtype i32; it takes floats, complex numbers");
  EXPECT_EQ(refused("x: i32[3]", "sqrt(x)"),
            "sqrt: x: i32[3] has dtype i32; it takes floats, complex numbers");
  EXPECT_EQ(refused("x: bool[3]", "abs(x)"), "abs: x: bool[3] has dtype bool; it takes floats, integers");
  EXPECT_EQ(refused("x: bool[3]", "sign(x)"), "sign: x: bool[3] has dtype bool; it takes floats, integers");
  EXPECT_EQ(refused("x: bool[3]", "neg(x)"),
            "neg: x: bool[3] has dtype bool; it takes floats, integers, complex numbers");
  EXPECT_EQ(refused("x: f32[2]", "stop_gradient(x, x)"), "stop_gradient: 2 operands; it takes 1 (x)");
}

TEST(Calls, elementwise_pairs) {
  EXPECT_EQ(refused("x: f32[2], y: f32[3]", "add(x, y)"),
            "add: f32[2] and f32[3] do not broadcast; axis -1 has sizes 2 and 3; they must be equal or one "
            "of them 1");
  EXPECT_EQ(refused("x: f32[2], y: i32[2]", "add(x, y)"),
            "add: dtypes differ, a: f32[2] and b: i32[2]; cast b to f32");
  EXPECT_EQ(refused("x: bool[2], y: bool[2]", "add(x, y)"),
            "add: operands have dtype bool; it takes floats, integers, complex numbers");
  EXPECT_EQ(refused("x: f32[2], y: f32[3]", "sub(x, y)"),
            "sub: f32[2] and f32[3] do not broadcast; axis -1 has sizes 2 and 3; they must be equal or one "
            "of them 1");
  EXPECT_EQ(refused("x: f32[2], y: i32[2]", "sub(x, y)"),
            "sub: dtypes differ, a: f32[2] and b: i32[2]; cast b to f32");
  EXPECT_EQ(refused("x: bool[2], y: bool[2]", "sub(x, y)"),
            "sub: operands have dtype bool; it takes floats, integers, complex numbers");
  EXPECT_EQ(refused("x: f32[2], y: f32[3]", "mul(x, y)"),
            "mul: f32[2] and f32[3] do not broadcast; axis -1 has sizes 2 and 3; they must be equal or one "
            "of them 1");
  EXPECT_EQ(refused("x: f32[2], y: i32[2]", "mul(x, y)"),
            "mul: dtypes differ, a: f32[2] and b: i32[2]; cast b to f32");
  EXPECT_EQ(refused("x: bool[2], y: bool[2]", "mul(x, y)"),
            "mul: operands have dtype bool; it takes floats, integers, complex numbers");
  EXPECT_EQ(refused("x: f32[2], y: f32[3]", "div(x, y)"),
            "div: f32[2] and f32[3] do not broadcast; axis -1 has sizes 2 and 3; they must be equal or one "
            "of them 1");
  EXPECT_EQ(refused("x: f32[2], y: i32[2]", "div(x, y)"),
            "div: dtypes differ, a: f32[2] and b: i32[2]; cast b to f32");
  EXPECT_EQ(refused("x: bool[2], y: bool[2]", "div(x, y)"),
            "div: operands have dtype bool; it takes floats, integers, complex numbers");
  EXPECT_EQ(refused("x: f32[2], y: f32[3]", "max(x, y)"),
            "max: f32[2] and f32[3] do not broadcast; axis -1 has sizes 2 and 3; they must be equal or one "
            "of them 1");
  EXPECT_EQ(refused("x: f32[2], y: i32[2]", "max(x, y)"),
            "max: dtypes differ, a: f32[2] and b: i32[2]; cast b to f32");
  EXPECT_EQ(refused("x: bool[2], y: bool[2]", "max(x, y)"),
            "max: operands have dtype bool; it takes floats, integers");
  EXPECT_EQ(refused("x: f32[2], y: f32[3]", "min(x, y)"),
            "min: f32[2] and f32[3] do not broadcast; axis -1 has sizes 2 and 3; they must be equal or one "
            "of them 1");
  EXPECT_EQ(refused("x: f32[2], y: i32[2]", "min(x, y)"),
            "min: dtypes differ, a: f32[2] and b: i32[2]; cast b to f32");
  EXPECT_EQ(refused("x: bool[2], y: bool[2]", "min(x, y)"),
            "min: operands have dtype bool; it takes floats, integers");
  EXPECT_EQ(refused("x: f32[2], y: f32[3]", "pow(x, y)"),
            "pow: f32[2] and f32[3] do not broadcast; axis -1 has sizes 2 and 3; they must be equal or one "
            "of them 1");
  EXPECT_EQ(refused("x: f32[2], y: i32[2]", "pow(x, y)"),
            "pow: dtypes differ, a: f32[2] and b: i32[2]; cast b to f32");
  EXPECT_EQ(refused("x: bool[2], y: bool[2]", "pow(x, y)"), "pow: operands have dtype bool; it takes floats");
}

TEST(Calls, shapes) {
  EXPECT_EQ(refused("x: c64[2]", "cast(x, to=f32)"),
            "cast: x: c64[2] is complex and f32 is not; take the real part first");
  EXPECT_EQ(refused("x: f32[2,3], y: f32[2,3,1]", "concat(x, y, axis=0)"),
            "concat: ranks differ, f32[2,3] and operand 1: f32[2,3,1]");
  EXPECT_EQ(refused("x: f32[2,3], y: f32[3,3]", "concat(x, y, axis=1)"),
            "concat: sizes of axis 0 differ, f32[2,3] and operand 1: f32[3,3]; only axis 1 may differ");
  EXPECT_EQ(refused("x: f32[2], y: i32[2]", "concat(x, y, axis=0)"),
            "concat: dtypes differ, f32[2] and operand 1: i32[2]; cast it to f32");
  EXPECT_EQ(refused("x: f32[2], y: f32[2]", "concat(x, y, axis=1)"),
            "concat: axis 1 is out of range for first: f32[2]");
  EXPECT_EQ(refused("x: f32[4]", "narrow(x, axis=0, start=2, len=3)"),
            "narrow: range 2 + 3 exceeds axis 0 of x: f32[4]");
  EXPECT_EQ(refused("x: f32[4]", "narrow(x, axis=1, start=0, len=1)"),
            "narrow: axis 1 is out of range for x: f32[4]");
  EXPECT_EQ(refused("x: f32[4]", "narrow(x, axis=0, start=-1, len=1)"),
            "narrow: start -1 and len 1 must not be negative");
  EXPECT_EQ(refused("x: f32[2,3]", "transpose(x, perm=[0])"),
            "transpose: perm [0] has 1 entries for x: f32[2,3]");
  EXPECT_EQ(refused("x: f32[2,3]", "transpose(x, perm=[0, 0])"),
            "transpose: axis 0 is listed twice for x: f32[2,3]");
  EXPECT_EQ(refused("x: f32[2,3]", "transpose(x, perm=[0, 2])"),
            "transpose: axis 2 is out of range for x: f32[2,3]");
  EXPECT_EQ(refused("x: f32[2]", "expand(x, shape=(3))"),
            "expand: x: f32[2] does not broadcast to [3]; axis 0 has size 2, it must be 1 or 3");
  EXPECT_EQ(refused("x: f32[2,2]", "expand(x, shape=(2))"),
            "expand: x: f32[2,2] has more axes than the target [2]");
  EXPECT_EQ(refused("x: f32[4]", "reshape(x, shape=(3))"),
            "reshape: x: f32[4] has 4 elements, shape [3] has 3");
  EXPECT_EQ(refused("x: f32[4]", "reshape(x, shape=(-1, -1))"),
            "reshape: shape [-1, -1] has more than one -1");
  EXPECT_EQ(refused("x: f32[4]", "reshape(x, shape=(3, -1))"),
            "reshape: x: f32[4] has 4 elements, not divisible by 3 of shape [3, -1]");
  EXPECT_EQ(refused("", "full(shape=f32[-1], value=1)"),
            "full: shape f32[-1] has an axis of size -1; give a size or a symbol");
}

TEST(Calls, choice_and_complex_numbers) {
  EXPECT_EQ(refused("x: f32[2], y: i32[2]", "compare(x, y, kind=lt)"),
            "compare: dtypes differ, a: f32[2] and b: i32[2]; cast b to f32");
  EXPECT_EQ(refused("x: f32[2], y: f32[3]", "compare(x, y, kind=lt)"),
            "compare: f32[2] and f32[3] do not broadcast; axis -1 has sizes 2 and 3; they must be equal or "
            "one of them 1");
  EXPECT_EQ(refused("x: c64[2], y: c64[2]", "compare(x, y, kind=lt)"),
            "compare: complex numbers have no order; only eq and ne compare them");
  EXPECT_EQ(refused("x: f32[2]", "complex_norm_sq(x)"),
            "complex_norm_sq: z: f32[2] has dtype f32; it must be c64");
  EXPECT_EQ(refused("x: f32[2]", "conjugate(x)"), "conjugate: z: f32[2] has dtype f32; it must be c64");
  EXPECT_EQ(refused("x: f32[2]", "imag(x)"), "imag: z: f32[2] has dtype f32; it must be c64");
  EXPECT_EQ(refused("x: f32[2]", "real(x)"), "real: z: f32[2] has dtype f32; it must be c64");
  EXPECT_EQ(refused("x: f32[2], y: f64[2]", "make_complex(x, y)"),
            "make_complex: dtypes differ, re: f32[2] and im: f64[2]; cast im to f32");
  EXPECT_EQ(refused("x: i32[2], y: i32[2]", "make_complex(x, y)"),
            "make_complex: re: i32[2] has dtype i32; it must be f32 or f64");
  EXPECT_EQ(refused("c: bool[2], a: f32[2], b: i32[2]", "where(c, a, b)"),
            "where: dtypes differ, a: f32[2] and b: i32[2]; cast b to f32");
  EXPECT_EQ(refused("c: bool[3], a: f32[2], b: f32[2]", "where(c, a, b)"),
            "where: bool[3] and f32[2] do not broadcast; axis -1 has sizes 3 and 2; they must be equal or "
            "one of them 1");
}

TEST(Calls, reductions) {
  EXPECT_EQ(refused("x: f32[2]", "cumsum(x, axis=1)"), "cumsum: axis 1 is out of range for x: f32[2]");
  EXPECT_EQ(refused("x: f32[2]", "cumprod(x, axis=-2)"), "cumprod: axis -2 is out of range for x: f32[2]");
  EXPECT_EQ(refused("x: bool[2]", "cumsum(x)"),
            "cumsum: x: bool[2] has dtype bool; cast it to a numeric type first");
  EXPECT_EQ(refused("x: bool[2]", "cumprod(x)"),
            "cumprod: x: bool[2] has dtype bool; cast it to a numeric type first");
  EXPECT_EQ(refused("x: f32[2,3], w: f32[2,4]", "linear_recurrence(x, w)"),
            "linear_recurrence: sizes of a and b differ, 3 and 4");
  EXPECT_EQ(refused("x: i32[2,3], w: i32[2,3]", "linear_recurrence(x, w)"),
            "linear_recurrence: a: i32[2,3] has dtype i32; it must be f16, bf16, f32, f64 or c64");
  EXPECT_EQ(refused("x: f32[4]", "reduce(x, axes=[1])"), "reduce: axis 1 is out of range for x: f32[4]");
  EXPECT_EQ(refused("x: f32[4,4]", "reduce(x, axes=[0, 0])"),
            "reduce: axis 0 is listed twice for x: f32[4,4]");
  EXPECT_EQ(refused("x: bool[4]", "reduce(x)"),
            "reduce: x: bool[4] has dtype bool; cast it to a numeric type first");
  EXPECT_EQ(refused("x: c64[4]", "reduce(x, kind=max)"),
            "reduce: x: c64[4] is complex and has no order; reduce its real part or modulus");
}

TEST(Calls, products_and_blocks) {
  EXPECT_EQ(refused("x: f32[2,3], w: f32[4,5]", "linear(x, w)"),
            "linear: matmul: inner sizes differ, f32[2,3] x rhs: f32[4,5]; rhs must have 3 rows");
  EXPECT_EQ(refused("x: f32[2,3], w: f32[3,5], b: f32[4]", "linear(x, w, b)"),
            "linear: fused_matmul_bias_act: bias: f32[4] must have the 5 columns of w: f32[3,5]");
  EXPECT_EQ(refused("x: f32[2,3], w: f32[3,5], b: f32[4]", "linear_fused(x, w, b)"),
            "linear_fused: fused_matmul_bias_act: bias: f32[4] must have the 5 columns of w: f32[3,5]");
  EXPECT_EQ(refused("x: f32[2,3], w: f32[3,5]", "linear_fused(x, w)"),
            "linear_fused: 2 operands; it takes 3 (x, w, bias)");
  EXPECT_EQ(refused("x: f32[2,3], w: f32[4,5]", "matmul(x, w)"),
            "matmul: inner sizes differ, f32[2,3] x rhs: f32[4,5]; rhs must have 3 rows");
  EXPECT_EQ(refused("x: f32[2], w: f32[2]", "matmul(x, w)"),
            "matmul: lhs: f32[2] has rank 1; it must have rank 2 or more");
  EXPECT_EQ(refused("x: f32[2,2], w: f64[2,2]", "matmul(x, w)"),
            "matmul: dtypes differ, lhs: f32[2,2] and rhs: f64[2,2]; cast rhs to f32");
  EXPECT_EQ(refused("x: f32[2,3,4], w: f32[3,4,5]", "matmul(x, w)"),
            "matmul: f32[2] and f32[3] do not broadcast; axis -1 has sizes 2 and 3; they must be equal or "
            "one of them 1");
  EXPECT_EQ(refused("x: f32[2,4], r: f32[2,3], g: f32[4], b: f32[4]", "residual_rms_norm(x, r, g, b)"),
            "residual_rms_norm: fused_residual_rms_norm: sizes of x and residual differ, 4 and 3");
  EXPECT_EQ(refused("x: f32[2,4], r: f32[2,4], g: f32[3], b: f32[4]", "residual_rms_norm(x, r, g, b)"),
            "residual_rms_norm: fused_residual_rms_norm: bias_or_gamma: f32[3] must have the size of axis 1 "
            "of f32[2,4]");
  EXPECT_EQ(refused("x: f32[2,4], a: f32[4,3], b: f32[5,3]", "shared_linear_pair(x, a, b)"),
            "shared_linear_pair: matmul: inner sizes differ, f32[2,4] x rhs: f32[5,3]; rhs must have 4 rows");
  EXPECT_EQ(refused("x: f32[2,4], a: f32[4,3], b: f32[4,3], c: f32[4,4]", "swiglu_ffn(x, a, b, c)"),
            "swiglu_ffn: matmul: inner sizes differ, f32[2,3] x rhs: f32[4,4]; rhs must have 3 rows");
  EXPECT_EQ(refused("x: f32[2,4], a: f32[4,3], b: f32[4,2], c: f32[3,4]", "swiglu_ffn(x, a, b, c)"),
            "swiglu_ffn: swiglu_ffn: up_w: f32[4,3] and gate_w: f32[4,2] differ; they must be alike");
  EXPECT_EQ(refused("c: f32[2]",
                    "llama_decoder_block(c, c, c, c, c, c, c, c, c, c, c, c, c, c, num_heads=2, head_dim=4)"),
            "llama_decoder_block: x: f32[2] has rank 1; it must have rank 3");
  EXPECT_EQ(refused("c: f32[2]", "llama_decoder_block(c)"),
            "llama_decoder_block: 1 operands; it takes 14 to 15 (x, ln1_g, ln1_b, q_w, k_w, v_w, o_w, ln2_g, "
            "ln2_b, up_w, gate_w, down_w, cos, sin, mask?)");
  EXPECT_EQ(refused("c: f32[2]", "qwen35_mtp_head(c)"),
            "qwen35_mtp_head: 1 operands; it takes 29 (h_pre_norm, input_ids, cos, sin, last_token_idx, "
            "embed_w, hnorm_w, hnorm_b, enorm_w, enorm_b, eh_w, attn_norm_w, attn_norm_b, q_gate_w, k_w, "
            "v_w, q_norm_w, q_norm_b, k_norm_w, k_norm_b, o_w, post_norm_w, post_norm_b, up_w, gate_w, "
            "down_w, head_norm_w, head_norm_b, lm_head_w)");
}

TEST(Calls, control) {
  EXPECT_EQ(
      refused(
          "q: i32[2], x: f32[2]",
          "if(q, x, then_body=graph @t(a: f32[2]) { return a }, else_body=graph @e(a: f32[2]) { return a })"),
      "if: predicate: i32[2] must be a real or boolean scalar; reduce it with all or any first");
  EXPECT_EQ(refused("q: bool[], x: f32[2]",
                    "if(q, x, then_body=graph @t(a: f32[2]) { return a }, else_body=graph @e(a: f32[2]) { b "
                    "= exp(a) return b, a })"),
            "if: then_body has 1 outputs and else_body 2");
  EXPECT_EQ(
      refused(
          "q: bool[], x: f32[2]",
          "if(q, x, then_body=graph @t(a: f32[3]) { return a }, else_body=graph @e(a: f32[2]) { return a })"),
      "if: types of input 0 of then_body differ: f32[3] and f32[2]");
  EXPECT_EQ(refused("q: bool[], x: f32[2]",
                    "if(q, x, then_body=graph @t(a: f32[2]) { return a }, else_body=graph @e(a: f32[2]) { b "
                    "= cast(a, to=i32) return b })"),
            "if: types of output 0 of the bodies differ: f32[2] and i32[2]");
  EXPECT_EQ(
      refused(
          "c: f32[], x: f32[5]",
          "scan(c, x, carries=1, length=4, body=graph @b(c: f32[], x: f32[]) { d = add(c, x) return d })"),
      "scan: sequence 0 is f32[5]; its first axis must be the length 4");
  EXPECT_EQ(refused("c: f32[], x: f32[5]",
                    "scan(c, x, carries=1, length=5, body=graph @b(c: f32[], x: f32[]) { d = cast(c, to=f64) "
                    "return d })"),
            "scan: types of carry 0 before and after a step differ: f64[] and f32[]");
  EXPECT_EQ(
      refused("c: f32[], x: f32[5]", "scan(c, x, carries=1, length=5, body=graph @b(c: f32[]) { return c })"),
      "scan: body 'b' has 1 inputs; it is given 2");
  EXPECT_EQ(refused("c: f32[]",
                    "scan(c, carries=1, length=n, checkpoints=2, body=graph @b(c: f32[]) { return c })"),
            "scan: checkpoints is 2 and length n is symbolic; bind it first");
  EXPECT_EQ(refused("c: f32[]",
                    "scan(c, carries=1, length=3, checkpoints=-1, body=graph @b(c: f32[]) { return c })"),
            "scan: checkpoints is -1; it must not be negative");
  EXPECT_EQ(refused("c: f32[]",
                    "while(c, carries=1, max_iterations=-2, cond=graph @c(a: f32[]) { b = compare(a, a) "
                    "return b }, body=graph @b(a: f32[]) { return a })"),
            "while: max_iterations is -2; it must be 0 or more");
  EXPECT_EQ(refused("c: f32[]",
                    "while(c, carries=1, cond=graph @c(a: f32[]) { b = compare(a, a) return b }, body=graph "
                    "@b(a: f32[]) { b = cast(a, to=f64) return b })"),
            "while: types of carry 0 before and after a step differ: f64[] and f32[]");
  EXPECT_EQ(refused("c: f32[2]", "custom_fn(c, fwd_body=graph @f(a: f32[3]) { return a })"),
            "custom_fn: types of input 0 of fwd_body differ: f32[3] and f32[2]");
  EXPECT_EQ(refused("c: f32[2]",
                    "custom_fn(c, fwd_body=graph @f(a: f32[2]) { return a }, vjp_body=graph @v(a: f32[2]) { "
                    "return a })"),
            "custom_fn: vjp_body lacks the input 'd_output'");
  EXPECT_EQ(refused("c: f32[2]",
                    "custom_fn(c, fwd_body=graph @f(a: f32[2]) { return a }, jvp_body=graph @v(a: f32[2]) { "
                    "return a })"),
            "custom_fn: jvp_body lacks the input 'tangent_0'");
  EXPECT_EQ(refused("c: f32[2]", "custom_fn(c)"), "custom_fn: fwd_body is missing");
  EXPECT_EQ(refused("c: f32[2]", "fused(c)"), "fused: body is missing");
  EXPECT_EQ(refused("c: f32[2]", "fused(c, body=graph @f(a: f32[3]) { return a })"),
            "fused: types of input 0 of body differ: f32[3] and f32[2]");
  EXPECT_EQ(refused("c: f32[2]", "fused(c, body=graph @f(a: f32[2], b: f32[2]) { return add(a, b) })"),
            "fused: body 'f' has 2 inputs; it is given 1");
}

TEST(Calls, leaves) {
  using test::message_of;
  ir::Graph g;
  g.input("x", parse_shape("f32[2]"));
  EXPECT_EQ(message_of([&] { g.input("x", parse_shape("f32[2]")); }),
            "input: graph 'main' already has an input or param named 'x'; names must be unique");
  EXPECT_EQ(message_of([&] { g.input("", parse_shape("f32[2]")); }), "input: the name is empty");
  EXPECT_EQ(message_of([&] { g.param("x", parse_shape("f32[2]")); }),
            "param: graph 'main' already has an input or param named 'x'; names must be unique");
  EXPECT_EQ(refused("x: f32[]", "constant(x)"), "constant: 1 operands; it takes none");
  EXPECT_EQ(refused("", "constant(value=u8[1]{256})"), "literal: 256 does not fit into u8");
  EXPECT_EQ(refused("", "constant(value=bool[1]{2})"), "literal: 2 does not fit into bool");
  EXPECT_EQ(refused("", "constant(value=f32[2]{1.0})"), "literal: 1 values for f32[2]; it has 2");
}

}  // namespace
}  // namespace rlx::ops
