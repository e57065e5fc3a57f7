#include "rlx/runtime/compile_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "rlx/base/version.h"
#include "rlx/ir/leaves.h"
#include "rlx/runtime/core.h"

namespace rlx {
namespace {

void add_policy(Hasher& h, const std::optional<PrecisionPolicy>& p) {
  h.add(p.has_value());
  if (!p) return;
  for (const DType t : {p->compute, p->reduction, p->elementwise, p->movement}) h.add(uint64_t(t));
  h.add(p->keep.size());
  for (const std::string& name : p->keep) h.add(name);
}

// Bytes that an entry keeps alive, whoever runs it, but for packed forms.
int64_t plain_bytes(const CompiledGraph& f) {
  int64_t bytes = 0;
  for (const auto& leaf : f.core().leaves()) {
    if (leaf.role == runtime::LeafRole::param && leaf.shape.is_static()) bytes += leaf.shape.size_bytes();
  }
  for (const ir::Node* n : f.graph().nodes()) {
    if (n->is<ir::Constant>()) bytes += n->shapes[0].size_bytes();
  }
  return bytes;
}

std::string binding_text(const DimBinding& b) {
  std::vector<std::string> parts;
  for (const auto& [symbol, size] : b) parts.push_back(cat(symbol, "=", size));
  return join(parts);
}

}  // namespace

Hash128 compile_key(const ir::Graph& graph, const CompileOptions& o) {
  Hasher h;
  const Hash128 g = graph.hash();
  h.add(g.lo);
  h.add(g.hi);
  h.add(std::string_view(RLX_VERSION));
  h.add(o.device);
  h.add(uint64_t(o.threads));
  h.add(uint64_t(o.optimise));
  h.add(uint64_t(o.fuse));
  h.add(uint64_t(o.batch_independent));
  add_policy(h, o.precision);
  h.add(uint64_t(o.plans_kept));
  h.add(o.states.size());
  for (const StatePair& s : o.states) {
    h.add(s.input);
    h.add(s.output);
  }
  return h.finish();
}

// Whether this thread would wait for a build that, over other threads, waits for this one: then nobody would go on.
bool CompileCache::waits_for_itself(Hash128 key) const {
  const auto me = std::this_thread::get_id();
  for (;;) {
    const auto builder =
        std::find_if(building_.begin(), building_.end(), [&](const Claim& c) { return c.key == key; });
    if (builder == building_.end()) return false;
    if (builder->thread == me) return true;
    const auto next = std::find_if(waiting_.begin(), waiting_.end(),
                                   [&](const Claim& c) { return c.thread == builder->thread; });
    if (next == waiting_.end()) return false;
    key = next->key;
  }
}

// Builds run without the lock, under a claim; who waits for a build that failed tries it again.
CompiledGraph CompileCache::get(Hash128 key, const std::function<CompiledGraph()>& build) {
  const auto me = std::this_thread::get_id();
  const auto drop = [&](std::vector<Claim>& claims) {
    std::erase_if(claims, [&](const Claim& c) { return c.key == key && c.thread == me; });
  };
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto found =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
    if (found != entries_.end()) {
      ++hits_;
      entries_.splice(entries_.begin(), entries_, found);
      shrink();
      return entries_.front().program->clone();
    }
    if (std::none_of(building_.begin(), building_.end(), [&](const Claim& c) { return c.key == key; })) break;
    if (waits_for_itself(key))
      throw invalid("compile cache: the build of a key asks for the same key; build that under another");
    waiting_.push_back({key, me});
    built_.wait(lock);
    drop(waiting_);
  }
  ++misses_;
  building_.push_back({key, me});
  std::unique_ptr<CompiledGraph> made;
  lock.unlock();
  try {
    made = std::make_unique<CompiledGraph>(build());
  } catch (...) {
    lock.lock();
    drop(building_);
    built_.notify_all();
    throw;
  }
  lock.lock();
  drop(building_);
  built_.notify_all();
  const int64_t plain = plain_bytes(*made);
  entries_.push_front({key, std::move(made), plain});
  shrink();
  return entries_.front().program->clone();
}

