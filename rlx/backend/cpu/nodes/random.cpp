// Random numbers from explicit streams, dropout, and drawing a token.
#include "rlx/backend/cpu/kernels/random.h"

#include "rlx/backend/cpu/kernels/order.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/nodes/whole_numbers.h"
#include "rlx/ops/elementwise/broadcast.h"
#include "rlx/ops/random/dropout.h"
#include "rlx/ops/random/random.h"
#include "rlx/ops/random/sample.h"

namespace rlx::cpu {
namespace {

// Element at[s] of an operand of integers belongs to stream s.
struct StreamOperand {
  DType dtype;
  std::vector<int64_t> at;

  StreamOperand(const Arg& x, const Dims& streams)
      : dtype(x.dtype()), at(ops::broadcast_positions(x.shape.dims(), streams)) {}
  void read(const std::byte* data, uint64_t* out) const {
    for (size_t s = 0; s < at.size(); ++s) out[s] = uint64_t(integer_at(dtype, data, at[s]));
  }
};

std::unique_ptr<Step> prepare_fill(const Request& r, RandomFill p, size_t drawn_axes) {
  const Shape& y = r.out[0].shape;
  if (y.elements() == 0) return make_step([](const Launch&) {});
  const Dims streams(y.dims().begin(), y.dims().end() - std::ptrdiff_t(drawn_axes));
  const StreamOperand keys(r.in[0], streams), counters(r.in[1], streams);
  p.dtype = y.dtype();
  p.streams = int64_t(keys.at.size());
  p.count = y.elements() / p.streams;
  const size_t each = round_up(size_t(p.streams) * sizeof(uint64_t));
  return make_step(
      [p, keys, counters, each](const Launch& l) {
        RandomFill now = p;
        auto* key = reinterpret_cast<uint64_t*>(l.workspace);
        auto* counter = reinterpret_cast<uint64_t*>(l.workspace + each);
        keys.read(l.in[0], key);
        counters.read(l.in[1], counter);
        now.keys = key;
        now.counters = counter;
        now.y = l.out[0];
        random_fill(l.team, now);
      },
      2 * each);
}

std::unique_ptr<Step> prepare_bits(const Request& r) {
  return prepare_fill(r, {.kind = RandomKind::bits}, r.node.as<ops::RandomBits>().shape.size());
}

std::unique_ptr<Step> prepare_uniform(const Request& r) {
  const auto& a = r.node.as<ops::RandomUniform>();
  return prepare_fill(r, {.kind = RandomKind::uniform, .low = a.low, .high = a.high}, a.shape.dims().size());
}

std::unique_ptr<Step> prepare_normal(const Request& r) {
  const auto& a = r.node.as<ops::RandomNormal>();
  return prepare_fill(r, {.kind = RandomKind::normal, .low = a.mean, .high = a.stddev},
                      a.shape.dims().size());
}

// ---- a scalar key and counter behind an operand of f32 ----

Support accepts_stream(const Request& r) {
  if (r.in[0].dtype() != DType::f32) return Support::no("operand 0 is ", r.in[0].dtype());
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

std::unique_ptr<Step> prepare_dropout(const Request& r) {
  const Dropout p{.count = r.out[0].shape.elements(), .rate = r.node.as<ops::Dropout>().rate};
  auto step = make_step([p, key = r.in[1].dtype(), counter = r.in[2].dtype()](const Launch& l) {
    Dropout now = p;
    now.key = uint64_t(integer_at(key, l.in[1], 0));
    now.counter = uint64_t(integer_at(counter, l.in[2], 0));
    now.x = reinterpret_cast<const float*>(l.in[0]);
    now.y = reinterpret_cast<float*>(l.out[0]);
    dropout(l.team, now);
  });
  step->in_place = {0};
  return step;
}

std::unique_ptr<Step> prepare_sample(const Request& r) {
  const auto& a = r.node.as<ops::SampleTokens>();
  SampleTokens p{.rows = r.out[0].shape.elements(), .n = r.in[0].shape.dim(-1).value()};
  p.stride = p.n;
  p.top_k = a.top_k;
  p.top_p = a.top_p;
  p.temperature = a.temperature;
  return make_step(
      [p, seed = a.seed, key = r.in[1].dtype(), counter = r.in[2].dtype()](const Launch& l) {
        SampleTokens now = p;
        now.key = uint64_t(integer_at(key, l.in[1], 0)) + uint64_t(seed);
        now.counter = uint64_t(integer_at(counter, l.in[2], 0));
        now.logits = reinterpret_cast<const float*>(l.in[0]);
        now.tokens = reinterpret_cast<int32_t*>(l.out[0]);
        sample_tokens(l.team, now, l.workspace);
      },
      sample_tokens_workspace(p, r.threads));
}

}  // namespace

void add_random(KernelTable& table) {
  table.add<ops::RandomBits>({"random_bits_philox", all_row_major, prepare_bits});
  table.add<ops::RandomUniform>({"random_uniform_philox", all_row_major, prepare_uniform});
  table.add<ops::RandomNormal>({"random_normal_philox", all_row_major, prepare_normal});
  table.add<ops::Dropout>({"dropout_philox_f32", accepts_stream, prepare_dropout});
  table.add<ops::SampleTokens>({"sample_tokens_f32", accepts_stream, prepare_sample});
}

}  // namespace rlx::cpu
