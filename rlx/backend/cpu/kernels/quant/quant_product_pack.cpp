// Between encoded blocks, or the operands of a scheme, and packed groups. A format is a row of kSources:
// where its codes and scales lie. Only scales packed in six bits and base-3 digits need code of their own;
// codebook formats have theirs in quant_product_pack_grid.cpp.
#include "rlx/backend/cpu/kernels/quant/quant_product_pack.h"

#include <cstring>

#include "rlx/backend/cpu/kernels/quant/quant_product.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/base/error.h"
#include "rlx/base/text.h"
#include "rlx/quant/iq4.h"
#include "rlx/quant/k_quants.h"
#include "rlx/quant/ternary.h"

namespace rlx::cpu {
namespace {

// Bits of codes within a block: element e takes `bits` bits of byte offset + e / span * stride + e % stride,
// from bit bits * (e % span / stride) on; they become the bits from `at` on of the code.
struct Plane {
  int offset, bits, span, stride, at = 0;
};

constexpr Plane kNone{0, 0, 256, 256};

enum class Scales : uint8_t { plain, q3_k, q4_k, iq4_xs };

struct Source {
  std::string_view name;
  QuantKind kind;
  Plane low = kNone, high = kNone;  // high.bits == 0: none; low.bits == 0: base-3 digits
  int halves_at = 0;                // one after the other
  int bytes_at = 0;
  Scales scales = Scales::plain;
  int flip = 0;  // exclusive or of each code: signed bytes become unsigned
};

constexpr Plane nibbles32(int offset) { return {offset, 4, 32, 16}; }
constexpr Plane bits32(int offset) { return {offset, 1, 8, 1, 4}; }
constexpr Plane pairs128(int offset, int at = 0) { return {offset, 2, 128, 32, at}; }

using K = QuantKind;
constexpr Source kSources[] = {
    {"q4_0", K::q4_0, nibbles32(2), kNone, 0, 0},
    {"q4_1", K::q4_1, nibbles32(4), kNone, 0, 0},
    {"q5_0", K::q5_0, nibbles32(6), bits32(2), 0, 0},
    {"q5_1", K::q5_1, nibbles32(8), bits32(4), 0, 0},
    {"q8_0", K::q8_0, {2, 8, 1, 1}, kNone, 0, 0, Scales::plain, 0x80},
    {"q2_k", K::q2_k, pairs128(16), kNone, 80, 0},
    {"q3_k", K::q3_k, pairs128(32), {0, 1, 256, 32, 2}, 108, 96, Scales::q3_k},
    {"q4_k", K::q4_k, {16, 4, 64, 32}, kNone, 0, 4, Scales::q4_k},
    {"q5_k", K::q5_k, {48, 4, 64, 32}, {16, 1, 256, 32, 4}, 0, 4, Scales::q4_k},
    {"q6_k", K::q6_k, {0, 4, 128, 64}, pairs128(128, 4), 208, 192},
    {"iq4_nl", K::iq4_nl, nibbles32(2), kNone, 0, 0},
    {"iq4_xs", K::iq4_xs, nibbles32(8), kNone, 0, 2, Scales::iq4_xs},
    {"mxfp4", K::mxfp4, nibbles32(1), kNone, 0, 0},
    {"nvfp4", K::nvfp4, {4, 4, 16, 8}, kNone, 0, 0},
    {"tq1_0", K::tq1_0, kNone, kNone, 52, 0},
    {"tq2_0", K::tq2_0, pairs128(0), kNone, 64, 0},
    {"iq1_s", K::iq1_s},
    {"iq1_m", K::iq1_m},
    {"iq2_xxs", K::iq2_xxs},
    {"iq2_xs", K::iq2_xs},
    {"iq2_s", K::iq2_s},
    {"iq3_xxs", K::iq3_xxs},
    {"iq3_s", K::iq3_s},
};

// One row of one block: a code for each element, and the head in the order of quant_layout.h.
struct Pieces {
  uint8_t codes[256];
  uint8_t halves[4];
  uint8_t bytes[16];
  float floats[4];
};

// visit(element, byte, shift) for the elements of a block.
template <class Visit>
void each_code(const Plane& p, int elements, Visit visit) {
  for (int first = 0, byte = p.offset; first < elements; first += p.span, byte += p.stride) {
    for (int part = 0; part < p.span / p.stride; ++part) {
      for (int l = 0; l < p.stride; ++l) visit(first + part * p.stride + l, byte + l, p.bits * part);
    }
  }
}

// codes ^= the plane, for planes whose bytes hold elements four and more apart: four neighbours at a time. Shifts carry bits from byte to
// byte; the mask takes them away.
void add_plane_by_words(const Plane& p, int elements, const uint8_t* block, uint8_t* codes) {
  const uint32_t mask = uint32_t((1 << p.bits) - 1) * 0x01010101u;
  for (int first = 0, byte = p.offset; first < elements; first += p.span, byte += p.stride) {
    for (int part = 0; part < p.span / p.stride; ++part) {
      for (int l = 0; l < p.stride; l += 4) {
        uint32_t from, to;
        std::memcpy(&from, block + byte + l, 4);
        std::memcpy(&to, codes + first + part * p.stride + l, 4);
        to ^= (from >> (p.bits * part) & mask) << p.at;
        std::memcpy(codes + first + part * p.stride + l, &to, 4);
      }
    }
  }
}

// Element of digit `digit` of byte l of a tq1_0 block, and how many digits the byte has.
int ternary_element(int l, int digit) {
  if (l < 32) return 32 * digit + l;
  if (l < 48) return 160 + 16 * digit + l - 32;
  return 240 + 4 * digit + l - 48;
}
int ternary_digits(int l) { return l < 48 ? 5 : 4; }

void read_codes(const Source& s, int elements, const uint8_t* block, uint8_t* codes) {
  if (s.low.bits == 0) {
    for (int l = 0; l < 52; ++l) {
      for (int digit = 0; digit < ternary_digits(l); ++digit) {
        codes[ternary_element(l, digit)] = uint8_t(quant::ternary_digit(block[l], digit));
      }
    }
    return;
  }
  std::memset(codes, s.flip, size_t(elements));
  for (const Plane& p : {s.low, s.high}) {
    if (p.bits == 8) {
      for (int e = 0; e < elements; ++e) codes[e] ^= block[p.offset + e];
    } else if (p.stride % 4 == 0 && p.bits > 0) {
      add_plane_by_words(p, elements, block, codes);
    } else if (p.bits > 0) {
      const int mask = (1 << p.bits) - 1;
      each_code(p, elements, [&](int e, int byte, int shift) {
        codes[e] ^= uint8_t((block[byte] >> shift & mask) << p.at);
      });
    }
  }
}

void write_codes(const Source& s, int elements, const uint8_t* codes, uint8_t* block) {
  if (s.low.bits == 0) {
    for (int l = 0; l < 52; ++l) {
      uint8_t digits[5];
      for (int d = 0; d < ternary_digits(l); ++d) digits[d] = codes[ternary_element(l, d)];
      block[l] = quant::pack_ternary_digits(digits, 1, ternary_digits(l));
    }
    return;
  }
  for (const Plane& p : {s.low, s.high}) {
    if (p.bits == 0) continue;
    const int mask = (1 << p.bits) - 1;
    each_code(p, elements, [&](int e, int byte, int shift) {
      block[byte] |= uint8_t(((codes[e] ^ s.flip) >> p.at & mask) << shift);
    });
  }
}

void read_scales(const Source& s, int count, const uint8_t* at, uint8_t* bytes) {
  switch (s.scales) {
    case Scales::plain:
      std::memcpy(bytes, at, size_t(count));
      return;
    case Scales::q3_k: {
      uint8_t packed[12];
      std::memcpy(packed, at, 12);
      const auto scales = quant::unpack_scales_q3_k(packed);
      for (size_t i = 0; i < 16; ++i) bytes[i] = uint8_t(scales[i] - 32);
      return;
    }
    case Scales::q4_k: {
      uint8_t packed[12];
      std::memcpy(packed, at, 12);
      const quant::ScalesAndMins scales = quant::unpack_scales_q4_k(packed);
      std::memcpy(bytes, scales.scale, 8);
      std::memcpy(bytes + 8, scales.min, 8);
      return;
    }
    case Scales::iq4_xs: {
      quant::BlockIQ4_XS block;
      std::memcpy(block.tops, at, 2);
      std::memcpy(block.bottoms, at + 2, 4);
      for (int g = 0; g < 8; ++g) bytes[g] = uint8_t(block.scale(g) - 32);
      return;
    }
  }
}

void write_scales(const Source& s, int count, const uint8_t* bytes, uint8_t* at) {
  switch (s.scales) {
    case Scales::plain:
      std::memcpy(at, bytes, size_t(count));
      return;
    case Scales::q3_k: {
      uint8_t scales[16], packed[12];
      for (int i = 0; i < 16; ++i) scales[i] = uint8_t(bytes[i] + 32);
      quant::pack_scales_q3_k(scales, packed);
      std::memcpy(at, packed, 12);
      return;
    }
    case Scales::q4_k: {
      quant::ScalesAndMins scales;
      uint8_t packed[12];
      std::memcpy(scales.scale, bytes, 8);
      std::memcpy(scales.min, bytes + 8, 8);
      quant::pack_scales_q4_k(scales, packed);
      std::memcpy(at, packed, 12);
      return;
    }
    case Scales::iq4_xs: {
      quant::BlockIQ4_XS block{};
      for (int g = 0; g < 8; ++g) block.set_scale(g, uint8_t(bytes[g] + 32));
      std::memcpy(at, block.tops, 2);
      std::memcpy(at + 2, block.bottoms, 4);
      return;
    }
  }
}

const Source* find_source(std::string_view name) {
  for (const Source& s : kSources) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

// The planes of a strip (quant_layout.h), four codes at a time: no code has bits beyond `bits`.
void cut_planes(int bits, const uint8_t* codes, uint32_t* words) {
  uint32_t c[8];
  std::memcpy(c, codes, 32);
  if (bits == 8) {
    std::memcpy(words, c, 32);
    return;
  }
  int shift = 0;
  if (bits >= 4) {
    for (int v = 0; v < 4; ++v) *words++ = (c[v] & 0x0f0f0f0fu) | (c[4 + v] & 0x0f0f0f0fu) << 4;
    shift = 4;
  }
  if (bits % 4 >= 2) {
    for (int v = 0; v < 2; ++v, ++words) {
      *words = 0;
      for (int part = 0; part < 4; ++part) *words |= (c[2 * part + v] >> shift & 0x03030303u) << (2 * part);
    }
    shift += 2;
  }
  if (bits % 2 == 1) {
    *words = 0;
    for (int v = 0; v < 8; ++v) *words |= (c[v] >> shift & 0x01010101u) << v;
  }
}
void join_planes(int bits, const uint32_t* words, uint8_t* codes) {
  uint32_t c[8] = {};
  int shift = 0;
  if (bits == 8) std::memcpy(c, words, 32);
  if (bits >= 4 && bits < 8) {
    for (int v = 0; v < 8; ++v) c[v] = words[v % 4] >> (4 * (v / 4)) & 0x0f0f0f0fu;
    words += 4, shift = 4;
  }
  if (bits % 4 >= 2) {
    for (int v = 0; v < 8; ++v) c[v] |= (words[v % 2] >> (2 * (v / 2)) & 0x03030303u) << shift;
    words += 2, shift += 2;
  }
  if (bits % 2 == 1) {
    for (int v = 0; v < 8; ++v) c[v] |= (words[0] >> v & 0x01010101u) << shift;
  }
  std::memcpy(codes, c, 32);
}

// Moves the head of lane `lane` between the group block at `at` and `p`; returns where the strips begin.
template <class Move>
std::byte* move_head(const QuantLayout& l, int lanes, int lane, std::byte* at, Pieces& p, Move move) {
  const auto items = [&]<int size>(auto* data, int count) {
    for (int i = 0; i < count; ++i) {
      move(at + (i * lanes + lane) * size, reinterpret_cast<uint8_t*>(data) + i * size, size_t(size));
    }
    at += count * lanes * size;
  };
  items.template operator()<2>(p.halves, l.halves());
  items.template operator()<1>(p.bytes, l.bytes());
  items.template operator()<4>(p.floats, l.floats());
  return at;
}

constexpr auto put = [](std::byte* packed, const uint8_t* piece, size_t bytes) {
  std::memcpy(packed, piece, bytes);
};
constexpr auto take = [](const std::byte* packed, uint8_t* piece, size_t bytes) {
  std::memcpy(piece, packed, bytes);
};

void put_strip(const QuantLayout& l, int lanes, int lane, const uint8_t* codes, std::byte* strip) {
  uint32_t words[8];
  cut_planes(l.bits, codes, words);
  for (int w = 0; w < l.bits; ++w) std::memcpy(strip + (w * lanes + lane) * 4, words + w, 4);
}

// Lanes behind the last row stay zero. Each thread clears what it fills: memory that is new is then paid for by all of them.
void clear_groups(const QuantView& v, int64_t begin, int64_t end, std::byte* data) {
  const int64_t group = v.blocks * v.block_bytes;
  std::memset(data + begin * group, 0, size_t((end - begin) * group));
}

QuantKind scheme_kind(const quant::Scheme& s) {
  const bool sixteen = s.block == 16;
  switch (s.kind) {
    case quant::SchemeKind::int8_block:
      return sixteen ? K::int8_16 : K::int8;
    case quant::SchemeKind::int8_block_asym:
      return sixteen ? K::int8_zero_16 : K::int8_zero;
    case quant::SchemeKind::int4_block:
      return sixteen ? K::int4_zero_16 : K::int4_zero;
    case quant::SchemeKind::fp8_e4m3:
      return K::fp8_e4m3;
    case quant::SchemeKind::fp8_e5m2:
      return K::fp8_e5m2;
    default:
      return K::nvfp4;
  }
}

// The code of element (p, j) as the kernels want it.
uint8_t scheme_code(const quant::Scheme& s, std::span<const std::byte> codes, int64_t p, int64_t j,
                    int64_t n) {
  const auto nibble = [&](int64_t i) { return uint8_t(uint8_t(codes[size_t(i / 2)]) >> (4 * (i % 2)) & 15); };
  switch (s.kind) {
    case quant::SchemeKind::int4_block:
      return nibble(p * n + j);
    case quant::SchemeKind::nvfp4_block:
      return nibble(2 * (p / 2 * n + j) + p % 2);
    case quant::SchemeKind::int8_block:
    case quant::SchemeKind::int8_block_asym:
      return uint8_t(codes[size_t(p * n + j)]) ^ 0x80;
    default:
      return uint8_t(codes[size_t(p * n + j)]);
  }
}

}  // namespace

const QuantKind* QuantMatrix::kind_of(const quant::BlockFormat& f) {
  const Source* source = find_source(f.name);
  return source ? &source->kind : nullptr;
}

QuantMatrix QuantMatrix::sized(QuantKind kind, int64_t n, int64_t k, int64_t block_columns) {
  QuantMatrix m;
  m.lanes_ = quant_lanes();
  const QuantLayout layout = quant_layout(kind);
  const int64_t strips = ceil_div(block_columns, 32);
  const int64_t block_bytes = (layout.head_bytes() + strips * layout.strip_bytes()) * m.lanes_;
  const int64_t blocks = ceil_div(k, block_columns);
  m.size_ = size_t(ceil_div(n, m.lanes_) * blocks * block_bytes);
  m.view_ = {nullptr, n, k, kind, blocks, block_columns, strips, block_bytes, nullptr};
  return m;
}

void QuantMatrix::allocate(bool factors, std::byte* lent) {
  bytes_ = PackedMemory(size_, lent);
  view_.data = bytes_.get();
  if (!factors) return;
  const size_t bytes = size_t(ceil_div(n(), lanes_) * lanes_) * sizeof(float);
  factors_ = allocate_aligned(bytes);
  std::memset(factors_.get(), 0, bytes);
  view_.factors = reinterpret_cast<const float*>(factors_.get());
}

size_t QuantMatrix::packed_bytes(const quant::BlockFormat& format, int64_t n, int64_t k) {
  return sized(find_source(format.name)->kind, n, k, format.elements).size_;
}

QuantMatrix QuantMatrix::pack(Team team, const quant::BlockFormat& format, const std::byte* rows, int64_t n,
                              int64_t k, std::byte* lent) {
  const Source* source = find_source(format.name);
  if (source == nullptr) {
    std::string known;
    for (const Source& s : kSources) known += cat(known.empty() ? "" : ", ", s.name);
    throw invalid("quant_product: no packed product for format ", format.name, "; it has ", known);
  }
  if (n < 0 || k < 0 || k % format.elements != 0) {
    throw invalid("quant_product: ", n, " rows of ", k, " elements are not whole blocks of ", format.name,
                  ", which has ", format.elements, " elements");
  }
  QuantMatrix m = sized(source->kind, n, k, format.elements);
  m.allocate(false, lent);
  const QuantLayout layout = quant_layout(source->kind);
  const QuantView& v = m.view_;
  const int lanes = m.lanes_;
  const quant::GridFormat* grid = quant::find_grid_format(format.name);
  team.parallel_for(ceil_div(n, lanes), 1, [&](int64_t begin, int64_t end) {
    Pieces p;
    clear_groups(v, begin, end, m.bytes_.get());
    for (int64_t row = begin * lanes; row < std::min(n, end * lanes); ++row) {
      const int lane = int(row % lanes);
      for (int64_t b = 0; b < v.blocks; ++b) {
        const std::byte* bytes = rows + (row * v.blocks + b) * format.bytes;
        std::byte* group = m.bytes_.get() + (row / lanes * v.blocks + b) * v.block_bytes;
        if (grid) {
          pack_grid_block(layout, *grid, bytes, lanes, lane, group);
          continue;
        }
        const auto* block = reinterpret_cast<const uint8_t*>(bytes);
        read_codes(*source, format.elements, block, p.codes);
        std::memcpy(p.halves, block + source->halves_at, size_t(2 * layout.halves()));
        read_scales(*source, layout.bytes(), block + source->bytes_at, p.bytes);
        if (layout.scale == ScaleForm::e4m3) {
          for (uint8_t& code : p.bytes) code &= 0x7f;
        }
        std::byte* strip = move_head(layout, lanes, lane, group, p, put);
        for (int e = 0; e < format.elements; e += 32, strip += layout.strip_bytes() * lanes) {
          put_strip(layout, lanes, lane, p.codes + e, strip);
        }
      }
    }
  });
  return m;
}

QuantMatrix QuantMatrix::pack(Team team, const quant::Scheme& s, const quant::SchemeOperands& in, int64_t k,
                              int64_t n) {
  quant::check_scheme_operands(s, in, k, n);
  if (s.is_gguf()) return pack(team, *s.format, in.codes.data(), n, k);
  const QuantKind kind = scheme_kind(s);
  const QuantLayout layout = quant_layout(kind);
  // Blocks of 16 and of nvfp4 share a strip or two; fp8 has no blocks at all.
  const int64_t columns = layout.elements ? layout.elements : s.block;
  const bool fp8 = s.kind == quant::SchemeKind::fp8_e4m3 || s.kind == quant::SchemeKind::fp8_e5m2;
  QuantMatrix m = sized(kind, n, k, columns);
  m.allocate(fp8 || s.scale_is_fp8(), nullptr);
  const QuantView& v = m.view_;
  const int lanes = m.lanes_;
  const int64_t groups = s.block ? ceil_div(k, s.block) : 0, runs = s.block ? ceil_div(columns, s.block) : 0;
  team.parallel_for(ceil_div(n, lanes), 1, [&](int64_t begin, int64_t end) {
    auto* factors = reinterpret_cast<float*>(m.factors_.get());
    clear_groups(v, begin, end, m.bytes_.get());
    for (int64_t row = begin * lanes; row < std::min(n, end * lanes); ++row) {
      const int lane = int(row % lanes);
      if (factors) factors[row] = fp8 ? in.scale[size_t(row)] : in.global_scale;
      for (int64_t b = 0; b < v.blocks; ++b) {
        Pieces p{};
        for (int64_t run = 0; run < runs && b * runs + run < groups; ++run) {
          const size_t at = size_t((b * runs + run) * n + row);
          if (s.scale_is_fp8()) {
            p.bytes[run] = in.fp8_scale[at];
          } else {
            p.floats[run] = in.scale[at];
            if (s.has_zero_point()) p.floats[runs + run] = in.zero_point[at];
          }
        }
        std::byte* strip = move_head(layout, lanes, lane,
                                     m.bytes_.get() + (row / lanes * v.blocks + b) * v.block_bytes, p, put);
        for (int64_t t = 0; t < v.block_strips; ++t, strip += layout.strip_bytes() * lanes) {
          uint8_t codes[32] = {};
          const int64_t first = b * columns + 32 * t, last = std::min({k, (b + 1) * columns, first + 32});
          for (int64_t e = first; e < last; ++e) codes[e - first] = scheme_code(s, in.codes, e, row, n);
          put_strip(layout, lanes, lane, codes, strip);
        }
      }
    }
  });
  return m;
}

void QuantMatrix::unpack_row(int64_t row, std::byte* out) const {
  const Source* source = nullptr;
  for (const Source& s : kSources) {
    if (s.kind == view_.kind && view_.factors == nullptr) source = &s;
  }
  if (source == nullptr) throw invalid("quant_product: unpack_row is for block formats, not for schemes");
  const quant::BlockFormat& format = *quant::find_format(source->name);
  const QuantLayout layout = quant_layout(view_.kind);
  const quant::GridFormat* grid = quant::find_grid_format(format.name);
  Pieces p;
  for (int64_t b = 0; b < view_.blocks; ++b) {
    const int lane = int(row % lanes_);
    std::byte* group = bytes_.get() + (row / lanes_ * view_.blocks + b) * view_.block_bytes;
    if (grid) {
      unpack_grid_block(layout, *grid, group, lanes_, lane, out + b * format.bytes);
      continue;
    }
    const std::byte* strip = move_head(layout, lanes_, lane, group, p, take);
    for (int e = 0; e < format.elements; e += 32, strip += layout.strip_bytes() * lanes_) {
      uint32_t words[8];
      for (int w = 0; w < layout.bits; ++w) std::memcpy(words + w, strip + (w * lanes_ + lane) * 4, 4);
      join_planes(layout.bits, words, p.codes + e);
    }
    auto* block = reinterpret_cast<uint8_t*>(out + b * format.bytes);
    std::memset(block, 0, size_t(format.bytes));
    write_codes(*source, format.elements, p.codes, block);
    std::memcpy(block + source->halves_at, p.halves, size_t(2 * layout.halves()));
    write_scales(*source, layout.bytes(), p.bytes, block + source->bytes_at);
  }
}

}  // namespace rlx::cpu
