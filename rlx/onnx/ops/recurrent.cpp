// Recurrent layers: LSTM, GRU and plain ones, one or both ways.
#include <algorithm>
#include <functional>

#include "rlx/lang/control.h"
#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/codes.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

Function activation(const Call& c, std::string name, double alpha, double beta, bool has_alpha,
                    bool has_beta) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char ch) { return char(std::tolower(ch)); });
  const auto a = [&](double otherwise) { return has_alpha ? alpha : otherwise; };
  const auto b = [&](double otherwise) { return has_beta ? beta : otherwise; };
  if (name == "sigmoid") return [](const Tensor& x) { return rlx::sigmoid(x); };
  if (name == "tanh") return [](const Tensor& x) { return rlx::tanh(x); };
  if (name == "relu") return [](const Tensor& x) { return rlx::relu(x); };
  if (name == "softsign") return [](const Tensor& x) { return x / (1.0 + rlx::abs(x)); };
  if (name == "softplus") return [](const Tensor& x) { return rlx::softplus(x); };
  if (name == "affine") return [k = a(1), d = b(0)](const Tensor& x) { return k * x + d; };
  if (name == "leakyrelu") return [k = a(0.01)](const Tensor& x) { return (x < 0).where(k * x, x); };
  if (name == "thresholdedrelu") return [k = a(1)](const Tensor& x) { return (x > k).where(x, 0.0); };
  if (name == "scaledtanh") return [k = a(1), d = b(1)](const Tensor& x) { return k * rlx::tanh(d * x); };
  if (name == "hardsigmoid")
    return [k = a(0.2), d = b(0.5)](const Tensor& x) { return (k * x + d).clamp(0, 1); };
  if (name == "elu")
    return [k = a(1)](const Tensor& x) { return (x > 0).where(x, k * rlx::expm1(x.min(0))); };
  c.unsupported(cat("activation '", name, "'"));
}

struct Layer {
  int directions = 1;
  bool reverse_first = false, batch_first = false;
  int64_t hidden = 0;
  double clip = 0;
  std::vector<Function> functions;  // per direction, `per_direction` of them
  size_t per_direction = 1;
};

