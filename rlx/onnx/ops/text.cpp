// Counts of n-grams of numbers.
#include <algorithm>

#include "rlx/lang/operators.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

struct Pool {
  int64_t length = 1;                    // n
  std::vector<int64_t> tokens, columns;  // n tokens for each entry; where it is counted
  std::vector<double> weights;
};

// The pool is one list: all 1-grams, then all 2-grams, and so on.
std::vector<Pool> read_pools(const Call& c) {
  const auto tokens = c.integers("pool_int64s"), starts = c.integers("ngram_counts"),
             columns = c.integers("ngram_indexes");
  const auto weights = c.reals("weights");
  std::vector<Pool> out;
  size_t entry = 0;
  for (size_t n = 0; n < starts.size(); ++n) {
    const int64_t from = starts[n], to = n + 1 < starts.size() ? starts[n + 1] : int64_t(tokens.size());
    Pool p;
    p.length = int64_t(n) + 1;
    if (from < 0 || to < from || to > int64_t(tokens.size()) || (to - from) % p.length != 0)
      throw c.wrong("ngram_counts ", starts, " do not fit a pool of ", tokens.size());
    p.tokens.assign(tokens.begin() + from, tokens.begin() + to);
    for (int64_t i = 0; i < (to - from) / p.length; ++i, ++entry) {
      if (entry >= columns.size())
        throw c.wrong("ngram_indexes has ", columns.size(), " entries, the pool has more");
      p.columns.push_back(columns[entry]);
      p.weights.push_back(entry < weights.size() ? weights[entry] : 1.0);
    }
    out.push_back(std::move(p));
  }
  return out;
}

Items tf_idf(Call& c) {
  if (c.has_attr("pool_strings")) c.unsupported("a pool of strings");
  const std::string mode = c.text("mode", "TF");
  const int64_t most_skips = c.integer("max_skip_count", 0), least = c.integer("min_gram_length", 1),
                most = c.integer("max_gram_length", 1);
  Tensor x = c.in(0).cast(DType::i64);
  const bool row = x.rank() == 1;
  if (row) x = x.unsqueeze(0);
  const int64_t length = x.dim(1).value();
  const auto columns = c.integers("ngram_indexes");
  if (columns.empty()) throw c.wrong("it has no ngram_indexes");
  const int64_t width = *std::max_element(columns.begin(), columns.end()) + 1;
  Tensor counts = c.full({x.dim(0), width}, DType::f32, 0);
  std::vector<double> weights(static_cast<size_t>(width), 1.0);
  for (const Pool& p : read_pools(c)) {
    const int64_t entries = int64_t(p.columns.size());
    for (int64_t i = 0; i < entries; ++i) weights[size_t(p.columns[size_t(i)])] = p.weights[size_t(i)];
    if (p.length < least || p.length > most || entries == 0) continue;
    const Tensor pool = c.constant(Literal::of<int64_t>({entries, p.length}, p.tokens));
    // A column may be shared: each entry adds to its own.
    std::vector<double> to(size_t(entries * width), 0.0);
    for (int64_t i = 0; i < entries; ++i) to[size_t(i * width + p.columns[size_t(i)])] = 1;
    const Tensor place = c.constant(Literal::reals(Shape(DType::f32, {entries, width}), to));
    for (int64_t skip = 0; skip <= (p.length == 1 ? 0 : most_skips); ++skip) {
      const int64_t span = (p.length - 1) * (skip + 1) + 1, windows = length - span + 1;
      if (windows < 1) break;
      std::vector<int64_t> at;
      for (int64_t w = 0; w < windows; ++w) {
        for (int64_t k = 0; k < p.length; ++k) at.push_back(w + k * (skip + 1));
      }
      const Tensor grams =
          rlx::gather(x, c.constant(Literal::of<int64_t>({windows, p.length}, at)), {.axis = 1});
      const Tensor equal = rlx::all(rlx::compare(grams.unsqueeze(2), pool, {.kind = ops::CompareOp::eq}),
                                    {.axes = {3}, .keep_dim = false});
      counts = counts + rlx::matmul(equal.cast(DType::f32).sum({1}), place);
    }
  }
  const Tensor scale = c.constant(Literal::reals(Shape(DType::f32, {width}), weights));
  if (mode == "IDF") counts = (counts > 0).cast(DType::f32) * scale;
  if (mode == "TFIDF") counts = counts * scale;
  return {row ? counts.squeeze(0) : counts};
}

}  // namespace

std::span<const Entry> text_entries() {
  static const std::vector<Entry> kEntries{
      {"TfIdfVectorizer", 9, tf_idf},
  };
  return kEntries;
}

}  // namespace rlx::onnx
