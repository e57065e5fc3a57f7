// Plan. Runs of few queries read keys where they lie: a page, or 256 keys of a larger one, is a task of the form for
// decoding, and the parts of a head are joined as there; the tasks of all rows are one pool. Up to 32 queries are runs of as many as
// that form takes at once: each then gets the bits that it gets alone, so that tokens checked together, as guesses are, are those
// that would have been written one by one. A run of many queries
// (a piece of a prompt) copies its keys and values one behind the other, which is little beside its products, and is then
// plain causal attention.
#include "rlx/backend/cpu/kernels/paged_attention.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {

RLX_ISA_TABLE_VNNI(AttentionKernels, attention_kernels)

namespace {

constexpr int64_t kQ8Elements = 32, kQ8Bytes = 34;
constexpr int64_t kFewQueries = 32;  // of a row, that are taken as single ones would be

int64_t bytes_of(KvFormat format, int64_t elements) {
  switch (format) {
    case KvFormat::f32:
      return elements * 4;
    case KvFormat::f16:
    case KvFormat::bf16:
      return elements * 2;
    case KvFormat::q8_0:
      break;
  }
  return elements / kQ8Elements * kQ8Bytes;
}

// Queries [first, first + count) of a row, at positions `position` ..
struct Run {
  int64_t row, first, count, position;
  int64_t task0, floats0;  // its first task, and where its parts begin
};

struct Cut {
  const PagedAttention& p;

  int64_t group() const { return p.form.q_heads / p.form.kv_heads; }
  bool few(int64_t queries) const { return group() <= kAttentionFewRows && queries <= kFewQueries; }
  int64_t most_few() const {
    return std::clamp<int64_t>(kAttentionFewRows / std::max<int64_t>(1, group()), 1, 4);
  }
  int64_t part() const { return std::min(p.page, kAttentionSplit); }
  int64_t parts_of_page() const { return ceil_div(p.page, part()); }
  int64_t most_parts() const { return p.pages_of_row * parts_of_page(); }
  int64_t part_floats(int64_t queries) const { return group() * queries * (p.form.value_dim + 2); }
  int64_t low(const Run& r) const {
    return p.form.window >= 0 ? std::max<int64_t>(0, r.position - p.form.window) : 0;
  }
  // Parts are counted from key 0 on, so that they do not move with the window.
  int64_t part_at(int64_t key) const { return key / p.page * parts_of_page() + key % p.page / part(); }
  int64_t first_part(const Run& r) const { return part_at(low(r)); }
  int64_t parts(const Run& r) const { return part_at(r.position + r.count - 1) + 1 - first_part(r); }

  int64_t slot(int64_t row, int64_t key) const {
    const int64_t page = p.pages[row * p.pages_of_row + key / p.page];
    if (page < 0 || (page + 1) * p.page > p.slots)
      throw invalid("paged_attention: page ", page, " of row ", row, " is not below ", p.slots / p.page);
    return page * p.page + key % p.page;
  }
  // The form of one run; batch index of k and v: slots that keys are moved by.
  Attention form(const Run& r) const {
    Attention f = p.form;
    f.batch = 1;
    f.q_len = r.count;
    f.k_len = r.position + r.count;
    f.causal = true;
    f.q += r.row * f.q_strides.batch + r.first * f.q_strides.row;
    f.o += r.row * f.o_strides.batch + r.first * f.o_strides.row;
    f.q_strides.batch = f.o_strides.batch = 0;
    f.k_strides.batch = f.k_strides.row;
    f.v_strides.batch = f.v_strides.row;
    f.lse = nullptr;
    return f;
  }
};

// Queries that see nothing get zeros; body(run) for the others, as runs of positions that follow each other.
template <class Body>
void for_each_run(const PagedAttention& p, Body body) {
  const Attention& f = p.form;
  for (int64_t row = 0; row < p.rows; ++row) {
    const int32_t* at = p.positions + row * f.q_len;
    for (int64_t i = 0; i < f.q_len;) {
      if (at[i] < 0) {
        for (int64_t h = 0; h < f.q_heads; ++h) {
          float* o = f.o + row * f.o_strides.batch + h * f.o_strides.head + i * f.o_strides.row;
          std::fill_n(o, f.value_dim, 0.0f);
        }
        ++i;
        continue;
      }
      int64_t end = i + 1;
      while (end < f.q_len && at[end] == at[end - 1] + 1) ++end;
      if (at[end - 1] >= p.pages_of_row * p.page)
        throw invalid("paged_attention: position ", at[end - 1], " of row ", row, " is not below ",
                      p.pages_of_row * p.page, ", the slots of its pages");
      body(Run{.row = row, .first = i, .count = end - i, .position = at[i]});
      i = end;
    }
  }
}

// Where keys and values of a run lie when they have been copied.
struct Copied {
  std::byte *k, *v;
  int64_t k_bytes, v_bytes;  // of a row; v_bytes 0: values are in the keys
  size_t bytes;

