#include "rlx/train/init.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "rlx/base/hash.h"
#include "rlx/base/philox.h"
#include "rlx/ir/leaves.h"

namespace rlx::train {

Draws::Draws(uint64_t seed, std::string_view name) : key_(seed) {
  Hasher h;
  h.add(name);
  counter_ = h.finish().lo;
}

double Draws::uniform(int64_t i) const {
  const PhiloxBlock block = philox_block(key_, counter_, uint64_t(i));
  return double((uint64_t(block[0]) << 32 | block[1]) >> 11) * 0x1p-53;
}

// Box and Muller: two uniform numbers make one normal one.
double Draws::normal(int64_t i) const {
  const PhiloxBlock block = philox_block(key_, counter_, uint64_t(i));
  const double u = (double((uint64_t(block[0]) << 32 | block[1]) >> 11) + 1) * 0x1p-53;  // (0, 1]
  const double v = double((uint64_t(block[2]) << 32 | block[3]) >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

Fans fans_of(const Shape& shape, bool out_first) {
  const int rank = shape.rank();
  const auto extent = [&](int axis) { return shape.dim(axis).value(); };
  if (rank == 0) return {};
  if (rank == 1) return {extent(0), extent(0)};
  if (rank == 2) return out_first ? Fans{extent(1), extent(0)} : Fans{extent(0), extent(1)};
  int64_t window = 1;
  for (int axis = 2; axis < rank; ++axis) window *= extent(axis);
  return {extent(1) * window, extent(0) * window};
}

namespace {

template <class Value>
InitRule element_by_element(Value value) {
  return [value](const Shape& shape, const Draws& draws, std::span<double> out) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = value(shape, draws, int64_t(i));
  };
}

// Uniform and normal numbers of a variance that follows from the fans.
template <class Variance>
InitRule uniform_of(Variance variance) {
  return [variance](const Shape& shape, const Draws& draws, std::span<double> out) {
    const double limit = std::sqrt(3 * variance(shape));
    for (size_t i = 0; i < out.size(); ++i) out[i] = limit * (2 * draws.uniform(int64_t(i)) - 1);
  };
}
template <class Variance>
InitRule normal_of(Variance variance) {
  return [variance](const Shape& shape, const Draws& draws, std::span<double> out) {
    const double deviation = std::sqrt(variance(shape));
    for (size_t i = 0; i < out.size(); ++i) out[i] = deviation * draws.normal(int64_t(i));
  };
}

auto xavier_variance(double gain, bool out_first) {
  return [=](const Shape& s) {
    const Fans f = fans_of(s, out_first);
    return gain * gain * 2 / double(std::max<int64_t>(1, f.in + f.out));
  };
}
auto kaiming_variance(double gain, bool out_first) {
  return [=](const Shape& s) { return gain * gain / double(std::max<int64_t>(1, fans_of(s, out_first).in)); };
}

// Gram and Schmidt, twice for each vector: what the first pass leaves of the earlier ones is rounding, and the second
// removes it. `vectors` are rows of length `length`.
void orthonormalise(std::span<double> rows, int64_t count, int64_t length) {
  for (int64_t r = 0; r < count; ++r) {
    double* v = rows.data() + r * length;
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t k = 0; k < r; ++k) {
        const double* u = rows.data() + k * length;
        double dot = 0;
        for (int64_t i = 0; i < length; ++i) dot += u[i] * v[i];
        for (int64_t i = 0; i < length; ++i) v[i] -= dot * u[i];
      }
    }
    double square = 0;
    for (int64_t i = 0; i < length; ++i) square += v[i] * v[i];
    const double scale = 1 / std::sqrt(square);
    for (int64_t i = 0; i < length; ++i) v[i] *= scale;
  }
}

}  // namespace

InitRule zeros() { return constant_value(0); }

InitRule constant_value(double value) {
  return element_by_element([=](const Shape&, const Draws&, int64_t) { return value; });
}

InitRule normal(double deviation, double mean) {
  return element_by_element(
      [=](const Shape&, const Draws& d, int64_t i) { return mean + deviation * d.normal(i); });
}

InitRule uniform(double low, double high) {
  return element_by_element(
      [=](const Shape&, const Draws& d, int64_t i) { return low + (high - low) * d.uniform(i); });
}

