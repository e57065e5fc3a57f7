#include "rlx/llm/quantize_model.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "rlx/base/error.h"
#include "rlx/base/pool.h"
#include "rlx/base/text.h"
#include "rlx/quant/weighted.h"

namespace rlx::llm {

const std::vector<QuantMix>& quant_mixes() {
  static const std::vector<QuantMix> mixes{
      {"F32", "f32", 0},        {"F16", "f16", 1},        {"BF16", "bf16", 32},
      {"Q4_0", "q4_0", 2},      {"Q4_1", "q4_1", 3},      {"Q5_0", "q5_0", 8},
      {"Q5_1", "q5_1", 9},      {"Q8_0", "q8_0", 7},      {"Q2_K", "q2_k", 10},
      {"Q3_K_S", "q3_k", 11},   {"Q3_K_M", "q3_k", 12},   {"Q3_K_L", "q3_k", 13},
      {"Q4_K_S", "q4_k", 14},   {"Q4_K_M", "q4_k", 15},   {"Q5_K_S", "q5_k", 16},
      {"Q5_K_M", "q5_k", 17},   {"Q6_K", "q6_k", 18},     {"IQ4_NL", "iq4_nl", 25},
      {"IQ4_XS", "iq4_xs", 30}, {"IQ3_S", "iq3_s", 26},   {"IQ3_XXS", "iq3_xxs", 23},
      {"IQ2_S", "iq2_s", 28},   {"IQ2_XS", "iq2_xs", 20}, {"IQ2_XXS", "iq2_xxs", 19},
      {"IQ1_M", "iq1_m", 31},   {"IQ1_S", "iq1_s", 24},   {"TQ1_0", "tq1_0", 36},
      {"TQ2_0", "tq2_0", 37},   {"MXFP4", "mxfp4", 38}};
  return mixes;
}

const QuantMix& quant_mix_named(std::string_view name) {
  std::string upper(name), known;
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? char(c - 32) : c;
  for (const QuantMix& m : quant_mixes()) {
    if (m.name == upper) return m;
    known += (known.empty() ? "" : ", ") + std::string(m.name);
  }
  throw invalid("quantize: unknown type '", name, "'; known: ", known);
}

namespace {

int64_t layer_of(std::string_view name) {
  int64_t layer = -1;
  if (name.starts_with("blk.")) std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  return layer;
}

int64_t layer_count(const io::GgufFile& file) {
  int64_t layers = 0;
  for (const io::TensorView& t : file.tensors()) layers = std::max(layers, layer_of(t.name) + 1);
  return layers;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// Values and the projections back into the residual stream hurt most when rounded. The first and the last eighth of the layers,
// and every third between, get more bits.
std::string_view mixed_format(const io::TensorView& t, const QuantMix& mix, const io::GgufFile& file) {
  const std::string_view name = t.name, m = mix.name;
  const bool k_mix = m.starts_with("Q") && contains(m, "_K");
  const bool head =
      name == "output.weight" || (name == "token_embd.weight" && !file.find_tensor("output.weight"));
  if (head && (k_mix || m.starts_with("IQ") || m == "Q4_0" || m == "Q4_1" || m == "Q5_0" || m == "Q5_1"))
    return "q6_k";
  if (!k_mix) return mix.base;
  const int64_t layers = layer_count(file), layer = layer_of(name);
  const bool more = layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
  const bool early = layer < layers / 8;
  const bool value = contains(name, "attn_v."), down = contains(name, "ffn_down"),
             back = contains(name, "attn_output");
  if (m == "Q4_K_M" || m == "Q5_K_M") return (value || down) && more ? "q6_k" : mix.base;
  if (m == "Q4_K_S") return (value && layer < 4) || (down && early) ? "q5_k" : mix.base;
  if (m == "Q3_K_L") return value || down || back ? "q5_k" : mix.base;
  if (m == "Q3_K_M") {
    if (value) return layer < 2 ? "q5_k" : "q4_k";
    if (down) return layer < layers / 16 ? "q5_k" : more ? "q4_k" : mix.base;
    return back ? "q4_k" : mix.base;
  }
  if (m == "Q2_K") return value || down || back ? "q3_k" : mix.base;
  return mix.base;
}

// For rows that the format cannot hold: a finer one with blocks of 32, else 16 bits.
std::string_view finer_format(std::string_view name) {
  static const std::map<std::string_view, std::string_view> table{
      {"q2_k", "q4_0"},    {"q3_k", "q4_0"},     {"q4_k", "q5_0"},      {"q5_k", "q5_1"},
      {"q6_k", "q8_0"},    {"iq4_xs", "iq4_nl"}, {"iq3_s", "iq4_nl"},   {"iq3_xxs", "iq4_nl"},
      {"iq2_s", "iq4_nl"}, {"iq2_xs", "iq4_nl"}, {"iq2_xxs", "iq4_nl"}, {"iq1_m", "iq4_nl"},
      {"iq1_s", "iq4_nl"}, {"tq1_0", "q4_0"},    {"tq2_0", "q4_0"}};
  const auto found = table.find(name);
  return found == table.end() ? "f16" : found->second;
}

}  // namespace

const quant::BlockFormat& chosen_format(const io::TensorView& t, const QuantMix& mix,
                                        const io::GgufFile& file) {
  if (!io::is_product_weight(t)) return *t.type.format;
  const quant::BlockFormat* format = quant::find_format(mixed_format(t, mix, file));
  RLX_CHECK(format != nullptr, "no format for ", t.name);
  while (t.dims.back() % format->elements != 0) format = quant::find_format(finer_format(format->name));
  return *format;
}

namespace {

// Metadata of the file, with what quantising changes.
void add_metadata(io::GgufWriter& writer, const io::GgufFile& file, const QuantMix& mix,
                  const QuantizeOptions& options) {
  constexpr std::string_view kOwn[] = {"general.file_type", "general.quantization_version"};
  for (const io::GgufEntry& e : file.entries())
    if (std::find(std::begin(kOwn), std::end(kOwn), e.key) == std::end(kOwn) &&
        !e.key.starts_with("quantize.imatrix."))
      writer.add(e.key, e.value);
  writer.add_u32(kOwn[0], mix.file_type);
  writer.add_u32(kOwn[1], 2);
  if (options.importance == nullptr) return;
  const ImportanceMatrix& m = *options.importance;
  writer.add_string("quantize.imatrix.file", options.importance_name);
  writer.add_string("quantize.imatrix.dataset", m.datasets.empty() ? "" : m.datasets.front());
  writer.add_u32("quantize.imatrix.entries_count", uint32_t(m.entries.size()));
  writer.add_u32("quantize.imatrix.chunks_count", uint32_t(m.chunks));
}

// The importance of columns for each matrix of a tensor: experts have their own. Empty where there is none.
std::vector<std::vector<float>> importance_of(const io::TensorView& t, const ImportanceMatrix* m) {
  const ImportanceMatrix::Entry* e = m != nullptr ? m->find(t.name) : nullptr;
  if (e == nullptr) return {};
  const int64_t columns = t.dims.back(), matrices = t.dims.size() > 2 ? t.dims[0] : 1;
  if (int64_t(e->sums.size()) != columns * matrices)
    throw invalid("quantize: the importance matrix has ", e->sums.size(), " columns for '", t.name,
                  "', which has ", columns * matrices, "; was it measured on this model?");
  std::vector<std::vector<float>> out;
  if (int64_t(e->counts.size()) == matrices) {
    for (int64_t i = 0; i < matrices; ++i) out.push_back(e->means(i));
  } else {
    const std::vector<float> all = e->means();
    for (int64_t i = 0; i < matrices; ++i)
      out.emplace_back(all.begin() + i * columns, all.begin() + (i + 1) * columns);
  }
  return out;
}

// Sums of squares of differences and of values; `weighed` with each square times its importance.
struct Squares {
  double difference = 0, values = 0;

