// Plan: an element becomes an unsigned key whose order is the order wanted (descending: its complement), with
// the place beside it, so that all items differ and any sort is a stable one. Items of 32-bit keys are one
// 64-bit word, those of 64-bit keys two. Very short rows are sorted by comparison, others by digits from the
// lowest, passes over a constant digit left out: a pass costs a nanosecond an item, and a third of one for each
// of its counters, so digits have 8 bits in rows of up to 2048 items and 10 or 11 in longer ones. Rows go to
// threads; a few very long rows are cut into a piece for each thread, sorted and merged, each merge cut into
// even parts again.
//
// The k largest of a row: pieces of 1024 elements are compared with the k-th best so far; what passes is
// collected and thinned out to k when it has doubled. On random data about k ln(n / k) elements ever pass, so
// the bound is reading the row.
#include "rlx/backend/cpu/kernels/order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/grain.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"
#include "rlx/base/float16.h"
#include "rlx/base/philox.h"

namespace rlx::cpu {

RLX_ISA_TABLE(OrderKernels, order_kernels)

namespace {

constexpr int64_t kNarrowDigits = 2048;  // items up to which digits are narrow
constexpr int64_t kLongRow = 1 << 16;    // cut over threads when rows are few
constexpr int64_t kPiece = 1024;         // elements between two looks at the threshold

struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

uint32_t key_of(float v) {
  if (v != v) return ~uint32_t(0);
  const uint32_t u = std::bit_cast<uint32_t>(v + 0.0f);  // -0 becomes 0
  return u ^ (u >> 31 != 0 ? ~uint32_t(0) : uint32_t(1) << 31);
}
uint64_t key_of(double v) {
  if (v != v) return ~uint64_t(0);
  const uint64_t u = std::bit_cast<uint64_t>(v + 0.0);
  return u ^ (u >> 63 != 0 ? ~uint64_t(0) : uint64_t(1) << 63);
}
uint32_t key_of(Half v) { return key_of(f16_to_f32(v.bits)); }
uint32_t key_of(Brain v) { return key_of(bf16_to_f32(v.bits)); }
uint32_t key_of(uint8_t v) { return v; }
uint32_t key_of(uint32_t v) { return v; }
uint32_t key_of(int8_t v) { return uint32_t(int32_t(v)) ^ (uint32_t(1) << 31); }
uint32_t key_of(int16_t v) { return uint32_t(int32_t(v)) ^ (uint32_t(1) << 31); }
uint32_t key_of(int32_t v) { return uint32_t(v) ^ (uint32_t(1) << 31); }
uint64_t key_of(int64_t v) { return uint64_t(v) ^ (uint64_t(1) << 63); }

template <class Body>
auto with_type(DType dtype, const char* where, Body body) {
  switch (dtype) {
    case DType::bool_:
    case DType::u8:
      return body(uint8_t());
    case DType::i8:
      return body(int8_t());
    case DType::i16:
      return body(int16_t());
    case DType::i32:
      return body(int32_t());
    case DType::i64:
      return body(int64_t());
    case DType::u32:
      return body(uint32_t());
    case DType::f16:
      return body(Half());
    case DType::bf16:
      return body(Brain());
    case DType::f32:
      return body(float());
    case DType::f64:
      return body(double());
    default:
      throw invalid(where, ": ", dtype, " has no order");
  }
}

// Key and place; smaller keys first, of equal ones the smaller place.
struct Item32 {
  using Key = uint32_t;
  uint64_t word;
  Item32() = default;
  Item32(Key key, int64_t place) : word(uint64_t(key) << 32 | uint32_t(place)) {}
  Key key() const { return Key(word >> 32); }
  int32_t place() const { return int32_t(uint32_t(word)); }
  bool operator<(const Item32& other) const { return word < other.word; }
};
struct Item64 {
  using Key = uint64_t;
  uint64_t bits, at;
  Item64() = default;
  Item64(Key key, int64_t place) : bits(key), at(uint64_t(place)) {}
  Key key() const { return bits; }
  int32_t place() const { return int32_t(at); }
  bool operator<(const Item64& other) const { return bits != other.bits ? bits < other.bits : at < other.at; }
};
template <class T>
using ItemOf = std::conditional_t<sizeof(key_of(T())) == 4, Item32, Item64>;

// items[begin + i] = the element at place begin + i of a row whose elements lie `step` apart.
template <class T, class Item>
void make_items(const T* x, int64_t step, bool descending, int64_t begin, int64_t end, Item* items) {
  using Key = typename Item::Key;
  const Key flip = descending ? ~Key(0) : Key(0);
  for (int64_t i = begin; i < end; ++i) items[i] = Item(key_of(x[i * step]) ^ flip, i);
}

// Of the digits that make a key, the one with this number from the lowest.
template <int pass, int passes, class Key>
size_t digit_of(Key key) {
  constexpr int bits = int(sizeof(Key)) * 8, from = bits * pass / passes, to = bits * (pass + 1) / passes;
  return size_t(key >> from) & ((size_t(1) << (to - from)) - 1);
}

// Sorts by one digit, of which `counts` has the numbers of items. The result is in `items` again.
template <int pass, int passes, class Item, size_t digits>
void sort_by_digit(Item*& items, Item*& other, int64_t n, uint32_t (&counts)[digits]) {
  if (int64_t(counts[digit_of<pass, passes>(items[0].key())]) == n) return;
  uint32_t start = 0;
  for (uint32_t& count : counts) start += std::exchange(count, start);
  for (int64_t i = 0; i < n; ++i) {
    const Item item = items[i];
    other[counts[digit_of<pass, passes>(item.key())]++] = item;
  }
  std::swap(items, other);
}

template <class Item, int... pass>
Item* sort_by_digits(Item* items, Item* other, int64_t n, std::integer_sequence<int, pass...>) {
  constexpr int passes = sizeof...(pass);
  constexpr size_t digits = size_t(1) << (int(sizeof(typename Item::Key)) * 8 + passes - 1) / passes;
  uint32_t counts[passes][digits] = {};
  for (int64_t i = 0; i < n; ++i) (++counts[pass][digit_of<pass, passes>(items[i].key())], ...);
  (sort_by_digit<pass, passes>(items, other, n, counts[pass]), ...);
  return items;
}

// Sorts n items; `other` has room for as many. Returns where the result is.
template <class Item>
Item* sort_items(Item* items, Item* other, int64_t n) {
  constexpr int bytes = int(sizeof(typename Item::Key));
  if (n <= 12 * bytes) {
    std::sort(items, items + n);
    return items;
  }
  if (n <= kNarrowDigits) return sort_by_digits(items, other, n, std::make_integer_sequence<int, bytes>());
  return sort_by_digits(items, other, n, std::make_integer_sequence<int, (bytes * 8 + 10) / 11>());
}

// How many of a's items are among the first `rank` of a and b merged.
template <class Item>
int64_t merge_rank(const Item* a, int64_t na, const Item* b, int64_t nb, int64_t rank) {
  int64_t low = std::max<int64_t>(0, rank - nb), high = std::min(na, rank);
  while (low < high) {
    const int64_t i = (low + high) / 2;
    if (a[i] < b[rank - i - 1]) {
      low = i + 1;
    } else {
      high = i;
    }
  }
  return low;
}

// One long row on all threads.
template <class T, class Item>
Item* sort_row_together(Team team, const T* x, int64_t step, bool descending, int64_t n, Item* items,
                        Item* other) {
  const int threads = team.threads();
  const auto piece = [&](int64_t i) { return std::min(n, ceil_div(n, threads) * i); };
  team.run(threads, [&](int part) {
    const int64_t begin = piece(part), end = piece(part + 1);
    if (begin == end) return;
    make_items(x, step, descending, begin, end, items);
    const Item* sorted = sort_items(items + begin, other + begin, end - begin);
    if (sorted != items + begin) std::copy(sorted, sorted + (end - begin), items + begin);
  });
  for (int width = 1; width < threads; width *= 2) {
    for (int first = 0; first < threads; first += 2 * width) {
      const int64_t begin = piece(first), middle = piece(std::min(threads, first + width)),
                    end = piece(std::min(threads, first + 2 * width));
      const Item *a = items + begin, *b = items + middle;
      const int64_t na = middle - begin, nb = end - middle;
      team.run(threads, [&](int part) {
        const Range r = split_range(na + nb, 1, threads, part);
        const int64_t i = merge_rank(a, na, b, nb, r.begin), j = merge_rank(a, na, b, nb, r.end);
        std::merge(a + i, a + j, b + (r.begin - i), b + (r.end - j), other + begin + r.begin);
      });
    }
    std::swap(items, other);
  }
  return items;
}

// Results [begin, end) of one row, elements `step` apart.
template <class T, class Item>
void put_results(const Item* items, int64_t begin, int64_t end, const T* x, T* values, int32_t* indices,
                 int64_t step) {
  for (int64_t i = begin; i < end; ++i) {
    const int32_t place = items[i].place();
    if (values != nullptr) values[i * step] = x[place * step];
    if (indices != nullptr) indices[i * step] = place;
  }
}

// Row r of [outer, n, inner] begins here, its elements inner apart.
int64_t row_start(int64_t row, int64_t n, int64_t inner) { return row / inner * n * inner + row % inner; }

template <class T>
T* offset(T* p, int64_t by) {
  return p != nullptr ? p + by : nullptr;
}

bool rows_together(int threads, int64_t rows, int64_t n) {
  return n >= kLongRow && rows < threads && threads > 1;
}

int64_t rows_per_part(int64_t n) { return rows_worth(kHeavyGrain, n); }

}  // namespace

size_t sort_workspace(const Sort& p, int threads) {
  return with_type(p.dtype, "sort", [&]<class T>(T) {
    const size_t row = 2 * round_up(size_t(p.n) * sizeof(ItemOf<T>));
    const int64_t rows = p.outer * p.inner;
    // Together all sort one row at a time; fewer threads, up to one for each row, sort each their own.
    return row * size_t(rows_together(threads, rows, p.n) ? std::max<int64_t>(1, rows) : threads);
  });
}

void sort(Team team, const Sort& p, std::byte* workspace) {
  const int64_t rows = p.outer * p.inner;
  if (rows == 0 || p.n == 0) return;
  with_type(p.dtype, "sort", [&]<class T>(T) {
    using Item = ItemOf<T>;
    const T* x = static_cast<const T*>(p.x);
    T* values = static_cast<T*>(p.values);
    const size_t half = round_up(size_t(p.n) * sizeof(Item));
    const auto area = [&](int part) { return reinterpret_cast<Item*>(workspace + 2 * half * size_t(part)); };
    const auto second = [&](Item* first) {
      return reinterpret_cast<Item*>(reinterpret_cast<std::byte*>(first) + half);
    };
    if (rows_together(team.threads(), rows, p.n)) {
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t at = row_start(row, p.n, p.inner);
        const Item* sorted =
            sort_row_together(team, x + at, p.inner, p.descending, p.n, area(0), second(area(0)));
        team.parallel_for(p.n, kHeavyGrain, [&](int64_t b, int64_t e) {
          put_results(sorted, b, e, x + at, offset(values, at), offset(p.indices, at), p.inner);
        });
      }
      return;
    }
    const int parts = int(std::min<int64_t>(team.threads(), ceil_div(rows, rows_per_part(p.n))));
    team.run(parts, [&](int part) {
      const Range r = split_range(rows, 1, parts, part);
      for (int64_t row = r.begin; row < r.end; ++row) {
        const int64_t at = row_start(row, p.n, p.inner);
        Item* items = area(part);
        make_items(x + at, p.inner, p.descending, 0, p.n, items);
        const Item* sorted = sort_items(items, second(items), p.n);
        put_results(sorted, 0, p.n, x + at, offset(values, at), offset(p.indices, at), p.inner);
      }
    });
  });
}