Layer read_layer(const Call& c, const std::vector<std::string>& defaults) {
  Layer l;
  const std::string direction = c.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    throw c.wrong("direction is '", direction, "'");
  l.directions = direction == "bidirectional" ? 2 : 1;
  l.reverse_first = direction == "reverse";
  l.batch_first = c.flag("layout");
  l.hidden = c.integer("hidden_size", c.shape(2).dim(2).is_static() ? c.shape(2).dim(2).value() : 0);
  l.clip = c.real("clip", 0);
  l.per_direction = defaults.size();
  std::vector<std::string> names = c.texts("activations");
  if (names.empty()) {
    for (int d = 0; d < l.directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  }
  if (names.size() != defaults.size() * size_t(l.directions))
    throw c.wrong(names.size(), " activations for ", l.directions, " directions");
  const auto alphas = c.reals("activation_alpha"), betas = c.reals("activation_beta");
  for (size_t i = 0; i < names.size(); ++i) {
    l.functions.push_back(activation(c, names[i], i < alphas.size() ? alphas[i] : 0,
                                     i < betas.size() ? betas[i] : 0, i < alphas.size(), i < betas.size()));
  }
  return l;
}

// A step of one direction: (gates of the input, carries) -> next carries; the first carry is what is put out.
using Step = std::function<Tensors(const Tensor& gates, const Tensors& carries)>;

Tensor direction_of(const Tensor& x, int d) { return x.narrow(0, d, 1).squeeze(0); }

// What multiplies with the weights of a direction.
using Product = std::function<Function(int direction)>;

// Runs all directions over x [time, batch, input].
Items run_layer(Call& c, const Layer& l, int carries, const Product& input_gates,
                const std::function<Step(int)>& step_of) {
  Tensor x = c.in(0);
  if (l.batch_first) x = x.transpose({1, 0, 2});
  const Dim time = x.dim(0), batch = x.dim(1);
  const auto initial = [&](int operand, int d) {
    if (!c.has(operand)) return c.full({batch, l.hidden}, x.dtype(), 0);
    Tensor h = c.in(operand);
    if (l.batch_first) h = h.transpose({1, 0, 2});
    return direction_of(h, d);
  };
  Tensors outputs;
  std::vector<Tensors> finals(static_cast<size_t>(carries));
  for (int d = 0; d < l.directions; ++d) {
    const Tensor gates = input_gates(d)(x);
    Tensors init;
    for (int k = 0; k < carries; ++k) init.push_back(initial(5 + k, d));
    const bool reverse = l.reverse_first || d == 1;
    const Step step = step_of(d);
    Tensors xs;
    xs.reserve(2);
    xs.push_back(gates);
    Tensor lengths;
    if (c.has(4)) {
      lengths = c.in(4).cast(DType::i64).reshape({batch, 1});
      xs.push_back(c.iota(Shape(DType::i64, {time}), 0));
    }
    const Tensors results = rlx::scan(init, {.xs = xs, .reverse = reverse}, [&](const Tensors& args) {
      const Tensors before(args.begin(), args.begin() + carries);
      Tensors after = step(args[size_t(carries)], before);
      Tensor put = after[0];
      if (!lengths.is_empty()) {
        // Behind the end of a sequence its state stays, and 0 is put out.
        const Tensor inside = args.back().reshape({1, 1}) < lengths;
        put = inside.where(put, 0.0);
        for (size_t k = 0; k < after.size(); ++k) after[k] = rlx::where(inside, after[k], before[k]);
      }
      after.push_back(put);
      return after;
    });
    // A sequence of no steps ends in 0, whatever it started with (as in ONNX Runtime; the standard leaves it open).
    for (int k = 0; k < carries; ++k) {
      const Tensor& last = results[size_t(k)];
      finals[size_t(k)].push_back(lengths.is_empty() ? last : (lengths > 0).where(last, 0.0));
    }
    outputs.push_back(results[size_t(carries)]);
  }
  Items out;
  const Tensor y = rlx::stack(outputs, 1);  // [time, directions, batch, hidden]
  out.emplace_back(l.batch_first ? y.transpose({2, 0, 1, 3}) : y);
  for (const Tensors& f : finals) {
    const Tensor h = rlx::stack(f, 0);
    out.emplace_back(l.batch_first ? h.transpose({1, 0, 2}) : h);
  }
  return out;
}

Tensor clipped(const Tensor& x, double clip) { return clip > 0 ? x.clamp(-clip, clip) : x; }

// Part k of n along the last axis.
Tensor part(const Tensor& x, int64_t k, int64_t size) { return x.narrow(-1, k * size, size); }

Tensor bias_part(const Call& c, int d, bool recurrent, int64_t gates, int64_t hidden) {
  if (!c.has(3)) return Tensor();
  return direction_of(c.in(3), d).narrow(0, recurrent ? gates * hidden : 0, gates * hidden);
}

Tensor plus_bias(const Tensor& x, const Tensor& bias) { return bias.is_empty() ? x : x + bias; }

// x W^T and the input's bias.
Product gates_of_reals(const Call& c, int64_t gates, int64_t hidden) {
  return [&c, gates, hidden](int d) {
    const Tensor w = direction_of(c.in(1), d), bias = bias_part(c, d, false, gates, hidden);
    return [=](const Tensor& x) { return plus_bias(rlx::matmul(x, w.t()), bias); };
  };
}

Items rnn(Call& c) {
  const Layer l = read_layer(c, {"Tanh"});
  return run_layer(c, l, 1, gates_of_reals(c, 1, l.hidden), [&](int d) -> Step {
    const Tensor r = direction_of(c.in(2), d), bias = bias_part(c, d, true, 1, l.hidden);
    return [=, &l](const Tensor& gates, const Tensors& carry) -> Tensors {
      const Tensor h = plus_bias(gates + rlx::matmul(carry[0], r.t()), bias);
      return {l.functions[size_t(d)](clipped(h, l.clip))};
    };
  });
}

Items gru(Call& c) {
  const Layer l = read_layer(c, {"Sigmoid", "Tanh"});
  const bool linear_before_reset = c.flag("linear_before_reset");
  const int64_t n = l.hidden;
  return run_layer(c, l, 1, gates_of_reals(c, 3, n), [&](int d) -> Step {
    const Tensor r = direction_of(c.in(2), d), bias = bias_part(c, d, true, 3, n);
    const Function f = l.functions[2 * size_t(d)], g = l.functions[2 * size_t(d) + 1];
    const Tensor r_zr = r.narrow(0, 0, 2 * n), r_h = r.narrow(0, 2 * n, n);
    const Tensor b_zr = bias.is_empty() ? bias : bias.narrow(0, 0, 2 * n);
    const Tensor b_h = bias.is_empty() ? bias : bias.narrow(0, 2 * n, n);
    return [=, &l](const Tensor& gates, const Tensors& carry) -> Tensors {
      const Tensor& h = carry[0];
      const Tensor zr =
          f(clipped(plus_bias(gates.narrow(-1, 0, 2 * n) + rlx::matmul(h, r_zr.t()), b_zr), l.clip));
      const Tensor z = part(zr, 0, n), reset = part(zr, 1, n), x = part(gates, 2, n);
      const Tensor inner = linear_before_reset ? reset * plus_bias(rlx::matmul(h, r_h.t()), b_h)
                                               : plus_bias(rlx::matmul(reset * h, r_h.t()), b_h);
      const Tensor candidate = g(clipped(x + inner, l.clip));
      return {(1.0 - z) * candidate + z * h};
    };
  });
}

// The gates of the input with their bias, and h times the recurrent weights.
Items lstm_of(Call& c, const Layer& l, const Product& input_gates, const Product& recurrent) {
  const bool coupled = c.flag("input_forget");
  const int64_t n = l.hidden;
  return run_layer(c, l, 2, input_gates, [&](int d) -> Step {
    const Function times_r = recurrent(d);
    const Tensor bias = bias_part(c, d, true, 4, n);
    const Tensor peep = c.has(7) ? direction_of(c.in(7), d) : Tensor();
    const size_t first = 3 * size_t(d);
    const Function f = l.functions[first], g = l.functions[first + 1], out = l.functions[first + 2];
    return [=, &l](const Tensor& gates, const Tensors& carry) -> Tensors {
      const Tensor &h = carry[0], &cell = carry[1];
      const Tensor all = plus_bias(gates + times_r(h), bias);
      const auto seen = [&](int64_t gate, int64_t weights, const Tensor& state) {
        const Tensor a = part(all, gate, n);
        return clipped(peep.is_empty() ? a : a + peep.narrow(0, weights * n, n) * state, l.clip);
      };
      const Tensor i = f(seen(0, 0, cell));
      const Tensor forget = coupled ? 1.0 - i : f(seen(2, 2, cell));
      const Tensor next = forget * cell + i * g(clipped(part(all, 3, n), l.clip));
      const Tensor o = f(seen(1, 1, next));
      return {o * out(next), next};
    };
  });
}

Items lstm(Call& c) {
  const Layer l = read_layer(c, {"Sigmoid", "Tanh", "Tanh"});
  return lstm_of(c, l, gates_of_reals(c, 4, l.hidden), [&](int d) {
    const Tensor r = direction_of(c.in(2), d);
    return [=](const Tensor& h) { return rlx::matmul(h, r.t()); };
  });
}

// Weights are codes [directions, in, gates]; what they meet becomes codes, too: all of the input at once, h of all
// rows in each step.
Items dynamic_quantize_lstm(Call& c) {
  const Layer l = read_layer(c, {"Sigmoid", "Tanh", "Tanh"});
  if (c.shape(2).dim(1) != Dim(l.hidden))
    throw c.wrong("hidden_size is ", l.hidden, " and R is ", c.shape(2));
  const auto product = [&](int d, int weights, const Tensor& bias) -> Function {
    const int scale = weights == 1 ? 8 : 10;
    // One number for a direction, or one for each of its columns.
    const auto columns = [&](const Tensor& t) {
      return direction_of(t.reshape({l.directions, t.shape().num_elements().value() / l.directions}), d);
    };
    Tensor w = direction_of(c.in(weights), d).cast(DType::f64);
    if (c.has(scale + 1)) w = w - columns(c.in(scale + 1)).cast(DType::f64);
    return [w, bias, s = columns(c.in(scale))](const Tensor& x) {
      const DynamicCodes a = dynamic_codes(x);
      const Tensor sum = rlx::matmul(a.codes.cast(DType::f64) - a.zero.cast(DType::f64), w);
      return plus_bias(sum.cast(DType::f32) * (s * a.scale), bias);
    };
  };
  return lstm_of(
      c, l, [&](int d) { return product(d, 1, bias_part(c, d, false, 4, l.hidden)); },
      [&](int d) { return product(d, 2, Tensor()); });
}

}  // namespace

std::span<const Entry> recurrent_entries() {
  static const std::vector<Entry> kEntries{
      {"GRU", 1, gru, BoundsRule::refuse, nullptr, false},
      {"LSTM", 1, lstm, BoundsRule::refuse, nullptr, false},
      {"RNN", 1, rnn, BoundsRule::refuse, nullptr, false},
  };
  return kEntries;
}

std::span<const Entry> contrib_recurrent_entries() {
  static const std::vector<Entry> kEntries{
      {"DynamicQuantizeLSTM", 1, dynamic_quantize_lstm, BoundsRule::refuse, nullptr, false},
  };
  return kEntries;
}

}  // namespace rlx::onnx