  void add(std::span<const float> a, std::span<const float> b, std::span<const float> w) {
    for (size_t i = 0; i < a.size(); ++i) {
      const double f = w.empty() ? 1 : double(w[i % w.size()]), d = double(a[i]) - double(b[i]);
      difference += f * d * d;
      values += f * double(a[i]) * double(a[i]);
    }
  }
  double ratio() const { return values > 0 ? std::sqrt(difference / values) : 0; }
};

// One tensor encoded row by row; what it decodes to stays in `again`.
struct Encoding {
  std::vector<float> values, again;
  std::vector<std::byte> bytes;

  void run(const io::TensorView& t, const quant::BlockFormat& format,
           const std::vector<std::vector<float>>& importance) {
    const int64_t row = t.dims.back(), rows = t.elements() / row;
    values.resize(size_t(t.elements()));
    again.resize(values.size());
    bytes.resize(size_t(quant::encoded_bytes(format, t.elements())));
    const size_t row_in = t.bytes.size() / size_t(rows), row_out = bytes.size() / size_t(rows);
    const auto matrices = int64_t(importance.size());
    Team(default_pool()).parallel_for(rows, 1, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const auto plain = std::span(values).subspan(size_t(r * row), size_t(row));
        const auto packed = std::span(bytes).subspan(size_t(r) * row_out, row_out);
        quant::decode(*t.type.format, t.bytes.subspan(size_t(r) * row_in, row_in), plain);
        if (matrices == 0) {
          quant::encode(format, plain, packed);
        } else {
          quant::encode_weighted(format, plain, importance[size_t(r / (rows / matrices))], packed);
        }
        quant::decode(format, packed, std::span(again).subspan(size_t(r * row), size_t(row)));
      }
    });
  }
};

const quant::BlockFormat& format_for(const io::TensorView& t, const QuantMix& mix, const io::GgufFile& file) {
  if (!t.type.format || !t.type.format->decode)
    throw invalid("quantize: tensor '", t.name, "' is stored as ", t.type.name, ", which cannot be read");
  const quant::BlockFormat& format = chosen_format(t, mix, file);
  if (&format != t.type.format && !t.type.format->is_plain())
    throw invalid("quantize: tensor '", t.name, "' is stored as ", t.type.name,
                  ", and rounding it again would lose more than it should; start from f32, f16 or bf16");
  if (!format.encode) throw invalid("quantize: ", format.name, " cannot be written");
  return format;
}

}  // namespace