namespace {

// Candidates of the k largest: items with complemented keys, so that the best come first.
int64_t candidate_room(int64_t n, int64_t k) { return std::min(n, 2 * k + kPiece) + kPiece; }

template <class Item>
void keep_best(Item* items, int64_t count, int64_t k) {
  std::nth_element(items, items + k - 1, items + count);
}

// The k largest of a contiguous row of f32, in order, as items.
void largest(const float* x, int64_t n, int64_t k, Item32* items, int32_t* places) {
  if (k == 0) return;
  const auto above = order_kernels().above;
  float threshold = NAN;  // nothing compares with it: all pass
  int64_t count = 0;
  for (int64_t at = 0; at < n; at += kPiece) {
    const int64_t passed = above(x + at, std::min(kPiece, n - at), threshold, places);
    for (int64_t i = 0; i < passed; ++i) {
      const int64_t place = at + places[i];
      items[count++] = Item32(~key_of(x[place]), place);
    }
    if (count < k || (count < 2 * k && threshold == threshold)) continue;
    keep_best(items, count, k);
    count = k;
    threshold = x[items[k - 1].place()];
    if (threshold != threshold) break;  // k NaN were found
  }
  if (count > k) keep_best(items, count, k);
  std::sort(items, items + k);
}

template <class T>
void largest_of(const T* x, int64_t step, int64_t n, int64_t k, ItemOf<T>* items) {
  if (k == 0) return;
  make_items(x, step, true, 0, n, items);
  keep_best(items, n, k);
  std::sort(items, items + k);
}

constexpr size_t kPlaces = size_t(kPiece + 16) * sizeof(int32_t);

template <class T>
size_t top_k_row_bytes(const TopK& p) {
  const bool pieces = std::is_same_v<T, float> && p.inner == 1;
  return round_up(size_t(pieces ? candidate_room(p.n, p.k) : p.n) * sizeof(ItemOf<T>)) + round_up(kPlaces);
}

}  // namespace