  Copied(const PagedAttention& p, std::byte* workspace)
      : k_bytes(bytes_of(p.form.kv_format, p.form.k_strides.row)),
        v_bytes(p.form.v == p.form.k && p.form.k != nullptr
                    ? 0
                    : bytes_of(p.form.kv_format, p.form.v_strides.row)) {
    const int64_t keys = p.pages_of_row * p.page;
    const size_t half = round_up(size_t(keys * k_bytes));
    k = workspace;
    v = v_bytes == 0 ? k : workspace + half;
    bytes = half + round_up(size_t(keys * v_bytes));
  }
};

// The workspace of runs of few queries of so many rows: the runs, their parts, scratch memory of each thread.
struct FewLayout {
  size_t parts, scratch, scratch_bytes, total;

  FewLayout(const Cut& c, int64_t rows, int64_t queries, int threads) {
    Attention form = c.p.form;
    form.q_len = std::min(queries, c.most_few());
    scratch_bytes = round_up(attention_kernels().scratch_bytes(form));
    parts = round_up(size_t(rows * queries) * sizeof(Run));
    const int64_t tasks = rows * form.kv_heads * c.most_parts();
    scratch = parts + round_up(size_t(tasks * c.part_floats(queries)) * sizeof(float));
    total = scratch + scratch_bytes * size_t(threads);
  }
};

// Runs as the form for decoding takes them, and the tasks they are.
struct FewRuns {
  const Cut& c;
  Run* runs;
  int64_t count = 0, tasks = 0, floats = 0;

  void add(const Run& whole) {
    for (int64_t first = 0; first < whole.count; first += c.most_few()) {
      Run r = whole;
      r.first += first;
      r.position += first;
      r.count = std::min(whole.count - first, c.most_few());
      r.task0 = tasks;
      r.floats0 = floats;
      const int64_t n = c.p.form.kv_heads * c.parts(r);
      tasks += n;
      floats += n * c.part_floats(r.count);
      runs[count++] = r;
    }
  }
};

// Runs of few queries, all at once.
void run_few(Team team, const Cut& c, std::span<const Run> runs, const FewLayout& l, std::byte* workspace) {
  const AttentionKernels& k = attention_kernels();
  const int64_t heads = c.p.form.kv_heads;
  float* const parts = reinterpret_cast<float*>(workspace + l.parts);
  const int64_t tasks = runs.back().task0 + heads * c.parts(runs.back());
  // Pages are looked at before the work begins, so that an error comes from one thread.
  for (const Run& r : runs)
    for (int64_t key = c.low(r); key < r.position + r.count; key = (key / c.p.page + 1) * c.p.page)
      (void)c.slot(r.row, key);
  std::atomic<int64_t> next{0};
  team.run(int(std::min<int64_t>(team.threads(), tasks)), [&](int thread) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
      const Run& r = *(std::upper_bound(runs.begin(), runs.end(), i,
                                        [](int64_t task, const Run& run) { return task < run.task0; }) -
                       1);
      const int64_t count = c.parts(r), local = i - r.task0, head = local / count;
      const int64_t part = c.first_part(r) + local % count, page = part / c.parts_of_page();
      const int64_t begin = page * c.p.page + part % c.parts_of_page() * c.part();
      const int64_t end = std::min({begin + c.part(), (page + 1) * c.p.page, r.position + r.count});
      // The kernel finds key j at (shift + j) rows from the start of the store, and its query at q.
      const int64_t shift = c.slot(r.row, page * c.p.page) - page * c.p.page;
      k.decode(c.form(r), shift, head, begin, end, parts + r.floats0 + local * c.part_floats(r.count),
               workspace + l.scratch + size_t(thread) * l.scratch_bytes);
    }
  });
  team.parallel_for(int64_t(runs.size()) * heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Run& r = runs[size_t(i / heads)];
      const int64_t count = c.parts(r), head = i % heads;
      k.join(c.form(r), 0, head, count, parts + r.floats0 + head * count * c.part_floats(r.count));
    }
  });
}

