#include "rlx/backend/cpu/kernels/fft.h"

#include "rlx/backend/cpu/kernels/fft_plan.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"

namespace rlx::cpu {
namespace {

// Vectors of work below which a second thread costs more than it brings.
constexpr int64_t kSerialVectors = 512;

template <class T>
size_t bytes_of(int64_t elements) {
  return round_up(size_t(elements) * sizeof(T));
}

/// Fft with types.
template <class T>
struct Rows {
  const FftPlan* plan;
  bool inverse;
  T scale;
  int64_t rows;
  const T *x_re, *x_im;
  int64_t x_stride, x_row;
  T *y_re, *y_im;
  int64_t y_stride, y_row;
  bool alone = false;
};

template <class T>
Rows<T> typed(const Fft& p) {
  return {p.plan,
          p.inverse,
          T(p.scale),
          p.rows,
          static_cast<const T*>(p.x_re),
          static_cast<const T*>(p.x_im),
          p.x_stride,
          p.x_row_stride,
          static_cast<T*>(p.y_re),
          static_cast<T*>(p.y_im),
          p.y_stride,
          p.y_row_stride,
          p.alone};
}

// Contiguous split arrays in working memory as a row.
template <class T>
Rows<T> row_in_place(const FftPlan& plan, bool inverse, T* re, T* im) {
  return {&plan, inverse, T(1), 1, re, im, 1, 0, re, im, 1, 0};
}

/// Rows that run at the same time, each with memory of its own; the threads a row may use itself.
struct Slots {
  int slots, threads;
};
Slots slots_for(int64_t rows, int threads) {
  if (rows >= threads) return {threads, 1};
  return {1, threads};
}

/// body(row, team for the inside, slot).
template <class Body>
void each_row(Team team, int64_t rows, Body body) {
  const Slots s = slots_for(rows, team.threads());
  if (s.slots == 1) {
    for (int64_t row = 0; row < rows; ++row) body(row, team, 0);
    return;
  }
  team.run(s.slots, [&](int part) {
    const Range r = split_range(rows, 1, s.slots, part);
    for (int64_t row = r.begin; row < r.end; ++row) body(row, team.limited(1), part);
  });
}

template <class T>
FftBlock<T> block_of(const FftFactors& f, const FftPasses& passes) {
  return {.m = passes.m,
          .stages = passes.stages.data(),
          .stage_count = int(passes.stages.size()),
          .factors = reinterpret_cast<const T*>(f.factors.get())};
}

bool runs_direct(const FftFactors& f, int64_t rows, bool alone) {
  return f.direct.m != 0 && (f.columns.m == 0 || (!alone && 2 * rows >= f.lanes));
}

// ---- direct ----

template <class T>
size_t direct_workspace(const FftFactors& f, int threads) {
  return size_t(threads) * bytes_of<T>(4 * f.direct.m * f.lanes);
}

template <class T>
void run_direct(Team team, const Rows<T>& p, const FftFactors& f, std::byte* workspace) {
  const auto run = fft_kernels_of<T>().block;
  const int64_t blocks = ceil_div(p.rows, f.lanes), n = f.direct.m;
  const int parts = int(
      std::min<int64_t>(team.threads(), ceil_div(blocks, std::max<int64_t>(1, kSerialVectors / (4 * n)))));
  team.run(parts, [&](int part) {
    const Range r = split_range(blocks, 1, parts, part);
    FftBlock<T> b = block_of<T>(f, f.direct);
    b.work = reinterpret_cast<T*>(workspace + size_t(part) * bytes_of<T>(4 * n * f.lanes));
    b.x_step = p.x_stride, b.x_lane = p.x_row;
    b.y_step = p.y_stride, b.y_lane = p.y_row;
    b.swap_in = b.swap_out = p.inverse;
    b.scale = p.scale;
    for (int64_t i = r.begin; i < r.end; ++i) {
      const int64_t row = i * f.lanes;
      b.lanes = int(std::min<int64_t>(f.lanes, p.rows - row));
      b.x_re = p.x_re + row * p.x_row;
      b.x_im = p.x_im != nullptr ? p.x_im + row * p.x_row : nullptr;
      b.y_re = p.y_re + row * p.y_row;
      b.y_im = p.y_im != nullptr ? p.y_im + row * p.y_row : nullptr;
      run(b);
    }
  });
}

// ---- split ----

template <class T>
size_t split_block_bytes(const FftFactors& f) {
  return bytes_of<T>(4 * std::max(f.columns.m, f.rows.m) * f.lanes);
}
template <class T>
size_t split_matrix_bytes(const FftFactors& f) {
  return 2 * bytes_of<T>(f.columns.m * f.pitch);
}
template <class T>
size_t split_workspace(const FftFactors& f, int64_t rows, int threads) {
  const Slots s = slots_for(rows, threads);
  return size_t(s.slots) * split_matrix_bytes<T>(f) + size_t(threads) * split_block_bytes<T>(f);
}

// body(first lane, block) for all blocks of lanes of one step.
template <class T, class Body>
void each_block(Team team, const FftBlock<T>& step, int64_t count, int lanes, std::byte* work,
                size_t work_bytes, Body body) {
  const int64_t blocks = ceil_div(count, lanes);
  const int parts = int(std::min<int64_t>(team.threads(), ceil_div(blocks * 4 * step.m, kSerialVectors)));
  team.run(std::min<int>(parts, int(blocks)), [&](int part) {
    const Range r = split_range(blocks, 1, std::min<int>(parts, int(blocks)), part);
    FftBlock<T> b = step;
    b.work = reinterpret_cast<T*>(work + size_t(part) * work_bytes);
    for (int64_t i = r.begin; i < r.end; ++i) {
      b.lanes = int(std::min<int64_t>(lanes, count - i * lanes));
      body(i * lanes, b);
    }
  });
}

template <class T>
void run_split(Team team, const Rows<T>& p, const FftFactors& f, std::byte* workspace) {
  const auto run = fft_kernels_of<T>().block;
  const Slots s = slots_for(p.rows, team.threads());
  const int64_t m = f.columns.m, b = f.rows.m;
  std::byte* blocks = workspace + size_t(s.slots) * split_matrix_bytes<T>(f);
  each_row(team, p.rows, [&](int64_t row, Team inner, int slot) {
    T* re = reinterpret_cast<T*>(workspace + size_t(slot) * split_matrix_bytes<T>(f));
    T* im = reinterpret_cast<T*>(reinterpret_cast<std::byte*>(re) + split_matrix_bytes<T>(f) / 2);
    std::byte* work = blocks + size_t(slot) * split_block_bytes<T>(f);
    FftBlock<T> columns = block_of<T>(f, f.columns);
    columns.x_step = b * p.x_stride, columns.x_lane = p.x_stride;
    columns.y_step = f.pitch, columns.y_lane = 1;
    columns.swap_in = p.inverse;
    const T* x_re = p.x_re + row * p.x_row;
    const T* x_im = p.x_im != nullptr ? p.x_im + row * p.x_row : nullptr;
    each_block(inner, columns, b, f.lanes, work, split_block_bytes<T>(f), [&](int64_t at, FftBlock<T>& k) {
      k.x_re = x_re + at * p.x_stride;
      k.x_im = x_im != nullptr ? x_im + at * p.x_stride : nullptr;
      k.y_re = re + at, k.y_im = im + at;
      run(k);
    });
    FftBlock<T> rows = block_of<T>(f, f.rows);
    rows.x_step = 1, rows.x_lane = f.pitch;
    rows.y_step = m * p.y_stride, rows.y_lane = p.y_stride;
    rows.swap_out = p.inverse;
    rows.scale = p.scale;
    T* y_re = p.y_re + row * p.y_row;
    T* y_im = p.y_im != nullptr ? p.y_im + row * p.y_row : nullptr;
    each_block(inner, rows, m, f.lanes, work, split_block_bytes<T>(f), [&](int64_t at, FftBlock<T>& k) {
      k.x_re = re + at * f.pitch, k.x_im = im + at * f.pitch;
      k.y_re = y_re + at * p.y_stride;
      k.y_im = y_im != nullptr ? y_im + at * p.y_stride : nullptr;
      k.twist = reinterpret_cast<const T*>(f.twist.get()) + at * b * 2;
      run(k);
    });
  });
}

// ---- chirp and real: rows in working memory, transformed by the inner plan ----

template <class T>
size_t run_workspace(const FftPlan& plan, int64_t rows, int threads, bool alone);
template <class T>
void run_complex(Team team, const Rows<T>& p, std::byte* workspace);

/// Memory of a slot: two arrays of `length`, then the workspace of the inner plan.
template <class T>
size_t staged_slot_bytes(const FftPlan& inner, int64_t length, int threads) {
  return 2 * bytes_of<T>(length) + run_workspace<T>(inner, 1, threads, false);
}
template <class T>
size_t staged_workspace(const FftPlan& inner, int64_t length, int64_t rows, int threads) {
  const Slots s = slots_for(rows, threads);
  return size_t(s.slots) * staged_slot_bytes<T>(inner, length, s.threads);
}

/// body(row, inner team, re, im, workspace of the inner plan).
template <class T, class Body>
void each_staged_row(Team team, const FftPlan& inner, int64_t length, int64_t rows, std::byte* workspace,
                     Body body) {
  const size_t bytes = staged_slot_bytes<T>(inner, length, slots_for(rows, team.threads()).threads);
  each_row(team, rows, [&](int64_t row, Team inside, int slot) {
    std::byte* at = workspace + size_t(slot) * bytes;
    body(row, inside, reinterpret_cast<T*>(at), reinterpret_cast<T*>(at + bytes_of<T>(length)),
         at + 2 * bytes_of<T>(length));
  });
}

template <class T>
void run_chirp(Team team, const Rows<T>& p, const FftFactors& f, std::byte* workspace) {
  const auto multiply = fft_kernels_of<T>().multiply;
  const int64_t n = p.plan->n(), length = f.inner->n();
  const T* w = reinterpret_cast<const T*>(f.chirp.get());
  const T* kernel = reinterpret_cast<const T*>(f.kernel.get());
  each_staged_row<T>(team, *f.inner, length, p.rows, workspace,
                     [&](int64_t row, Team inside, T* re, T* im, std::byte* scratch) {
                       T* first = p.inverse ? im : re;
                       T* second = p.inverse ? re : im;
                       for (int64_t i = 0; i < n; ++i) {
                         first[i] = p.x_re[row * p.x_row + i * p.x_stride];
                         second[i] = p.x_im != nullptr ? p.x_im[row * p.x_row + i * p.x_stride] : T(0);
                       }
                       std::fill(re + n, re + length, T(0));
                       std::fill(im + n, im + length, T(0));
                       multiply(re, im, w, w + n, n, re, im);
                       run_complex(inside, row_in_place(*f.inner, false, re, im), scratch);
                       multiply(re, im, kernel, kernel + length, length, re, im);
                       run_complex(inside, row_in_place(*f.inner, true, re, im), scratch);
                       multiply(re, im, w, w + n, n, re, im);
                       for (int64_t i = 0; i < n; ++i) {
                         p.y_re[row * p.y_row + i * p.y_stride] = first[i] * p.scale;
                         if (p.y_im != nullptr) p.y_im[row * p.y_row + i * p.y_stride] = second[i] * p.scale;
                       }
                     });
}

// Even n: pairs of neighbours are the real and imaginary parts of n/2 numbers.
template <class T>
void run_even(Team team, const Rows<T>& p, const FftFactors& f, std::byte* workspace) {
  const auto& k = fft_kernels_of<T>();
  const int64_t h = p.plan->n() / 2;
  const T* w = reinterpret_cast<const T*>(f.halves.get());
  each_staged_row<T>(team, *f.inner, h, p.rows, workspace,
                     [&](int64_t row, Team inside, T* re, T* im, std::byte* scratch) {
                       Rows<T> packed = row_in_place(*f.inner, p.inverse, re, im);
                       packed.scale = p.scale;
                       FftHalves<T> ends{.h = h, .w_re = w, .w_im = w + h + 1};
                       if (!p.inverse) {
                         packed.x_re = p.x_re + row * p.x_row, packed.x_im = packed.x_re + p.x_stride;
                         packed.x_stride = 2 * p.x_stride;
                         run_complex(inside, packed, scratch);
                         ends.x_re = re, ends.x_im = im;
                         ends.y_re = p.y_re + row * p.y_row, ends.y_im = p.y_im + row * p.y_row;
                         ends.y_stride = p.y_stride;
                         k.unpack(ends);
                       } else {
                         ends.x_re = p.x_re + row * p.x_row, ends.x_im = p.x_im + row * p.x_row;
                         ends.x_stride = p.x_stride;
                         ends.y_re = re, ends.y_im = im;
                         k.pack(ends);
                         packed.y_re = p.y_re + row * p.y_row, packed.y_im = packed.y_re + p.y_stride;
                         packed.y_stride = 2 * p.y_stride;
                         run_complex(inside, packed, scratch);
                       }
                     });
}

// Odd n: the whole spectrum is made, then half of it kept, or rebuilt from its half.
template <class T>
void run_odd(Team team, const Rows<T>& p, const FftFactors& f, std::byte* workspace) {
  const int64_t n = p.plan->n(), bins = n / 2 + 1;
  each_staged_row<T>(team, *f.inner, n, p.rows, workspace,
                     [&](int64_t row, Team inside, T* re, T* im, std::byte* scratch) {
                       const T* x_re = p.x_re + row * p.x_row;
                       T* y_re = p.y_re + row * p.y_row;
                       Rows<T> whole = row_in_place(*f.inner, p.inverse, re, im);
                       whole.scale = p.scale;
                       if (!p.inverse) {
                         whole.x_re = x_re, whole.x_im = nullptr, whole.x_stride = p.x_stride;
                         run_complex(inside, whole, scratch);
                         for (int64_t i = 0; i < bins; ++i) {
                           y_re[i * p.y_stride] = re[i];
                           p.y_im[row * p.y_row + i * p.y_stride] = im[i];
                         }
                       } else {
                         const T* x_im = p.x_im + row * p.x_row;
                         for (int64_t i = 0; i < bins; ++i) {
                           re[i] = re[(n - i) % n] = x_re[i * p.x_stride];
                           im[i] = i == 0 ? T(0) : x_im[i * p.x_stride];
                           if (i > 0) im[n - i] = -im[i];
                         }
                         whole.y_re = y_re, whole.y_im = nullptr, whole.y_stride = p.y_stride;
                         run_complex(inside, whole, scratch);
                       }
                     });
}

template <class T>
size_t run_workspace(const FftPlan& plan, int64_t rows, int threads, bool alone) {
  const FftFactors& f = plan.factors();
  if (plan.kind() == FftKind::real) return staged_workspace<T>(*f.inner, f.inner->n(), rows, threads);
  if (f.inner != nullptr) return staged_workspace<T>(*f.inner, f.inner->n(), rows, threads);
  return runs_direct(f, rows, alone) ? direct_workspace<T>(f, threads) : split_workspace<T>(f, rows, threads);
}

template <class T>
void run_complex(Team team, const Rows<T>& p, std::byte* workspace) {
  const FftFactors& f = p.plan->factors();
  if (f.inner != nullptr) {
    run_chirp(team, p, f, workspace);
  } else if (runs_direct(f, p.rows, p.alone)) {
    run_direct(team, p, f, workspace);
  } else {
    run_split(team, p, f, workspace);
  }
}

template <class T>
void run(Team team, const Rows<T>& p, std::byte* workspace) {
  const FftFactors& f = p.plan->factors();
  RLX_CHECK(f.lanes == fft_kernels_of<T>().lanes, "an fft plan of another level");
  if (p.rows <= 0) return;
  if (p.plan->kind() == FftKind::complex) return run_complex(team, p, workspace);
  RLX_CHECK(p.inverse ? p.x_im != nullptr : p.y_im != nullptr, "a real fft without imaginary parts");
  if (p.plan->n() % 2 == 0) {
    run_even(team, p, f, workspace);
  } else {
    run_odd(team, p, f, workspace);
  }
}

}  // namespace

size_t fft_workspace(const Fft& p, int threads) {
  return p.plan->dtype() == DType::f32 ? run_workspace<float>(*p.plan, p.rows, threads, p.alone)
                                       : run_workspace<double>(*p.plan, p.rows, threads, p.alone);
}

void fft(Team team, const Fft& p, std::byte* workspace) {
  if (p.plan->dtype() == DType::f32) {
    run(team, typed<float>(p), workspace);
  } else {
    run(team, typed<double>(p), workspace);
  }
}

}  // namespace rlx::cpu