size_t top_k_workspace(const TopK& p, int threads) {
  return with_type(p.dtype, "top_k", [&]<class T>(T) { return size_t(threads) * top_k_row_bytes<T>(p); });
}

void top_k(Team team, const TopK& p, std::byte* workspace) {
  if (p.k < 0 || p.k > p.n) throw invalid("top_k: k is ", p.k, "; it must be between 0 and ", p.n);
  const int64_t rows = p.outer * p.inner;
  with_type(p.dtype, "top_k", [&]<class T>(T) {
    const int parts = int(std::min<int64_t>(team.threads(), ceil_div(rows, rows_per_part(p.n))));
    team.run(parts, [&](int part) {
      std::byte* area = workspace + size_t(part) * top_k_row_bytes<T>(p);
      auto* places = reinterpret_cast<int32_t*>(area);
      auto* items = reinterpret_cast<ItemOf<T>*>(area + round_up(kPlaces));
      const Range r = split_range(rows, 1, parts, part);
      for (int64_t row = r.begin; row < r.end; ++row) {
        const T* x = static_cast<const T*>(p.x) + row_start(row, p.n, p.inner);
        const int64_t to = row_start(row, p.k, p.inner);
        if constexpr (std::is_same_v<T, float>) {
          if (p.inner == 1) {
            largest(x, p.n, p.k, items, places);
          } else {
            largest_of(x, p.inner, p.n, p.k, items);
          }
        } else {
          largest_of(x, p.inner, p.n, p.k, items);
        }
        put_results(items, 0, p.k, x, offset(static_cast<T*>(p.values), to), offset(p.indices, to), p.inner);
      }
    });
  });
}