// Whether the pages of keys [start, end) follow each other in the store.
bool in_order(const Cut& c, const Run& r, int64_t start, int64_t end) {
  for (int64_t key = start; key + c.p.page < end; key += c.p.page)
    if (c.slot(r.row, key + c.p.page) != c.slot(r.row, key) + c.p.page) return false;
  return true;
}

// Keys and values of a run of many queries, one behind the other from its first page on. Only differences of positions count,
// so that page becomes the first.
void run_many(Team team, const Cut& c, const Run& r, std::byte* workspace) {
  const PagedAttention& p = c.p;
  const Copied to(p, workspace);
  const int64_t start = c.low(r) / p.page * p.page, end = r.position + r.count;
  Attention f = c.form(r);
  f.k_len = end - start;
  const auto at = [](const void* store, int64_t slot, int64_t bytes) {
    return static_cast<const std::byte*>(store) + slot * bytes;
  };
  if (in_order(c, r, start, end)) {
    const int64_t slot = c.slot(r.row, start);
    f.k = at(p.form.k, slot, to.k_bytes);
    f.v = to.v_bytes > 0 ? at(p.form.v, slot, to.v_bytes) : f.k;
  } else {
    for (int64_t key = start; key < end; key += p.page) {
      const int64_t slot = c.slot(r.row, key), count = std::min(p.page, end - key);
      std::memcpy(to.k + (key - start) * to.k_bytes, at(p.form.k, slot, to.k_bytes),
                  size_t(count * to.k_bytes));
      if (to.v_bytes > 0)
        std::memcpy(to.v + (key - start) * to.v_bytes, at(p.form.v, slot, to.v_bytes),
                    size_t(count * to.v_bytes));
    }
    f.k = to.k;
    f.v = to.v;
  }
  attention(team, f, workspace + to.bytes);
}

// The form with the most keys, to size the workspace by.
Attention largest_form(const PagedAttention& p) {
  Attention f = p.form;
  f.batch = 1;
  f.k_len = p.pages_of_row * p.page;
  return f;
}

}  // namespace

size_t paged_attention_workspace(const PagedAttention& p, int threads) {
  const Cut c{p};
  const int64_t queries = p.form.q_len;
  if (c.few(queries)) return FewLayout(c, p.rows, queries, threads).total;
  return std::max(FewLayout(c, 1, kFewQueries, threads).total,
                  Copied(p, nullptr).bytes + attention_workspace(largest_form(p), threads));
}

void paged_attention(Team team, const PagedAttention& p, std::byte* workspace) {
  RLX_CHECK(p.form.kv_heads > 0 && p.form.q_heads % p.form.kv_heads == 0, p.form.q_heads,
            " query heads over ", p.form.kv_heads);
  const Cut c{p};
  const int64_t queries = p.form.q_len;
  FewRuns few{c, reinterpret_cast<Run*>(workspace)};
  const auto run_them = [&](int64_t rows, int64_t most) {
    if (few.count > 0)
      run_few(team, c, {few.runs, size_t(few.count)}, FewLayout(c, rows, most, team.threads()), workspace);
  };
  if (c.few(queries)) {
    for_each_run(p, [&](const Run& r) { few.add(r); });
    return run_them(p.rows, queries);
  }
  for_each_run(p, [&](const Run& r) {
    if (!c.few(r.count)) return run_many(team, c, r, workspace);
    few.count = few.tasks = few.floats = 0;
    few.add(r);
    run_them(1, kFewQueries);
  });
}

}  // namespace rlx::cpu
