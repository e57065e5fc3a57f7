// How much the columns of each weight matter: mean squares of the activations they meet, measured on a text.
//
// An error e in column j of W moves y = x W^T by e x[j], so its cost is e^2 times the mean of x[j]^2. Quantising with these as weights
// (rlx/quant/weighted.h) spends the bits where the text needs them.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rlx/models/model.h"
#include "rlx/runtime/options.h"
#include "rlx/text/vocab.h"

namespace rlx::llm {

/// Importance by weight, and of what it was measured.
class ImportanceMatrix {
 public:
  /// Of one weight; those of experts lie behind each other.
  struct Entry {
    std::vector<double> sums;    // [experts, columns]: of squares
    std::vector<double> counts;  // [experts]: of rows

    /// Numbers of one expert.
    int64_t columns() const { return int64_t(sums.size() / counts.size()); }
    /// Mean squares of the columns of an expert; 0 where no row came by.
    std::vector<float> means(int64_t expert = 0) const;
  };

  /// By the names of GGUF.
  std::map<std::string, Entry, std::less<>> entries;
  std::vector<std::string> datasets;
  int64_t chunks = 0, chunk_size = 0;

  /// The entry of a weight; null when there is none.
  const Entry* find(std::string_view name) const;
  /// Adds what another measured; entries of other sizes are user errors.
  void add(const ImportanceMatrix& other);

  /// GGUF with NAME.in_sum2 and NAME.counts, or, of a name that ends in .dat, the older form of llama.cpp.
  void write(const std::string& path) const;
  /// Either form, told by content. Another file is a user error.
  static ImportanceMatrix open(const std::string& path);
};

/// How the text is read.
struct MeasureOptions {
  int64_t chunk = 512;  // tokens read together; a rest of less than half of that is left out
  CompileOptions compile;
};

/// Runs the model over a text. A text that begins with a token of its own (config().bos) has it before every chunk. A text that is
/// shorter than a chunk is one.
ImportanceMatrix measure_importance(const models::Model&, std::span<const text::TokenId> text,
                                    const MeasureOptions& options = {},
                                    const std::function<void(int64_t done, int64_t total)>& progress = {});

}  // namespace rlx::llm