void CompileCache::shrink() {
  int64_t bytes = 0;
  size_t kept = 0;
  for (auto it = entries_.begin(); it != entries_.end();) {
    bytes += it->bytes();
    const bool stays = kept == 0 || (kept < limits_.entries && bytes <= limits_.bytes);
    ++kept;
    if (!stays) {
      entries_.erase(it, entries_.end());
      return;
    }
    ++it;
  }
}

CompiledGraph CompileCache::get_or_compile(uint64_t key, const std::function<CompiledGraph()>& build) {
  return get({key, 0}, build);
}

CompiledGraph CompileCache::compile(const ir::Graph& graph, const NamedLiterals& weights,
                                    const CompileOptions& options) {
  bool made = false;
  CompiledGraph f = get(compile_key(graph, options), [&] {
    made = true;
    return CompiledGraph(graph, weights, options);
  });
  if (!made && !weights.empty() && !f.core().has_weights(weights))
    throw invalid(
        "compile cache: graph '", graph.name(),
        "' was compiled with other weights; clones share them, so give none, or change them with set_params");
  return f;
}

bool CompileCache::contains(uint64_t key) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& e) { return e.key == Hash128{key, 0}; });
}

size_t CompileCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

size_t CompileCache::hits() const {
  const std::lock_guard lock(mutex_);
  return hits_;
}

size_t CompileCache::misses() const {
  const std::lock_guard lock(mutex_);
  return misses_;
}

int64_t CompileCache::bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t total = 0;
  for (const Entry& e : entries_) total += e.bytes();
  return total;
}

std::vector<Bucket> power_of_two_ladder(int64_t least, int64_t most) {
  constexpr int64_t kMost = int64_t(1) << 40;
  if (least < 1 || most < least || most > kMost)
    throw invalid("power_of_two_ladder: from ", least, " to ", most, "; 1 <= least <= most expected");
  std::vector<Bucket> out;
  auto last = int64_t(std::bit_ceil(uint64_t(least)));
  int64_t first = 1;
  for (;; first = last + 1, last *= 2) {
    out.push_back({first, last});
    if (last >= most) return out;
  }
}

Literal pad_rows(const Literal& x, int64_t rows) {
  if (x.shape().rank() == 0) throw invalid("pad_rows: ", x.shape(), " has no rows");
  const int64_t have = x.shape().dim(0).value();
  if (have > rows) throw invalid("pad_rows: ", x.shape(), " has more than ", rows, " rows");
  if (have == rows) return x;
  Literal out = Literal::zeros(x.shape().with_dim(0, rows));
  if (!x.bytes().empty()) std::memcpy(out.mutable_bytes().data(), x.bytes().data(), x.bytes().size());
  return out;
}

Literal slice_rows(const Literal& x, int64_t rows) {
  if (x.shape().rank() == 0 || rows < 0 || x.shape().dim(0).value() < rows)
    throw invalid("slice_rows: ", rows, " rows of ", x.shape());
  const Shape shape = x.shape().with_dim(0, rows);
  return Literal::copy_of(shape, x.bytes().first(size_t(shape.size_bytes())));
}

BucketedCompileCache::BucketedCompileCache(std::vector<Bucket> buckets, Build build)
    : buckets_(std::move(buckets)), build_(std::move(build)) {
  if (buckets_.empty()) throw invalid("buckets: there are none");
  std::sort(buckets_.begin(), buckets_.end(),
            [](const Bucket& a, const Bucket& b) { return a.first < b.first; });
  for (size_t i = 0; i < buckets_.size(); ++i) {
    const Bucket& b = buckets_[i];
    if (b.first < 0 || b.last < b.first)
      throw invalid("buckets: from ", b.first, " to ", b.last, " holds no size");
    if (i > 0 && buckets_[i - 1].last >= b.first)
      throw invalid("buckets: ", buckets_[i - 1].first, " to ", buckets_[i - 1].last, " and ", b.first,
                    " to ", b.last, " overlap");
  }
  programs_.resize(buckets_.size());
}

std::optional<size_t> BucketedCompileCache::find(int64_t rows) const {
  for (size_t i = 0; i < buckets_.size(); ++i) {
    if (buckets_[i].first <= rows && rows <= buckets_[i].last) return i;
  }
  return std::nullopt;
}

