#include "rlx/lang/builders/random.h"

#include "rlx/lang/graph.h"
#include "rlx/ops/elementwise/cast.h"
#include "rlx/ops/random/dropout.h"
#include "rlx/ops/random/random.h"
#include "rlx/ops/random/sample.h"

namespace rlx {

Value RandomBuilder::random_bits(Value key, Value counter, Dims dims, const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::random_bits(t(key), t(counter), std::move(dims)); });
}

Value RandomBuilder::random_uniform(Value key, Value counter, const Shape& type, double low, double high,
                                    const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::random_uniform(t(key), t(counter), type, low, high); });
}

Value RandomBuilder::random_normal(Value key, Value counter, const Shape& type, double mean, double stddev,
                                   const Declared& shape, const Loc& loc) {
  return one(shape, loc, [&] { return ops::random_normal(t(key), t(counter), type, mean, stddev); });
}

Value RandomBuilder::dropout(Value x, Value key, Value counter, double rate, const Declared& shape,
                             const Loc& loc) {
  return one(shape, loc, [&] { return ops::dropout(t(x), t(key), t(counter), rate); });
}

Value RandomBuilder::sample(Value logits, int64_t top_k, double top_p, double temperature, int64_t seed,
                            const Declared& output_shape, std::optional<Value> counter, const Loc& loc) {
  return one(output_shape, loc, [&] {
    const auto number = [&](int64_t v) {
      return t(graph().constant(Literal::scalar(DType::i64, double(v))));
    };
    const int64_t call_site = graph().next_id();  // no other call in this graph has it
    const ir::Expr token = ops::sample(t(logits), number(0), counter ? t(*counter) : number(call_site), top_k,
                                       top_p, temperature, seed);
    const bool other =
        output_shape && is_integer(output_shape->dtype()) && output_shape->dtype() != token.dtype();
    return other ? ops::cast(token, output_shape->dtype()) : token;
  });
}

}  // namespace rlx
