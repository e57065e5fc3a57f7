#include <algorithm>
#include <limits>

#include "rlx/lang/operators.h"
#include "rlx/lang/trace.h"
#include "rlx/llm/sampler.h"

namespace rlx::llm {

namespace {

constexpr double kNegativeInfinity = -std::numeric_limits<double>::infinity();

struct Settings {
  Tracer& t;
  Dim batch = Dim::symbol("batch");
  int64_t vocab;

  Tensor of_row(const char* name, DType dtype = DType::f32) {
    return t.input(name, {batch}, dtype).unsqueeze(1);
  }
  Tensor table(const char* name, DType dtype = DType::f32) { return t.input(name, {batch, vocab}, dtype); }
};

Tensor adjusted(Settings& s, Tensor x, const SamplerParts& parts) {
  if (parts.bias) x = x + s.table("bias");
  if (parts.penalties) {
    const Tensor repetition = s.of_row("repetition");
    const Tensor in_text = s.table("in_text", DType::bool_), generated = s.table("generated");
    x = in_text.where((x > 0).where(x / repetition, x * repetition), x);
    x = x - s.of_row("frequency") * generated - s.of_row("presence") * generated.min(1);
  }
  if (parts.mask) x = s.table("mask", DType::bool_).where(x, kNegativeInfinity);
  return x;
}

struct Candidates {
  Tensor probabilities, ids;  // [batch, n], not normalised; 0: taken out
};

// Most likely first. Each filter looks at the probabilities that the former left; as all it needs are ratios and sums, they are
// not normalised in between.
Candidates filtered(Settings& s, const Tensor& x, int64_t shortlist) {
  const int64_t n = shortlist > 0 ? std::min(shortlist, s.vocab) : s.vocab;
  const auto [values, ids] = n < s.vocab ? top_k(x, {.k = n}) : sort(x, {.axis = -1, .descending = true});
  const Tensor rank = s.t.arange(n).unsqueeze(0);
  const Tensor limit = s.of_row("top_k", DType::i32);
  // The largest is the first. A row of -inf alone has no distribution; it keeps its first token.
  const Tensor largest = values.narrow(1, 0, 1).max(-3e38);
  Tensor p = (values - largest).exp();
  p = logical_or(limit.le(0), rank < limit).where(p, 0.0);
  const Tensor before = p.cumsum(1, true);
  // From 1 on nothing is cut: what is too small for the sum in f32 to grow is still a candidate.
  const Tensor share = s.of_row("top_p");
  p = logical_or(share.ge(1.0), before < share * p.sum({1}, true)).where(p, 0.0);
  p = (p >= s.of_row("min_p") * p.narrow(1, 0, 1)).where(p, 0.0);
  return {p, ids};
}

// The first candidate with u * total < sum of the candidates up to it.
Tensor drawn(Settings& s, const Tensor& p) {
  const Tensor seed = s.t.input("seed", {s.batch}, DType::i64),
               step = s.t.input("step", {s.batch}, DType::i64);
  const Tensor u = random_uniform(seed, step, {.shape = Shape(DType::f32, {1})});
  const Tensor sums = p.cumsum(1);
  const Tensor total = sums.narrow(1, p.dim(1).value() - 1, 1);
  // A candidate of probability 0 adds nothing to the sum, so it is never the first above. u is at most 1 - 2^-24, so that
  // u * total is below total in f32 and there is one.
  return sums.gt(u * total).cast(DType::f32).argmax(1);
}

}  // namespace

Graph sampler_graph(int64_t vocab, const SamplerParts& parts) {
  return trace("sampler", [&](Tracer& t) {
    Settings s{.t = t, .vocab = vocab};
    const Tensor logits = s.table("logits");
    const Tensor x = adjusted(s, logits, parts);
    NamedTensors outputs;
    Tensor token = x.argmax(1);
    if (parts.draw) {
      const Tensor temperature = s.of_row("temperature");
      const Tensor scaled = x / (temperature > 0).where(temperature, 1.0);
      Candidates c;
      if (parts.filters)
        c = filtered(s, scaled, parts.shortlist);
      else
        c = {(scaled - scaled.reduce(ops::ReduceOp::max, {1}, true).max(-3e38)).exp(),
             t.arange(vocab).unsqueeze(0)};
      const Tensor place = drawn(s, c.probabilities);
      const Tensor chosen =
          parts.filters ? take_along(c.ids, place.unsqueeze(1), {.axis = 1}).squeeze(1) : place;
      token = (temperature.squeeze(1) > 0).where(chosen, token);
      outputs.emplace_back("ids", parts.filters ? c.ids : c.ids.expand({s.batch, vocab}));
      outputs.emplace_back("probabilities", c.probabilities / c.probabilities.sum({1}, true));
    }
    outputs.emplace_back("token", token);
    outputs.emplace_back("log_probability", take_along(logits, token.unsqueeze(1), {.axis = 1}).squeeze(1) -
                                                logits.logsumexp({1}));
    return outputs;
  });
}

}  // namespace rlx::llm