CompiledGraph* BucketedCompileCache::get(int64_t rows) {
  const auto at = find(rows);
  if (!at) return nullptr;
  if (!programs_[*at]) programs_[*at] = std::make_unique<CompiledGraph>(build_(buckets_[*at].last));
  return programs_[*at].get();
}

size_t BucketedCompileCache::compiled() const {
  return size_t(
      std::count_if(programs_.begin(), programs_.end(), [](const auto& p) { return p != nullptr; }));
}

NamedLiterals BucketedCompileCache::run_padded(int64_t rows, const NamedLiterals& inputs,
                                               const std::vector<std::string>& padded,
                                               const std::vector<std::string>& whole) {
  const auto at = find(rows);
  if (!at) {
    throw invalid("run_padded: ", rows, " rows lie in no bucket; they go from ", buckets_.front().first,
                  " to ", buckets_.back().last);
  }
  const int64_t size = buckets_[*at].last;
  const auto in = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  std::vector<std::string> problems;
  for (const std::string& name : padded) {
    const auto input = inputs.find(name);
    if (input == inputs.end()) {
      problems.push_back(cat("there is no input '", name, "' to pad"));
    } else if (const Shape& s = input->second.shape(); s.rank() == 0 || s.dim(0) != Dim(rows)) {
      problems.push_back(cat("input '", name, "' is ", s, "; its first axis must have ", rows, " rows"));
    }
  }
  CompiledGraph& f = *get(rows);
  std::vector<std::string> outputs;
  for (const Port& p : f.outputs()) outputs.push_back(p.name);
  for (const std::string& name : whole) {
    if (!in(outputs, name))
      problems.push_back(cat("there is no output '", name, "' to leave whole; there are ", join(outputs)));
  }
  if (!problems.empty()) throw invalid("run_padded: ", join(problems, "; "));
  NamedLiterals full;
  for (const auto& [name, value] : inputs) {
    const bool pads =
        padded.empty() ? value.shape().rank() > 0 && value.shape().dim(0) == Dim(rows) : in(padded, name);
    full.emplace(name, pads ? pad_rows(value, size) : value);
  }
  NamedLiterals out = f.run(full);
  for (auto& [name, value] : out) {
    const bool cut = value.shape().rank() > 0 && value.shape().dim(0) == Dim(size) && !in(whole, name);
    if (cut) value = slice_rows(value, rows);
  }
  return out;
}

DynamicDimCompileCache::DynamicDimCompileCache(const ir::Graph& graph, const NamedLiterals& weights,
                                               const CompileOptions& options, size_t bindings)
    : template_(graph, weights,
                [&] {
                  CompileOptions o = options;
                  o.plans_kept = int64_t(std::max<size_t>(1, bindings));
                  return o;
                }()),
      graph_(graph),
      limit_(std::max<size_t>(1, bindings)) {}

CompiledGraph DynamicDimCompileCache::get(const DimBinding& binding) {
  const auto symbols = graph_.dynamic_symbols();
  for (const auto& [symbol, size] : binding) {
    if (std::find(symbols.begin(), symbols.end(), symbol) == symbols.end())
      throw invalid("dynamic dims: graph '", graph_.name(), "' has no symbol '", symbol, "'; it has ",
                    symbols.empty() ? "none" : join(symbols));
  }
  std::map<std::string, Shape> inputs;
  for (const Port& p : template_.inputs()) {
    inputs[p.name] = p.shape.bind(binding);
    if (!inputs[p.name].is_static())
      throw invalid("dynamic dims: '", p.name, "' is still ", inputs[p.name], "; bind ",
                    join(inputs[p.name].dynamic_symbols()));
  }
  CompiledGraph f = template_.clone();
  f.plan(inputs);
  const std::string key = binding_text(binding);
  known_.remove(key);
  known_.push_front(key);
  while (known_.size() > limit_) known_.pop_back();
  return f;
}

bool DynamicDimCompileCache::contains(const DimBinding& binding) const {
  return std::find(known_.begin(), known_.end(), binding_text(binding)) != known_.end();
}

}  // namespace rlx
