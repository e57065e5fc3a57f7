// Compiled graphs that are kept: by content, by size, by buckets of sizes.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "rlx/base/hash.h"
#include "rlx/runtime/compiled_graph.h"

namespace rlx {

/// Tells apart what is compiled differently: the graph, the options, the device and the version of this library. Weights do not
/// count: entries of one graph share a program, and clones with other weights are other entries.
Hash128 compile_key(const ir::Graph&, const CompileOptions&);

/// The least recently used entry goes when there are more than `entries`, or when all together need more than `bytes`, whenever one is asked
/// for: runs pack weights, so entries grow after they were made. The one just asked for stays. Several threads may use it at once: one of them compiles a key, others that ask for the same wait
/// for it, and those with other keys do not. A build may ask for other keys; one that comes to ask for itself is a user error.
class CompileCache {
 public:
  /// How much is kept.
  struct Limits {
    size_t entries = 64;
    int64_t bytes = int64_t(1) << 40;
  };
  CompileCache() = default;
  explicit CompileCache(Limits limits) : limits_(limits) {}

  /// The program for a key of the caller's own, made by `build` when there is none. Callers get clones that share program and
  /// weights; states are each caller's own.
  CompiledGraph get_or_compile(uint64_t key, const std::function<CompiledGraph()>& build);
  /// By content. Weights are set on the first compilation; later calls with other values for the same graph are a user error
  /// unless they give none.
  CompiledGraph compile(const ir::Graph&, const NamedLiterals& weights, const CompileOptions& = {});

  bool contains(uint64_t key) const;
  size_t size() const;
  /// Weights, packed forms and constants of all entries; memory of runs belongs to the callers.
  int64_t bytes() const;
  /// Programs that were there when they were asked for.
  size_t hits() const;
  /// Programs that had to be compiled.
  size_t misses() const;

 private:
  struct Entry {
    Hash128 key;
    std::unique_ptr<CompiledGraph> program;
    int64_t plain = 0;  // bytes of weights and constants, without forms that runs pack
    int64_t bytes() const { return plain + program->packed_weight_bytes(); }
  };
  /// A key that a thread compiles now, or waits for.
  struct Claim {
    Hash128 key;
    std::thread::id thread;
  };
  CompiledGraph get(Hash128 key, const std::function<CompiledGraph()>& build);
  bool waits_for_itself(Hash128 key) const;
  void shrink();

  Limits limits_;
  mutable std::mutex mutex_;
  std::condition_variable built_;          // or given up
  std::vector<Claim> building_, waiting_;  // an inner build stands behind the outer one
  std::list<Entry> entries_;               // the last used first
  size_t hits_ = 0, misses_ = 0;
};

/// Sizes from `first` to `last`, both included, that run at size `last`.
struct Bucket {
  int64_t first = 0, last = 0;
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

/// Buckets that end at powers of two, from the first that holds `least` to the first that holds `most`: at most half of a run is
/// padding.
std::vector<Bucket> power_of_two_ladder(int64_t least, int64_t most);

/// Rows behind the last become zeros, up to `rows`. More rows than that are a user error.
Literal pad_rows(const Literal&, int64_t rows);
/// The first `rows` rows.
Literal slice_rows(const Literal&, int64_t rows);

/// One program for each bucket of sizes, compiled when first asked for.
class BucketedCompileCache {
 public:
  /// Makes the program of a bucket from its largest size.
  using Build = std::function<CompiledGraph(int64_t rows)>;

  /// Buckets may not be empty, reversed or overlap.
  BucketedCompileCache(std::vector<Bucket> buckets, Build build);
  /// Over the buckets of power_of_two_ladder.
  static BucketedCompileCache ladder(int64_t least, int64_t most, Build build) {
    return {power_of_two_ladder(least, most), std::move(build)};
  }

  /// As given, in order.
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// The bucket of a size; none when it lies in no bucket.
  std::optional<size_t> find(int64_t rows) const;
  /// The program of that bucket; null, and nothing is compiled, when the size lies in none.
  CompiledGraph* get(int64_t rows);
  /// Buckets that have their program already.
  size_t compiled() const;

  /// Pads the first axis of the inputs named (all when none are) to the size of the bucket, runs, and cuts outputs that have
  /// that many rows back to `rows`. An output in `whole` is left as it is. Names that the program or `inputs` does not have are
  /// told in one error.
  NamedLiterals run_padded(int64_t rows, const NamedLiterals& inputs,
                           const std::vector<std::string>& padded = {},
                           const std::vector<std::string>& whole = {});

 private:
  std::vector<Bucket> buckets_;
  Build build_;
  std::vector<std::unique_ptr<CompiledGraph>> programs_;
};

/// A graph with symbolic sizes that is optimised once; each binding gets a program of its own, and all share weights.
class DynamicDimCompileCache {
 public:
  DynamicDimCompileCache(const ir::Graph&, const NamedLiterals& weights, const CompileOptions& = {},
                         size_t bindings = 16);

  /// A program whose plan for these sizes is made. Symbols that are missing or unknown are a user error.
  CompiledGraph get(const DimBinding&);
  bool contains(const DimBinding&) const;
  size_t size() const { return known_.size(); }

 private:
  CompiledGraph template_;
  ir::Graph graph_;
  size_t limit_;
  std::list<std::string> known_;  // bindings as text, the last used first
};

}  // namespace rlx
