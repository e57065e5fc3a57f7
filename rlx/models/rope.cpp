#include "rlx/models/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "rlx/lang/operators.h"
#include "rlx/lang/trace.h"

namespace rlx::models {
namespace {

constexpr std::pair<std::string_view, Rope::Kind> kKinds[] = {
    {"default", Rope::Kind::plain}, {"linear", Rope::Kind::linear}, {"dynamic", Rope::Kind::dynamic},
    {"yarn", Rope::Kind::yarn},     {"llama3", Rope::Kind::llama3}, {"longrope", Rope::Kind::longrope},
    {"su", Rope::Kind::longrope},   {"none", Rope::Kind::plain}};

Rope::Kind kind_named(const ConfigSource& s, std::string_view name) {
  std::string known;
  for (const auto& [word, kind] : kKinds) {
    if (word == name) return kind;
    known += cat(known.empty() ? "" : ", ", word);
  }
  throw invalid(s.where(), "rope type '", name, "' is not known; known: ", known);
}

// The fields of a rope object. Each that is there must be understood.
struct RopeFields {
  JsonView object;
  std::vector<std::string_view> used = {"type", "rope_type", "rope_theta", "partial_rotary_factor"};

  std::optional<double> real(std::string_view name) {
    used.push_back(name);
    const auto v = object.find(name);
    return v ? std::optional(v->real()) : std::nullopt;
  }
  std::vector<double> reals(std::string_view name) {
    used.push_back(name);
    std::vector<double> out;
    if (const auto v = object.find(name)) {
      for (const JsonView item : v->items()) out.push_back(item.real());
    }
    return out;
  }
  void finish(const ConfigSource& s) const {
    for (const auto [key, value] : object.members()) {
      if (!value.is_null() && std::find(used.begin(), used.end(), key) == used.end())
        throw invalid(s.where(), "rope field '", key, "' is not understood");
    }
  }
};

// The object that holds the scaling: rope_scaling where it says something, as transformers has it; else rope_parameters, of one layer
// type where there are several.
std::optional<JsonView> rope_object(ConfigSource& s, std::string_view layer_type) {
  auto object = s.object("rope_parameters");
  if (object && !layer_type.empty() && object->find(layer_type)) object = object->find(layer_type);
  const auto scaling = s.object("rope_scaling");
  const bool own = object && !layer_type.empty() && object->find("rope_type");
  return scaling && scaling->size() > 0 && !own ? scaling : object;
}

// By how much a text is longer than the model was made for, where the configuration leaves it to the lengths.
double stretch(const Config& c, const Rope& r) {
  if (c.max_positions <= 0 || r.original_positions <= 0) return 1;
  return double(c.max_positions) / double(r.original_positions);
}

void read_yarn(RopeFields& f, Rope& r) {
  // A beta of 0 says nothing.
  if (const double v = f.real("beta_fast").value_or(0); v != 0) r.beta_fast = v;
  if (const double v = f.real("beta_slow").value_or(0); v != 0) r.beta_slow = v;
  f.used.push_back("truncate");
  if (const auto v = f.object.find("truncate")) r.truncate = v->boolean();
  const auto mscale = f.real("mscale"), all = f.real("mscale_all_dim"), given = f.real("attention_factor");
  r.magnitude = given ? *given
                : mscale && all && *mscale != 0 && *all != 0
                    ? yarn_magnitude(r.factor, *mscale) / yarn_magnitude(r.factor, *all)
                    : yarn_magnitude(r.factor);
}

void read_longrope(ConfigSource& s, RopeFields& f, Rope& r) {
  r.short_factors = f.reals("short_factor");
  r.long_factors = f.reals("long_factor");
  for (const auto* list : {&r.short_factors, &r.long_factors}) {
    if (int64_t(list->size()) != r.lanes / 2)
      throw invalid(s.where(), "longrope has ", list->size(), " factors for ", r.lanes / 2,
                    " pairs of lanes");
  }
  const auto given = f.real("attention_factor");
  r.magnitude = given           ? *given
                : r.factor <= 1 ? 1
                                : std::sqrt(1 + std::log(r.factor) / std::log(double(r.original_positions)));
}

void read_json(ConfigSource& s, const Config& c, std::string_view layer_type, Rope& r) {
  const auto top = s.find_real({"rope_theta"});
  if (top) r.theta = *top;
  // Read here so that it counts as understood: longrope keeps it outside of its object.
  const auto original = s.find_integer({"original_max_position_embeddings"});
  const auto object = rope_object(s, layer_type);
  if (!object) return;
  RopeFields f{*object};
  if (const auto v = object->find("rope_theta")) r.theta = v->real();
  auto kind = object->find("rope_type");
  if (!kind) kind = object->find("type");
  if (kind) r.kind = kind_named(s, kind->string());
  const auto own = f.real("original_max_position_embeddings");
  // The length beside the object goes before the one inside of it; what grows with the text does so from the longest on.
  r.original_positions = original ? *original : own ? int64_t(*own) : c.max_positions;
  if (r.kind == Rope::Kind::dynamic) r.original_positions = c.max_positions;
  const bool by_lengths = r.kind == Rope::Kind::yarn || r.kind == Rope::Kind::longrope;
  if (r.kind != Rope::Kind::plain) r.factor = f.real("factor").value_or(by_lengths ? stretch(c, r) : 1);
  if (r.kind == Rope::Kind::yarn) read_yarn(f, r);
  if (r.kind == Rope::Kind::longrope) read_longrope(s, f, r);
  if (r.kind == Rope::Kind::llama3) {
    r.low_frequency_factor = f.real("low_freq_factor").value_or(1);
    r.high_frequency_factor = f.real("high_freq_factor").value_or(4);
  }
  for (const std::string_view kind_of_layer : {"full_attention", "sliding_attention"})
    f.used.push_back(kind_of_layer);  // siblings, where this object has no scaling of its own
  // Places in a picture: a text has one for all sections.
  for (const std::string_view of_pictures : {"mrope_section", "mrope_interleaved"})
    f.used.push_back(of_pictures);
  f.finish(s);
}

std::vector<double> tensor_values(const ConfigSource& s, std::string_view name, int64_t pairs) {
  const io::TensorView* t = s.find_tensor(name);
  if (t == nullptr) return {};
  const std::vector<float> v = io::to_f32(*t);
  if (int64_t(v.size()) != pairs)
    throw invalid(s.where(), "'", name, "' has ", v.size(), " factors for ", pairs, " pairs of lanes");
  return {v.begin(), v.end()};
}

void read_gguf(ConfigSource& s, const Config& c, Rope& r) {
  if (const auto v = s.find_real({"", "rope.freq_base"})) r.theta = *v;
  r.original_positions =
      s.find_integer({"", "rope.scaling.original_context_length"}).value_or(c.max_positions);
  r.factor = s.find_real({"", "rope.scaling.factor"}).value_or(1);
  if (r.factor == 0) r.factor = 1;  // says nothing
  const auto linear = s.find_real({"", "rope.scale_linear"});
  const std::string type =
      s.find_text({"", "rope.scaling.type"}).value_or("linear");  // of older files, with a factor or without
  r.kind = kind_named(s, type);
  if (linear && *linear != 1 && *linear != 0) r.kind = Rope::Kind::linear, r.factor = *linear;
  s.find_flag({"", "rope.scaling.finetuned"});
  const double attention = s.find_real({"", "rope.scaling.attn_factor"}).value_or(1) *
                           s.find_real({"", "rope.scaling.yarn_attn_factor"}).value_or(1);
  s.find_real({"", "rope.scaling.yarn_log_multiplier"});  // of latent attention, which reads it itself
  if (r.kind == Rope::Kind::yarn) {
    r.beta_fast = s.find_real({"", "rope.scaling.yarn_beta_fast"}).value_or(32);
    r.beta_slow = s.find_real({"", "rope.scaling.yarn_beta_slow"}).value_or(1);
    r.magnitude = yarn_magnitude(r.factor) * attention;
  } else {
    r.magnitude = attention;
  }
  // Factors that divide the frequencies: one list (llama3), or two by length.
  r.short_factors = r.long_factors = tensor_values(s, "rope_freqs.weight", r.lanes / 2);
  if (const auto v = tensor_values(s, "rope_factors_short.weight", r.lanes / 2); !v.empty()) {
    r.short_factors = v;
    r.long_factors = tensor_values(s, "rope_factors_long.weight", r.lanes / 2);
    r.kind = Rope::Kind::longrope;
  }
}

double spread_of(const Rope& r) { return double(r.spread > 0 ? r.spread : r.lanes); }

// How far each pair lies between stretched (0) and kept (1) frequencies.
std::vector<double> yarn_kept(const Rope& r) {
  const auto lane_of = [&](double rotations) {
    return double(r.lanes) * std::log(double(r.original_positions) / (rotations * 2 * std::numbers::pi)) /
           (2 * std::log(r.theta));
  };
  double low = lane_of(r.beta_fast), high = lane_of(r.beta_slow);
  if (r.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, double(r.lanes - 1));
  if (low == high) high += 0.001;
  std::vector<double> kept;
  for (int64_t i = 0; i < r.lanes / 2; ++i)
    kept.push_back(1 - std::clamp((double(i) - low) / (high - low), 0.0, 1.0));
  return kept;
}

double llama3_frequency(const Rope& r, double f) {
  const double turns = double(r.original_positions) * f / (2 * std::numbers::pi);  // over the original length
  if (turns > r.high_frequency_factor) return f;
  if (turns < r.low_frequency_factor) return f / r.factor;
  const double kept = (turns - r.low_frequency_factor) / (r.high_frequency_factor - r.low_frequency_factor);
  return (1 - kept) * f / r.factor + kept * f;
}

Tensor constant_row(const Tensor& like, const std::vector<double>& v) {
  return ir::Expr{&like.graph(),
                  like.graph().constant(Literal::reals(Shape(DType::f32, {int64_t(v.size())}), v))};
}

// theta grows with the text once that is longer than the model was made for:
// theta' = theta (factor max(length, n) / n - factor + 1)^(d / (d - 2)), frequency i = theta'^(-2i/d).
Tensor dynamic_frequencies(const Rope& r, const Tensor& length) {
  const double n = double(r.original_positions), d = spread_of(r);
  const Tensor longer = length.cast(DType::f32).max(n);
  const Tensor growth = (longer * (r.factor / n) - (r.factor - 1)).log() * (d / (d - 2));
  std::vector<double> exponents;
  for (int64_t i = 0; i < r.lanes / 2; ++i) exponents.push_back(-2.0 * double(i) / d);
  return constant_row(length, rope_frequencies(r)) * (growth * constant_row(length, exponents)).exp();
}

Tensor frequencies_in_graph(const Rope& r, const Tensor& positions, const Tensor& length) {
  if (r.kind == Rope::Kind::dynamic) return dynamic_frequencies(r, length);
  const Tensor kept = constant_row(positions, rope_frequencies(r));
  if (r.kind != Rope::Kind::longrope) return kept;
  const Tensor is_long = length > double(r.original_positions);
  return where(is_long, constant_row(positions, rope_frequencies(r, true)), kept);
}

}  // namespace

double yarn_magnitude(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

double partial_rotary_factor(ConfigSource& s, std::string_view layer_type) {
  const auto top = s.find_real({"partial_rotary_factor|rotary_pct"});
  auto object = s.object("rope_parameters");
  if (object && !layer_type.empty() && object->find(layer_type)) object = object->find(layer_type);
  if (object) {
    if (const auto v = object->find("partial_rotary_factor")) return v->real();
  }
  return top.value_or(1);
}

Rope read_rope(ConfigSource& s, const Config& c, int64_t lanes, std::string_view layer_type) {
  if (s.is_gguf()) lanes = s.find_integer({"", "rope.dimension_count"}).value_or(lanes);
  Rope r{.kind = Rope::Kind::plain, .lanes = lanes};
  // A part of a head that is odd is as wide as its pairs; the frequencies are those of the odd number.
  if (lanes > 0 && lanes % 2 != 0 && lanes < c.head_dim && c.latent.kv_rank == 0 && !s.is_gguf())
    r.spread = std::exchange(r.lanes, lanes + 1);
  if (r.lanes <= 0 || r.lanes % 2 != 0)
    throw invalid(s.where(), lanes, " lanes of a head turn; a positive even number expected");
  if (s.is_gguf()) {
    read_gguf(s, c, r);
  } else {
    read_json(s, c, layer_type, r);
  }
  if (r.spread > 0 && r.kind == Rope::Kind::yarn)
    throw invalid(s.where(), lanes, " lanes of a head turn by yarn; an even number expected");
  return r;
}

std::vector<double> rope_frequencies(const Rope& r, bool long_text) {
  const std::vector<double>& factors = long_text ? r.long_factors : r.short_factors;
  const std::vector<double> kept = r.kind == Rope::Kind::yarn ? yarn_kept(r) : std::vector<double>();
  std::vector<double> out;
  for (int64_t i = 0; i < r.lanes / 2; ++i) {
    double f = std::pow(r.theta, -2.0 * double(i) / spread_of(r));
    if (!factors.empty()) f /= factors[size_t(i)];
    if (r.kind == Rope::Kind::linear) f /= r.factor;
    if (r.kind == Rope::Kind::llama3) f = llama3_frequency(r, f);
    if (!kept.empty()) f = f / r.factor * (1 - kept[size_t(i)]) + f * kept[size_t(i)];
    out.push_back(f);
  }
  return out;
}

RopeTables rope_tables(const Rope& r, const Tensor& positions, const Tensor& length) {
  // A length for each row gives frequencies for each.
  const bool by_row = !length.is_empty() && length.shape().rank() == 1;
  const Tensor f = frequencies_in_graph(r, positions, by_row ? length.unsqueeze(1) : length);
  const Tensor angles = positions.unsqueeze(1) * (f.shape().rank() == 2 ? f : f.unsqueeze(0));
  if (r.magnitude == 1) return {angles.cos(), angles.sin(), {}};
  return {angles.cos() * r.magnitude, angles.sin() * r.magnitude, {}};
}

Tensor turn(const Tensor& x, const RopeTables& tables, const Rope& r, int64_t head_dim) {
  return rope(x, tables.cos, tables.sin, tables.rows,
              {.head_dim = head_dim, .n_rot = r.lanes, .interleaved = r.interleaved});
}

}  // namespace rlx::models