namespace {

// Work of one thread: the scaled row, its exponentials, candidates.
struct SampleWork {
  float *scaled, *weights;
  int32_t* places;
  Item32* items;

  static size_t bytes(int64_t n) {
    return 2 * round_up(size_t(n) * 4) + round_up(kPlaces) +
           round_up(size_t(candidate_room(n, n)) * sizeof(Item32));
  }
  SampleWork(std::byte* area, int64_t n) {
    const size_t row = round_up(size_t(n) * 4);
    scaled = reinterpret_cast<float*>(area);
    weights = reinterpret_cast<float*>(area + row);
    places = reinterpret_cast<int32_t*>(area + 2 * row);
    items = reinterpret_cast<Item32*>(area + 2 * row + round_up(kPlaces));
  }
};

// The first i with point < weight[0] + ... + weight[i]; 0 when there is none. Whole pieces are passed over by
// their sums.
int64_t first_beyond(const float* weights, int64_t n, double point) {
  const auto sum = order_kernels().sum;
  double running = 0;
  for (int64_t at = 0; at < n; at += kPiece) {
    const int64_t length = std::min(kPiece, n - at);
    const double after = running + sum(weights + at, length);
    if (!(point < after)) {
      running = after;
      continue;
    }
    int64_t last = at;
    for (int64_t i = at; i < at + length; ++i) {
      if (weights[i] > 0) last = i;
      running += double(weights[i]);
      if (point < running) return i;
    }
    return last;  // the two sums round differently
  }
  return 0;
}

int64_t draw_token(const SampleTokens& p, const float* logits, float u, const SampleWork& work) {
  const OrderKernels& kernel = order_kernels();
  if (p.temperature == 0) return kernel.argmax(logits, p.n);
  const float* x = logits;
  if (p.temperature != 1) {
    kernel.divide(logits, float(p.temperature), work.scaled, p.n);
    x = work.scaled;
  }
  const bool cut = p.top_k > 0 && p.top_k < p.n;
  const float top = x[kernel.argmax(x, p.n)];
  double total = 0;
  if (!cut) {
    kernel.exponentials(x, top, work.weights, p.n);
    total = kernel.sum(work.weights, p.n);
    if (!(total > 0)) return 0;  // NaN
    if (p.top_p == 1) return first_beyond(work.weights, p.n, double(u) * total);
  }
  // The largest in order, as many as asked for, or enough to hold the mass asked for.
  int64_t kept = 0;
  for (int64_t k = cut ? p.top_k : std::min<int64_t>(p.n, 64);; k = std::min(p.n, 8 * k)) {
    largest(x, p.n, k, work.items, work.places);
    for (int64_t i = 0; i < k && cut; ++i) total += std::exp(double(x[work.items[i].place()]) - double(top));
    if (!(total > 0)) return 0;
    double mass = 0;
    for (kept = 0; kept < k && mass < p.top_p * total; ++kept)
      mass += std::exp(double(x[work.items[kept].place()]) - double(top));
    if (cut || k == p.n || mass >= p.top_p * total) break;
  }
  std::sort(work.items, work.items + kept, [](Item32 a, Item32 b) { return a.place() < b.place(); });
  for (int64_t i = 0; i < kept; ++i) work.weights[i] = x[work.items[i].place()];
  kernel.exponentials(work.weights, top, work.weights, kept);
  const double sum = kernel.sum(work.weights, kept);
  return work.items[first_beyond(work.weights, kept, double(u) * sum)].place();
}

}  // namespace