QuantizeReport quantize_model(const std::string& in, const std::string& out, const QuantMix& mix,
                              const QuantizeOptions& options) {
  const io::GgufFile file = io::GgufFile::open(in);
  io::GgufWriter writer(file.alignment());
  add_metadata(writer, file, mix, options);
  QuantizeReport report;
  std::vector<const quant::BlockFormat*> formats;
  for (const io::TensorView& t : file.tensors()) {
    formats.push_back(&format_for(t, mix, file));
    importance_of(t, options.importance);  // refused before anything is written
    io::TensorView later = t;
    later.type = io::StorageType::of(*formats.back());
    later.bytes = {};
    writer.add_tensor_later(later);
    report.bytes_in += t.stored_bytes();
    ++report.tensors;
  }
  Squares all, weighed;
  int64_t done = 0;
  Encoding now;
  writer.write(out, [&](size_t i) -> std::span<const std::byte> {
    const io::TensorView& t = file.tensors()[i];
    if (options.progress) options.progress(done, report.bytes_in);
    done += t.stored_bytes();
    if (t.type.format == formats[i]) {
      report.bytes_out += t.stored_bytes();
      return t.bytes;
    }
    const auto importance = importance_of(t, options.importance);
    now.run(t, *formats[i], importance);
    all.add(now.values, now.again, {});
    report.weighed += !importance.empty();
    const size_t part = importance.empty() ? 0 : now.values.size() / importance.size();
    for (size_t m = 0; m < importance.size(); ++m)
      weighed.add(std::span(now.values).subspan(m * part, part), std::span(now.again).subspan(m * part, part),
                  importance[m]);
    ++report.changed;
    report.bytes_out += int64_t(now.bytes.size());
    return now.bytes;
  });
  report.error = all.ratio();
  report.weighed_error = weighed.ratio();
  return report;
}

}  // namespace rlx::llm
