#include "rlx/backend/cpu/kernels/quant_product.h"

#include <cstring>

#include "rlx/backend/cpu/isa_table.h"
#include "rlx/backend/cpu/kernels/quant_layout.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"
#include "rlx/quant/k_quants.h"
#include "rlx/quant/linear32.h"

namespace rlx::cpu {

RLX_ISA_TABLE(QuantProductKernels, quant_product_kernels)

namespace {

// One row of one block, taken apart: words of codes, small scales, halves, in the order of quant_layout.h.
struct Pieces {
  uint8_t words[192];
  uint8_t scales[16];
  quant::Half halves[2];
};

template <class Block>
const Block& as(const std::byte* p) {
  return *reinterpret_cast<const Block*>(p);
}
template <class Block>
Block& as(std::byte* p) {
  return *reinterpret_cast<Block*>(p);
}

void take_apart(QuantKind kind, const std::byte* block, Pieces& p) {
  switch (kind) {
    case QuantKind::q4_0: {
      const auto& b = as<quant::BlockQ4_0>(block);
      std::memcpy(p.words, b.codes, 16);
      p.halves[0] = b.d;
      return;
    }
    case QuantKind::q8_0: {
      const auto& b = as<quant::BlockQ8_0>(block);
      for (int i = 0; i < 32; ++i) p.words[i] = uint8_t(b.codes[i]) ^ 0x80;
      p.halves[0] = b.d;
      return;
    }
    case QuantKind::q4_k: {
      const auto& b = as<quant::BlockQ4_K>(block);
      std::memcpy(p.words, b.codes, 128);
      const quant::ScalesAndMins s = quant::unpack_scales_q4_k(b.scales);
      std::memcpy(p.scales, s.scale, 8);
      std::memcpy(p.scales + 8, s.min, 8);
      p.halves[0] = b.d;
      p.halves[1] = b.dmin;
      return;
    }
    case QuantKind::q6_k: {
      const auto& b = as<quant::BlockQ6_K>(block);
      std::memcpy(p.words, b.low, 128);
      std::memcpy(p.words + 128, b.high, 64);
      std::memcpy(p.scales, b.scales, 16);
      p.halves[0] = b.d;
      return;
    }
  }
}

void put_together(QuantKind kind, const Pieces& p, std::byte* block) {
  switch (kind) {
    case QuantKind::q4_0: {
      auto& b = as<quant::BlockQ4_0>(block);
      std::memcpy(b.codes, p.words, 16);
      b.d = p.halves[0];
      return;
    }
    case QuantKind::q8_0: {
      auto& b = as<quant::BlockQ8_0>(block);
      for (int i = 0; i < 32; ++i) b.codes[i] = int8_t(p.words[i] ^ 0x80);
      b.d = p.halves[0];
      return;
    }
    case QuantKind::q4_k: {
      auto& b = as<quant::BlockQ4_K>(block);
      std::memcpy(b.codes, p.words, 128);
      quant::ScalesAndMins s;
      std::memcpy(s.scale, p.scales, 8);
      std::memcpy(s.min, p.scales + 8, 8);
      quant::pack_scales_q4_k(s, b.scales);
      b.d = p.halves[0];
      b.dmin = p.halves[1];
      return;
    }
    case QuantKind::q6_k: {
      auto& b = as<quant::BlockQ6_K>(block);
      std::memcpy(b.low, p.words, 128);
      std::memcpy(b.high, p.words + 128, 64);
      std::memcpy(b.scales, p.scales, 16);
      b.d = p.halves[0];
      return;
    }
  }
}

// Moves the pieces of lane `lane` between the group block at `at` and `p`.
template <class Move>
void each_piece(const QuantLayout& l, int lanes, int lane, std::byte* at, Pieces& p, Move move) {
  for (int w = 0; w < l.words; ++w) move(at + (w * lanes + lane) * 4, &p.words[4 * w], 4);
  at += 4 * l.words * lanes;
  for (int s = 0; s < l.scale_bytes; ++s) move(at + s * lanes + lane, &p.scales[s], 1);
  at += l.scale_bytes * lanes;
  for (int h = 0; h < l.halves; ++h) move(at + (h * lanes + lane) * 2, &p.halves[h], 2);
}

struct Format {
  std::string_view name;
  QuantKind kind;
};
constexpr Format kFormats[] = {{"q4_0", QuantKind::q4_0},
                               {"q8_0", QuantKind::q8_0},
                               {"q4_k", QuantKind::q4_k},
                               {"q6_k", QuantKind::q6_k}};

const quant::BlockFormat& format_of_kind(QuantKind kind) {
  return *quant::find_format(kFormats[size_t(kind)].name);
}

QuantRows rows_in(const QuantProduct& p, std::byte* workspace) {
  const int64_t k = p.w->k();
  const size_t codes = round_up(size_t(p.m * k / 4) * quant_product_kernels().word_bytes);
  const size_t scales = round_up(size_t(p.m * k / 32) * 4);
  return {workspace, reinterpret_cast<float*>(workspace + codes),
          reinterpret_cast<int32_t*>(workspace + codes + scales), p.m, k};
}

}  // namespace

const QuantKind* QuantMatrix::kind_of(const quant::BlockFormat& f) {
  for (const Format& row : kFormats) {
    if (row.name == f.name) return &row.kind;
  }
  return nullptr;
}

QuantMatrix QuantMatrix::pack(Team team, const quant::BlockFormat& format, const std::byte* rows, int64_t n,
                              int64_t k) {
  const QuantKind* kind = kind_of(format);
  if (kind == nullptr) {
    throw invalid("quant_product: no packed product for format ", format.name,
                  "; it has q4_0, q8_0, q4_k, q6_k");
  }
  if (k % format.elements != 0) {
    throw invalid("quant_product: rows of ", k, " elements are not whole blocks of ", format.name,
                  ", which has ", format.elements, " elements");
  }
  QuantMatrix m;
  m.n_ = n;
  m.k_ = k;
  m.kind_ = *kind;
  m.lanes_ = quant_product_kernels().lanes;
  const QuantLayout layout = quant_layout(*kind);
  const int64_t blocks = k / layout.elements, groups = ceil_div(n, m.lanes_);
  const int64_t group_block = layout.bytes_per_row() * m.lanes_;
  m.size_ = size_t(groups * blocks * group_block);
  m.bytes_ = allocate_aligned(m.size_);
  std::memset(m.bytes_.get(), 0, m.size_);
  team.parallel_for(groups, 1, [&](int64_t begin, int64_t end) {
    Pieces p;
    for (int64_t row = begin * m.lanes_; row < std::min(n, end * m.lanes_); ++row) {
      for (int64_t b = 0; b < blocks; ++b) {
        take_apart(*kind, rows + (row * blocks + b) * format.bytes, p);
        each_piece(
            layout, m.lanes_, int(row % m.lanes_),
            m.bytes_.get() + (row / m.lanes_ * blocks + b) * group_block, p,
            [](std::byte* packed, const void* piece, size_t bytes) { std::memcpy(packed, piece, bytes); });
      }
    }
  });
  return m;
}

void QuantMatrix::unpack_row(int64_t row, std::byte* out) const {
  const QuantLayout layout = quant_layout(kind_);
  const int64_t blocks = k_ / layout.elements, group_block = layout.bytes_per_row() * lanes_;
  const int bytes = format_of_kind(kind_).bytes;
  Pieces p;
  for (int64_t b = 0; b < blocks; ++b) {
    each_piece(layout, lanes_, int(row % lanes_), bytes_.get() + (row / lanes_ * blocks + b) * group_block, p,
               [](const std::byte* packed, void* piece, size_t size) { std::memcpy(piece, packed, size); });
    put_together(kind_, p, out + b * bytes);
  }
}

size_t quant_product_workspace(const QuantProduct& p) {
  const int64_t k = p.w->k();
  return round_up(size_t(p.m * k / 4) * quant_product_kernels().word_bytes) +
         round_up(size_t(p.m * k / 32) * 4) + round_up(size_t(p.m * k / 16) * 4);
}

void quant_product(Team team, const QuantProduct& p, std::byte* workspace) {
  const QuantProductKernels& k = quant_product_kernels();
  RLX_CHECK(p.w->lanes() == k.lanes, "packed at another level");
  if (p.m == 0 || p.w->n() == 0) return;
  const QuantRows rows = rows_in(p, workspace);
  team.parallel_for(p.m, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, p.w->k())),
                    [&](int64_t begin, int64_t end) { k.round_rows(p.x, p.x_stride, rows, begin, end); });
  const int64_t groups = ceil_div(p.w->n(), k.lanes);
  const double work = double(p.m) * double(p.w->n()) * double(p.w->k());
  const int64_t pieces = team.threads() * (work > 4e7 ? 6 : 1);
  team.parallel_chunks(groups, std::max<int64_t>(1, ceil_div(groups, pieces)),
                       [&](int64_t begin, int64_t end) { k.multiply(p, rows, begin, end); });
}

}  // namespace rlx::cpu