size_t sample_tokens_workspace(const SampleTokens& p, int threads) {
  return size_t(threads) * SampleWork::bytes(p.n);
}

void sample_tokens(Team team, const SampleTokens& p, std::byte* workspace) {
  if (p.n < 1 || !(p.temperature >= 0) || !(p.top_p > 0 && p.top_p <= 1) || p.top_k < 0) {
    throw invalid("sample_tokens: vocabulary ", p.n, ", temperature ", p.temperature, ", top_p ", p.top_p,
                  ", top_k ", p.top_k,
                  "; there must be a token, a temperature and top_k not negative, and 0 < top_p <= 1");
  }
  const int parts = int(std::min<int64_t>(team.threads(), ceil_div(p.rows, rows_per_part(p.n))));
  team.run(parts, [&](int part) {
    const SampleWork work(workspace + size_t(part) * SampleWork::bytes(p.n), p.n);
    const Range r = split_range(p.rows, 1, parts, part);
    for (int64_t row = r.begin; row < r.end; ++row) {
      const auto word = philox_block(p.key, p.counter, uint64_t(row) / 4)[uint64_t(row) % 4];
      p.tokens[row] = int32_t(draw_token(p, p.logits + row * p.stride, uniform_from_bits(word), work));
    }
  });
}

}  // namespace rlx::cpu
