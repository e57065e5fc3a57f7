// Loops of known length. Carries alternate between the results and a second place, so that the last step writes where the
// results belong; slices and stacked outputs are addresses into their sequences.
//
// Where the rows of the carries do not know of each other, every thread runs the whole loop on rows of its own: threads
// meet once for the loop instead of several times a step, and no state travels between their caches. Each then reads all
// of the weights, which pays from a few rows a thread on.
#include "rlx/ops/control/scan.h"

#include <cstring>

#include "rlx/backend/control/body.h"
#include "rlx/backend/control/loops.h"
#include "rlx/backend/control/rows.h"
#include "rlx/backend/work.h"

namespace rlx::backend {
namespace {

// Fewer rows leave the weights too few multiply-adds for what it takes to read them.
constexpr int64_t kLeastRows = 4;
// Operations of the whole loop that are worth waking another thread for.
constexpr double kLeastOperations = 262144;

std::vector<int> operand_numbers(const ops::Scan::Attrs& a, size_t leaves) {
  std::vector<int> out(leaves, -1);
  for (int i = 0; i < a.consts; ++i) out[size_t(a.carries + i)] = a.carries + i;
  return out;
}

/// How a loop is shared out over rows: the bodies of both sizes of a part, and which leaves are cut.
struct RowParts {
  int64_t rows = 0;
  std::vector<int> leaf_axes;
  std::vector<std::pair<int64_t, ir::Graph>> bodies;  // by their rows
};

std::optional<RowParts> parts_of(const ops::Scan::Attrs& a, int threads) {
  const ir::Graph& body = *a.body;
  const auto leaves = body.leaves();
  if (threads < 2 || a.gate != ops::ScanGate::none || a.carries == 0) return std::nullopt;
  const auto rows_of = [&](size_t i) {
    const Shape& s = body.node(leaves[i]).shapes[0];
    return s.rank() == 0 ? int64_t(0) : s.dim(0).value();
  };
  RowParts out{.rows = rows_of(0)};
  if (out.rows < threads * kLeastRows) return std::nullopt;
  if (double(a.length.value()) * operations_of(body) < kLeastOperations) return std::nullopt;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const bool carry = i < size_t(a.carries), constant = !carry && i < size_t(a.carries + a.consts);
    if (carry && rows_of(i) != out.rows) return std::nullopt;
    out.leaf_axes.push_back(!constant && rows_of(i) == out.rows ? 0 : kNoRows);
  }
  const int64_t least = out.rows / threads;
  for (int64_t part = least; part <= least + (out.rows % threads != 0);) {
    RowCut cut = cut_rows(body, out.leaf_axes, out.rows, part);
    if (cut.uncut_leaf >= 0 && out.bodies.empty()) {  // a constant with a number for each row
      out.leaf_axes[size_t(cut.uncut_leaf)] = 0;
      continue;
    }
    if (!cut.body) return std::nullopt;
    for (const int axis : cut.output_axes) {
      if (axis != 0) return std::nullopt;
    }
    out.bodies.emplace_back(part++, std::move(*cut.body));
  }
  return out;
}

class ScanStep final : public Step {
 public:
  explicit ScanStep(const Request& r) : attrs_(r.node.as<ops::Scan>()) {
    length_ = attrs_.length.value();
    carries_ = size_t(attrs_.carries);
    operands_ = r.in.size();
    const size_t first_slice = carries_ + size_t(attrs_.consts);
    for (size_t i = first_slice; i < operands_; ++i)
      slices_.push_back(length_ > 0 ? size_t(r.in[i].shape.size_bytes() / length_) : 0);
    if (attrs_.gate == ops::ScanGate::sequence) flag_bytes_ = dtype_size(r.in[first_slice].dtype());
    for (size_t i = 0; i < r.out.size(); ++i) {
      bytes_.push_back(size_t(attrs_.body->shape(attrs_.body->outputs()[i]).size_bytes()));
      if (i >= carries_) continue;
      spare_.push_back(spare_bytes_);
      spare_bytes_ += aligned_size(bytes_.back());
    }
    in_row_bytes_.assign(operands_, 0);
    out_row_bytes_.assign(r.out.size(), 0);
    note = cat(length_, " steps");
    if (const auto rows = parts_of(attrs_, r.threads)) {
      cut(r, *rows);
    } else {
      bodies_.emplace_back(r, *attrs_.body, operand_numbers(attrs_, operands_), *this);
      parts_.push_back({.workspace = spare_bytes_});
    }
    workspace = parts_.back().workspace + bodies_[parts_.back().body].workspace();
  }

  std::vector<Plan> bodies() const override { return {bodies_[0].plan()}; }

  void run(const Launch& l) const override {
    if (parts_.size() == 1) return run_part(l, parts_[0]);
    if (every_step_wanted(l)) return run_in_turns(l);
    l.team.run(int(parts_.size()), [&](int i) {
      Launch own = l;
      own.team = l.team.limited(1);
      own.observer = nullptr;  // hears of one thread only
      run_part(own, parts_[size_t(i)]);
    });
  }

 private:
  /// What one thread runs: the rows from `row` on, all of them where the loop is not cut.
  struct Part {
    size_t body = 0;
    size_t row = 0, rows = 0;
    size_t workspace = 0;  // behind the second places of the carries
  };

