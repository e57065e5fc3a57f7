// The large blocks against a plain computation, with grouped queries, several batch rows and a symbolic
// sequence length, under both policies.
#include <cmath>

#include "rlx/lang/module.h"
#include "rlx/transform/transform.h"
#include "tests/lang/plain.h"
#include "tests/lang/rows.h"
#include "tests/support/errors.h"

namespace rlx {
namespace {

using namespace test;
using plain::Matrix;

constexpr int64_t kBatch = 2, kSeq = 3, kRows = kBatch * kSeq, kHidden = 6, kHeads = 4, kKv = 2, kDim = 2,
                  kNet = 5, kVocab = 7;
constexpr int64_t kWide = kHeads * kDim, kNarrow = kKv * kDim;

Matrix matrix(const Literal& l) { return {l, l.shape().dim(0).value(), l.shape().dim(1).value()}; }

struct Tables {
  Literal cos = Literal::zeros(Shape(DType::f64, {8, kDim / 2})), sin = cos;
  Tables() {
    for (int64_t p = 0; p < 8; ++p) {
      cos.mutable_data<double>()[size_t(p)] = std::cos(0.7 * double(p));
      sin.mutable_data<double>()[size_t(p)] = std::sin(0.7 * double(p));
    }
  }
};

// A HIR module with symbolic batch and seq; operand 0 and those listed carry them in front.
template <class Build>
void expect_dynamic(const Literals& in, const std::vector<std::string>& types, Build build,
                    const Literal& want) {
  for (const FusionPolicy policy : {FusionPolicy::direct, FusionPolicy::fusable}) {
    GraphModule m = GraphModule::hir("block").with_fusion_policy(policy);
    Values values;
    for (size_t i = 0; i < in.size(); ++i)
      values.push_back(m.input(cat("x", i), types[i].empty() ? in[i].shape() : parse_shape(types[i])));
    m.finish_hir(build(m, values));
    const Graph g = m.into_graph();
    EXPECT_TRUE(g.verify().empty());
    EXPECT_EQ(g.dynamic_symbols(), (std::vector<std::string>{"batch", "seq"}));
    expect_close(ir::interpret(g, in)[0], want, 1e-9);
  }
}

TEST(ModuleRow, llama_decoder_block) {
  const Tables t;
  const Literals in = {mixed({kBatch, kSeq, kHidden}, 1),
                       mixed({kHidden}, 2),
                       mixed({kHidden}, 3),
                       mixed({kHidden, kWide}, 4),
                       mixed({kHidden, kNarrow}, 5),
                       mixed({kHidden, kNarrow}, 6),
                       mixed({kWide, kHidden}, 7),
                       mixed({kHidden}, 8),
                       mixed({kHidden}, 9),
                       mixed({kHidden, kNet}, 10),
                       mixed({kHidden, kNet}, 11),
                       mixed({kNet, kHidden}, 12),
                       t.cos,
                       t.sin};
  constexpr double kEps = 1e-3;
  const Matrix x(in[0], kRows, kHidden), cos = matrix(t.cos), sin = matrix(t.sin);
  const Matrix h = plain::rms_norm(x, in[1], in[2], kEps);
  const Matrix q = plain::rotate(plain::product(h, matrix(in[3])), kSeq, kDim, kDim, cos, sin);
  const Matrix k = plain::rotate(plain::product(h, matrix(in[4])), kSeq, kDim, kDim, cos, sin);
  const Matrix mixed_heads =
      plain::causal_attention(q, k, plain::product(h, matrix(in[5])), kBatch, kSeq, kHeads, kKv, kDim);
  const Matrix p = plain::add(x, plain::product(mixed_heads, matrix(in[6])));
  const Matrix y = plain::add(p, plain::swiglu(plain::rms_norm(p, in[7], in[8], kEps), matrix(in[9]),
                                               matrix(in[10]), matrix(in[11])));
  std::vector<std::string> types(in.size());
  types[0] = cat("f64[batch,seq,", kHidden, "]");
  expect_dynamic(
      in, types,
      [](GraphModule& m, const Values& v) {
        return m.llama_decoder_block(v, kHeads, kDim, kKv, kEps, MaskKind::causal);
      },
      y.literal({kBatch, kSeq, kHidden}));
  expect_dynamic(  // a window over all of the sequence
      in, types,
      [](GraphModule& m, const Values& v) {
        return m.llama_decoder_block(v, kHeads, kDim, kKv, kEps, MaskKind::sliding_window, kSeq - 1);
      },
      y.literal({kBatch, kSeq, kHidden}));

  // A fifteenth input is the mask; one that blocks nothing changes nothing.
  GraphModule m = GraphModule::hir("m");
  Values v;
  for (size_t i = 0; i < in.size(); ++i) v.push_back(m.input(cat("x", i), in[i].shape()));
  EXPECT_EQ(message_of([&] { m.llama_decoder_block(v, kHeads, kDim, kKv, kEps, MaskKind::custom); }),
            "llama_decoder_block: mask_kind custom needs the operand mask");
  Literals with_mask = in;
  with_mask.push_back(Literal::full(Shape(DType::f64, {kBatch, kSeq}), 1));
  v.push_back(m.input("mask", with_mask.back().shape()));
  m.finish_hir(m.llama_decoder_block(v, kHeads, kDim, kKv, kEps, MaskKind::causal));
  expect_close(ir::interpret(m.into_graph(), with_mask)[0], y.literal({kBatch, kSeq, kHidden}), 1e-9);
  EXPECT_TRUE(message_of([&] {
                m.llama_decoder_block({v[0]}, kHeads, kDim, kKv, kEps, MaskKind::causal);
              }).starts_with("llama_decoder_block: 1 operands; it takes 14 to 15"));
}

TEST(ModuleRow, qwen35_mtp_head) {
  const Tables t;
  const Literal ids = i32({kBatch, kSeq}, {3, 1, 6, 0, 2, 5}), last = i32({kBatch}, {2, 1});
  constexpr int64_t kE = kHidden;
  constexpr double kEps = 1e-3;
  const Literals in = {mixed({kBatch, kSeq, kE}, 1),
                       ids,
                       t.cos,
                       t.sin,
                       last,
                       mixed({kVocab, kE}, 2),
                       mixed({kE}, 3),
                       mixed({kE}, 4),
                       mixed({kE}, 5),
                       mixed({kE}, 6),
                       mixed({2 * kE, kE}, 7),
                       mixed({kE}, 8),
                       mixed({kE}, 9),
                       mixed({kE, 2 * kWide}, 10),
                       mixed({kE, kNarrow}, 11),
                       mixed({kE, kNarrow}, 12),
                       mixed({kDim}, 13),
                       mixed({kDim}, 14),
                       mixed({kDim}, 15),
                       mixed({kDim}, 16),
                       mixed({kWide, kE}, 17),
                       mixed({kE}, 18),
                       mixed({kE}, 19),
                       mixed({kE, kNet}, 20),
                       mixed({kE, kNet}, 21),
                       mixed({kNet, kE}, 22),
                       mixed({kE}, 23),
                       mixed({kE}, 24),
                       mixed({kE, kVocab}, 25)};
  ASSERT_EQ(in.size(), 29u);
  const Matrix h = plain::rms_norm(Matrix(in[0], kRows, kE), in[6], in[7], kEps);
  Matrix e(kRows, kE), eh(kRows, 2 * kE);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t j = 0; j < kE; ++j) e.at(r, j) = in[5].real_at(ids.integer_at(r) * kE + j);
  }
  e = plain::rms_norm(e, in[8], in[9], kEps);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t j = 0; j < kE; ++j) eh.at(r, j) = e.at(r, j), eh.at(r, kE + j) = h.at(r, j);
  }
  const Matrix start = plain::product(eh, matrix(in[10]));
  const Matrix n = plain::rms_norm(start, in[11], in[12], kEps);
  const Matrix q_gate = plain::product(n, matrix(in[13]));
  Matrix q(kRows, kWide), gate(kRows, kWide);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t head = 0; head < kHeads; ++head) {
      for (int64_t l = 0; l < kDim; ++l) {
        q.at(r, head * kDim + l) = q_gate.at(r, head * 2 * kDim + l);
        gate.at(r, head * kDim + l) = plain::sigmoid(q_gate.at(r, head * 2 * kDim + kDim + l));
      }
    }
  }
  // A norm within each head: a matrix with a row per head.
  const auto head_norm = [&](const Matrix& x, const Literal& w, const Literal& b) {
    Matrix split(x.rows * x.cols / kDim, kDim);
    split.v = x.v;
    Matrix y(x.rows, x.cols);
    y.v = plain::rms_norm(split, w, b, kEps).v;
    return y;
  };
  const Matrix cos = matrix(t.cos), sin = matrix(t.sin);
  q = plain::rotate(head_norm(q, in[16], in[17]), kSeq, kDim, kDim, cos, sin);
  const Matrix k =
      plain::rotate(head_norm(plain::product(n, matrix(in[14])), in[18], in[19]), kSeq, kDim, kDim, cos, sin);
  const Matrix mix =
      plain::causal_attention(q, k, plain::product(n, matrix(in[15])), kBatch, kSeq, kHeads, kKv, kDim);
  const Matrix p = plain::add(start, plain::product(plain::multiply(mix, gate), matrix(in[20])));
  const Matrix out = plain::add(p, plain::swiglu(plain::rms_norm(p, in[21], in[22], kEps), matrix(in[23]),
                                                 matrix(in[24]), matrix(in[25])));
  Matrix picked(kBatch, kE);
  for (int64_t b = 0; b < kBatch; ++b) {
    for (int64_t j = 0; j < kE; ++j) picked.at(b, j) = out.at(b * kSeq + last.integer_at(b), j);
  }
  const Matrix logits = plain::product(plain::rms_norm(picked, in[26], in[27], kEps), matrix(in[28]));
  std::vector<std::string> types(in.size());
  types[0] = cat("f64[batch,seq,", kE, "]");
  types[1] = "i32[batch,seq]";
  types[4] = "i32[batch]";
  expect_dynamic(
      in, types,
      [](GraphModule& m, const Values& v) { return m.qwen35_mtp_head(v, kHeads, kKv, kDim, kDim, kEps); },
      logits.literal({kBatch, 1, kVocab}));
}

TEST(Blocks, differentiate_at_hir_stage) {
  GraphModule m = GraphModule::hir("m");
  const Value x = m.input("x", Shape(DType::f64, {1, 2}));
  const Value u = m.param("u", Shape(DType::f64, {2, 3})), g = m.param("g", Shape(DType::f64, {2, 3}));
  const Value d = m.param("d", Shape(DType::f64, {3, 1}));
  m.finish_hir(m.builders().sum(m.swiglu_ffn(x, u, g, d), {}, false));
  const Literals in = {mixed({1, 2}, 1), mixed({2, 3}, 2), mixed({2, 3}, 3), mixed({3, 1}, 4)};
  const ir::Graph derivative = transform::grad(m.as_hir().graph, {"x"});
  const Literal want = difference_gradient(in, 0, f64({}, {1}), [](Graph& g, const Values& v) {
    return g.sum(g.swiglu_ffn(v[0], v[1], v[2], v[3]), {}, false);
  });
  expect_close(ir::interpret(derivative, in)[0], want, 1e-8);
}

}  // namespace
}  // namespace rlx