// A number outside is replaced by the one drawn at a place of its own, far behind those of other elements.
InitRule truncated_normal(double deviation, double mean, double width) {
  if (!(width > 0)) throw invalid("init: a normal cut at ", width, " deviations; a positive width is needed");
  return element_by_element([=](const Shape& shape, const Draws& d, int64_t i) {
    double z = d.normal(i);
    for (int64_t again = i + shape.elements(); std::fabs(z) > width; again += shape.elements())
      z = d.normal(again);
    return mean + deviation * z;
  });
}

InitRule xavier_uniform(double gain, bool out_first) { return uniform_of(xavier_variance(gain, out_first)); }
InitRule xavier_normal(double gain, bool out_first) { return normal_of(xavier_variance(gain, out_first)); }
InitRule kaiming_uniform(double gain, bool out_first) {
  return uniform_of(kaiming_variance(gain, out_first));
}
InitRule kaiming_normal(double gain, bool out_first) { return normal_of(kaiming_variance(gain, out_first)); }

InitRule orthogonal(double gain) {
  return [=](const Shape& shape, const Draws& draws, std::span<double> out) {
    if (shape.rank() < 2) throw invalid("init: orthogonal of ", shape, "; at least two axes are needed");
    const int64_t rows = shape.dim(0).value();
    const int64_t columns = rows > 0 ? int64_t(out.size()) / rows : 0;
    const bool tall = rows > columns;
    const int64_t count = tall ? columns : rows, length = tall ? rows : columns;
    std::vector<double> vectors(out.size());
    for (size_t i = 0; i < vectors.size(); ++i) vectors[i] = draws.normal(int64_t(i));
    orthonormalise(vectors, count, length);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c)
        out[size_t(r * columns + c)] = gain * vectors[size_t(tall ? c * length + r : r * length + c)];
    }
  };
}

bool matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t at = star; at <= name.size(); ++at) {
    if (matches(rest, name.substr(at))) return true;
  }
  return false;
}

namespace {

// Whether some operator takes the leaf as its scale: the operand called gamma.
bool is_scale(const ir::Graph& g, const ir::Node& leaf) {
  return std::any_of(leaf.uses.begin(), leaf.uses.end(), [&](const ir::Use& use) {
    if (use.user == ir::kNoNode) return false;
    const std::vector<std::string>& names = g.node(use.user).op->operands;
    return use.operand < names.size() && names[use.operand].starts_with("gamma");
  });
}

InitRule default_rule(const ir::Graph& g, const ir::Node& leaf) {
  if (is_scale(g, leaf)) return constant_value(1);
  return leaf.shapes[0].rank() >= 2 ? xavier_uniform() : zeros();
}

void check_choices(const ir::Graph& g, const std::vector<InitChoice>& choices) {
  std::vector<std::string> params, problems;
  for (const ir::NodeId id : g.params()) params.push_back(ir::leaf_name(g.node(id)));
  for (const InitChoice& c : choices) {
    const bool known = c.names == "*" || std::any_of(params.begin(), params.end(),
                                                     [&](const auto& p) { return matches(c.names, p); });
    if (!known)
      problems.push_back(cat("'", c.names, "' is to start by a rule, but no param has that name; there are ",
                             params.empty() ? "none" : join(params)));
    if (!c.rule) problems.push_back(cat("the rule for '", c.names, "' has no function"));
  }
  if (!problems.empty()) throw invalid("init: ", join(problems, "; "));
}

}  // namespace

ir::NamedLiterals init(const ir::Graph& graph, const std::vector<InitChoice>& choices, uint64_t seed) {
  check_choices(graph, choices);
  ir::NamedLiterals out;
  for (const ir::NodeId id : graph.params()) {
    const std::string& name = ir::leaf_name(graph.node(id));
    const Shape& shape = graph.node(id).shapes[0];
    if (!shape.is_static()) throw invalid("init: param '", name, "' is ", shape, "; bind its symbols first");
    const auto choice = std::find_if(choices.begin(), choices.end(),
                                     [&](const InitChoice& c) { return matches(c.names, name); });
    const InitRule rule = choice == choices.end() ? default_rule(graph, graph.node(id)) : choice->rule;
    std::vector<double> values(size_t(shape.elements()));
    rule(shape, Draws(seed, name), values);
    out.emplace(name, Literal::reals(shape, values));
  }
  return out;
}

}  // namespace rlx::train