  // Bodies of fewer rows, which each run on one thread.
  void cut(const Request& r, const RowParts& rows) {
    const Builder builder = r.builder->with_threads(1);
    const Request alone{.node = r.node, .in = r.in, .out = r.out, .threads = 1, .builder = &builder};
    for (const auto& [size, body] : rows.bodies)
      bodies_.emplace_back(alone, body, operand_numbers(attrs_, operands_), *this);
    for (size_t i = 0; i < operands_; ++i) {
      if (rows.leaf_axes[i] == kNoRows) continue;
      const size_t first_slice = carries_ + size_t(attrs_.consts);
      const size_t bytes = i < first_slice ? size_t(r.in[i].shape.size_bytes()) : slices_[i - first_slice];
      in_row_bytes_[i] = bytes / size_t(rows.rows);
    }
    for (size_t i = 0; i < bytes_.size(); ++i) out_row_bytes_[i] = bytes_[i] / size_t(rows.rows);
    size_t at = spare_bytes_;
    for (int i = 0; i < r.threads; ++i) {
      const Range range = split_range(rows.rows, 1, r.threads, i);
      const size_t body = range.end - range.begin == rows.bodies[0].first ? 0 : 1;
      parts_.push_back({body, size_t(range.begin), size_t(range.end - range.begin), at});
      at += bodies_[body].workspace();
    }
    note += cat(", ", r.threads, " threads of ", rows.bodies.back().first, " rows");
  }

  void run_part(const Launch& l, const Part& part) const {
    begin(l, part);
    bool to_results = length_ % 2 == 1;
    for (int64_t step = 0; step < length_ && !is_over(part, l); ++step) {
      if (run_step(l, part, step, to_results)) to_results = !to_results;
    }
    end(l, part);
  }

  // Each step of all parts before the next one: who looks sees the first step that something is wrong in. A loop that is cut leaves no
  // step out.
  void run_in_turns(const Launch& l) const {
    Launch own = l;
    own.team = l.team.limited(1);
    for (const Part& part : parts_) begin(own, part);
    for (int64_t step = 0; step < length_; ++step) {
      for (const Part& part : parts_) run_step(own, part, step, (length_ - step) % 2 == 1);
    }
    for (const Part& part : parts_) end(own, part);
  }

  std::byte* inside(const Launch& l, const Part& part) const { return l.workspace + part.workspace; }
  std::byte* result(const Launch& l, const Part& part, size_t i) const {
    return l.out[i] + part.row * out_row_bytes_[i];
  }

  void begin(const Launch& l, const Part& part) const {
    std::byte** const leaves = bodies_[part.body].leaf_addresses(inside(l, part));
    for (size_t i = 0; i < carries_ + size_t(attrs_.consts); ++i)
      leaves[i] = l.in[i] + part.row * in_row_bytes_[i];
    if (attrs_.gate == ops::ScanGate::none) return;
    for (size_t i = carries_; i < bytes_.size(); ++i) std::memset(l.out[i], 0, bytes_[i] * size_t(length_));
  }

  bool is_over(const Part& part, const Launch& l) const {
    return attrs_.gate == ops::ScanGate::carry &&
           bodies_[part.body].leaf_addresses(inside(l, part))[0][0] == std::byte(0);
  }

  // False where the step is left out.
  bool run_step(const Launch& l, const Part& part, int64_t step, bool to_results) const {
    const Body& body = bodies_[part.body];
    std::byte* const own = inside(l, part);
    std::byte **const leaves = body.leaf_addresses(own), **const outputs = body.output_addresses(own);
    const size_t first_slice = carries_ + size_t(attrs_.consts);
    const int64_t t = attrs_.reverse ? length_ - 1 - step : step;
    if (attrs_.gate == ops::ScanGate::sequence && l.in[first_slice][size_t(t) * flag_bytes_] == std::byte(0))
      return false;
    for (size_t i = first_slice; i < operands_; ++i)
      leaves[i] = l.in[i] + size_t(t) * slices_[i - first_slice] + part.row * in_row_bytes_[i];
    for (size_t i = 0; i < carries_; ++i)
      outputs[i] = to_results ? result(l, part, i) : l.workspace + spare_[i] + part.row * out_row_bytes_[i];
    for (size_t i = carries_; i < bytes_.size(); ++i) outputs[i] = result(l, part, i) + size_t(t) * bytes_[i];
    body.run(l, own, {.round = step, .row = int64_t(part.row), .rows = int64_t(part.rows)});
    for (size_t i = 0; i < carries_; ++i) leaves[i] = outputs[i];
    return true;
  }

  // No step ran, or some were left out.
  void end(const Launch& l, const Part& part) const {
    std::byte** const leaves = bodies_[part.body].leaf_addresses(inside(l, part));
    for (size_t i = 0; i < carries_; ++i) {
      const size_t bytes = part.rows > 0 ? part.rows * out_row_bytes_[i] : bytes_[i];
      if (leaves[i] != result(l, part, i) && bytes > 0) std::memcpy(result(l, part, i), leaves[i], bytes);
    }
  }

  ops::Scan::Attrs attrs_;
  std::vector<Body> bodies_;  // one, or those of the sizes of parts
  std::vector<Part> parts_;
  int64_t length_ = 0;
  size_t carries_ = 0, operands_ = 0, spare_bytes_ = 0, flag_bytes_ = 1;
  std::vector<size_t> bytes_, spare_, slices_;  // of one output of the body; places of carries; of one slice
  std::vector<size_t> in_row_bytes_, out_row_bytes_;  // of one row of what is cut, 0 for the rest
};

}  // namespace

std::unique_ptr<Step> prepare_scan(const Request& r) { return std::make_unique<ScanStep>(r); }

}  // namespace rlx::backend
