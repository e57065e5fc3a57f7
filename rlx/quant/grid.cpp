#include "rlx/quant/grid.h"

#include <bit>
#include <cstring>

#include "rlx/quant/grid_points.h"

namespace rlx::quant {
namespace {

struct Word16 {
  uint8_t bytes[2];
  uint32_t get() const { return uint32_t(bytes[0] | bytes[1] << 8); }
  void set(uint32_t v) { bytes[0] = uint8_t(v), bytes[1] = uint8_t(v >> 8); }
};
struct Word32 {
  Word16 halves[2];
  uint32_t get() const { return halves[0].get() | halves[1].get() << 16; }
  void set(uint32_t v) { halves[0].set(v & 0xffff), halves[1].set(v >> 16); }
};

int nibble(const uint8_t* bytes, int i) { return bytes[i / 2] >> (4 * (i % 2)) & 15; }
/// Into zeroed bytes.
void set_nibble(uint8_t* bytes, int i, int value) { bytes[i / 2] |= uint8_t(value << (4 * (i % 2))); }

// ---- blocks: take_apart reads one, put_together writes one into zeroed bytes ----

// Four sign patterns of seven bits and the scale of a group, shared by the two xxs formats.
void take_signs_and_scale(uint32_t word, int group, GridCodes& c) {
  for (int l = 0; l < 4; ++l) c.signs[4 * group + l] = with_even_signs(word >> (7 * l) & 127);
  c.scale[2 * group] = c.scale[2 * group + 1] = uint8_t(word >> 28);
}
uint32_t signs_and_scale(const GridCodes& c, int group) {
  uint32_t word = uint32_t(c.scale[2 * group]) << 28;
  for (int l = 0; l < 4; ++l) word |= uint32_t(c.signs[4 * group + l] & 127) << (7 * l);
  return word;
}

struct BlockIQ1_S {
  Half d;
  uint8_t low[32];
  Word16 high[8];

  void take_apart(GridCodes& c) const {
    c.d = d;
    for (int g = 0; g < 8; ++g) {
      const uint32_t h = high[g].get();
      c.scale[2 * g] = c.scale[2 * g + 1] = uint8_t(h >> 12 & 7);
      for (int l = 0; l < 4; ++l) {
        c.index[4 * g + l] = uint16_t(low[4 * g + l] | (h >> (3 * l) & 7) << 8);
        c.signs[4 * g + l] = h >> 15 ? 0xff : 0;
      }
    }
  }
  void put_together(const GridCodes& c) {
    d = c.d;
    for (int g = 0; g < 8; ++g) {
      uint32_t h = uint32_t(c.scale[2 * g]) << 12 | (c.signs[4 * g] ? 1u << 15 : 0u);
      for (int l = 0; l < 4; ++l) {
        low[4 * g + l] = uint8_t(c.index[4 * g + l]);
        h |= uint32_t(c.index[4 * g + l] >> 8) << (3 * l);
      }
      high[g].set(h);
    }
  }
};

struct BlockIQ1_M {
  uint8_t low[32];
  uint8_t high[16];
  Word16 scales[4];

  void take_apart(GridCodes& c) const {
    uint32_t d = 0;
    for (int i = 0; i < 4; ++i) d |= scales[i].get() >> 12 << (4 * i);
    c.d = Half::of_bits(uint16_t(d));
    for (int r = 0; r < 16; ++r) c.scale[r] = uint8_t(scales[r / 4].get() >> (3 * (r % 4)) & 7);
    for (int i = 0; i < 32; ++i) {
      const int top = nibble(high, i);
      c.index[i] = uint16_t(low[i] | (top & 7) << 8);
      c.signs[i] = top & 8 ? 0xff : 0;
    }
  }
  void put_together(const GridCodes& c) {
    for (int i = 0; i < 4; ++i) {
      uint32_t word = uint32_t(c.d.bits() >> (4 * i) & 15) << 12;
      for (int r = 0; r < 4; ++r) word |= uint32_t(c.scale[4 * i + r]) << (3 * r);
      scales[i].set(word);
    }
    for (int i = 0; i < 32; ++i) {
      low[i] = uint8_t(c.index[i]);
      set_nibble(high, i, c.index[i] >> 8 | (c.signs[i] ? 8 : 0));
    }
  }
};

struct BlockIQ2_XXS {
  Half d;
  struct {
    uint8_t index[4];
    Word32 signs_and_scale;
  } groups[8];

  void take_apart(GridCodes& c) const {
    c.d = d;
    for (int i = 0; i < 32; ++i) c.index[i] = groups[i / 4].index[i % 4];
    for (int g = 0; g < 8; ++g) take_signs_and_scale(groups[g].signs_and_scale.get(), g, c);
  }
  void put_together(const GridCodes& c) {
    d = c.d;
    for (int i = 0; i < 32; ++i) groups[i / 4].index[i % 4] = uint8_t(c.index[i]);
    for (int g = 0; g < 8; ++g) groups[g].signs_and_scale.set(signs_and_scale(c, g));
  }
};

struct BlockIQ2_XS {
  Half d;
  Word16 words[32];
  uint8_t scales[8];

  void take_apart(GridCodes& c) const {
    c.d = d;
    for (int i = 0; i < 32; ++i) {
      const uint32_t word = words[i].get();
      c.index[i] = uint16_t(word & 511);
      c.signs[i] = with_even_signs(int(word >> 9));
    }
    for (int r = 0; r < 16; ++r) c.scale[r] = uint8_t(nibble(scales, r));
  }
  void put_together(const GridCodes& c) {
    d = c.d;
    for (int i = 0; i < 32; ++i) words[i].set(c.index[i] | uint32_t(c.signs[i] & 127) << 9);
    for (int r = 0; r < 16; ++r) set_nibble(scales, r, c.scale[r]);
  }
};

struct BlockIQ2_S {
  Half d;
  uint8_t low[32];
  uint8_t signs[32];
  uint8_t high[8];
  uint8_t scales[8];

  void take_apart(GridCodes& c) const {
    c.d = d;
    for (int i = 0; i < 32; ++i) {
      c.index[i] = uint16_t(low[i] | (high[i / 4] >> (2 * (i % 4)) & 3) << 8);
      c.signs[i] = signs[i];
    }
    for (int r = 0; r < 16; ++r) c.scale[r] = uint8_t(nibble(scales, r));
  }
  void put_together(const GridCodes& c) {
    d = c.d;
    for (int i = 0; i < 32; ++i) {
      low[i] = uint8_t(c.index[i]);
      high[i / 4] |= uint8_t(c.index[i] >> 8 << (2 * (i % 4)));
      signs[i] = c.signs[i];
    }
    for (int r = 0; r < 16; ++r) set_nibble(scales, r, c.scale[r]);
  }
};

struct BlockIQ3_XXS {
  Half d;
  uint8_t index[64];
  Word32 words[8];

  void take_apart(GridCodes& c) const {
    c.d = d;
    for (int i = 0; i < 64; ++i) c.index[i] = index[i];
    for (int g = 0; g < 8; ++g) take_signs_and_scale(words[g].get(), g, c);
  }
  void put_together(const GridCodes& c) {
    d = c.d;
    for (int i = 0; i < 64; ++i) index[i] = uint8_t(c.index[i]);
    for (int g = 0; g < 8; ++g) words[g].set(signs_and_scale(c, g));
  }
};

struct BlockIQ3_S {
  Half d;
  uint8_t low[64];
  uint8_t high[8];
  uint8_t signs[32];
  uint8_t scales[4];

  void take_apart(GridCodes& c) const {
    c.d = d;
    for (int i = 0; i < 64; ++i) c.index[i] = uint16_t(low[i] | (high[i / 8] >> (i % 8) & 1) << 8);
    std::memcpy(c.signs, signs, 32);
    for (int r = 0; r < 16; ++r) c.scale[r] = uint8_t(nibble(scales, r / 2));
  }
  void put_together(const GridCodes& c) {
    d = c.d;
    for (int i = 0; i < 64; ++i) {
      low[i] = uint8_t(c.index[i]);
      high[i / 8] |= uint8_t(c.index[i] >> 8 << (i % 8));
    }
    std::memcpy(signs, c.signs, 32);
    for (int g = 0; g < 8; ++g) set_nibble(scales, g, c.scale[2 * g]);
  }
};

template <class Block>
void take_apart(const std::byte* bytes, GridCodes& c) {
  static_assert(alignof(Block) == 1);
  reinterpret_cast<const Block*>(bytes)->take_apart(c);
}
template <class Block>
void put_together(const GridCodes& c, std::byte* bytes) {
  std::memset(bytes, 0, sizeof(Block));
  reinterpret_cast<Block*>(bytes)->put_together(c);
}

static_assert(sizeof(BlockIQ1_S) == 50 && sizeof(BlockIQ1_M) == 56 && sizeof(BlockIQ2_XXS) == 66 &&
              sizeof(BlockIQ2_XS) == 74 && sizeof(BlockIQ2_S) == 82 && sizeof(BlockIQ3_XXS) == 98 &&
              sizeof(BlockIQ3_S) == 110);

// ---- the table ----

constexpr auto kNumbersIq1 = expand_points<8>(kPointsIq1, kLevelsIq1);
constexpr auto kNumbersIq2Xxs = expand_points<8>(kPointsIq2Xxs, kLevelsIq2);
constexpr auto kNumbersIq2Xs = expand_points<8>(kPointsIq2Xs, kLevelsIq2);
constexpr auto kNumbersIq2S = expand_points<8>(kPointsIq2S, kLevelsIq2);
constexpr auto kNumbersIq3Xxs = expand_points<4>(kPointsIq3Xxs, kLevelsIq3Xxs);
constexpr auto kNumbersIq3S = expand_points<4>(kPointsIq3S, kLevelsIq3S);

template <class Block>
constexpr GridFormat row(std::string_view name, std::span<const uint16_t> points,
                         std::span<const int8_t> levels, std::span<const int8_t> numbers, int run, int scales,
                         int shifted, bool even_signs, float unit) {
  return {name,
          points,
          levels,
          numbers,
          int(sizeof(Block)),
          int(numbers.size() / points.size()),
          run,
          scales,
          shifted,
          even_signs,
          unit,
          take_apart<Block>,
          put_together<Block>};
}

constexpr GridFormat kIq1S =
    row<BlockIQ1_S>("iq1_s", kPointsIq1, kLevelsIq1, kNumbersIq1, 32, 8, 32, false, 0.125f);
constexpr GridFormat kIq1M =
    row<BlockIQ1_M>("iq1_m", kPointsIq1, kLevelsIq1, kNumbersIq1, 16, 8, 8, false, 0.125f);
constexpr GridFormat kIq2Xxs =
    row<BlockIQ2_XXS>("iq2_xxs", kPointsIq2Xxs, kLevelsIq2, kNumbersIq2Xxs, 32, 16, 0, true, 0.125f);
constexpr GridFormat kIq2Xs =
    row<BlockIQ2_XS>("iq2_xs", kPointsIq2Xs, kLevelsIq2, kNumbersIq2Xs, 16, 16, 0, true, 0.125f);
constexpr GridFormat kIq2S =
    row<BlockIQ2_S>("iq2_s", kPointsIq2S, kLevelsIq2, kNumbersIq2S, 16, 16, 0, false, 0.125f);
constexpr GridFormat kIq3Xxs =
    row<BlockIQ3_XXS>("iq3_xxs", kPointsIq3Xxs, kLevelsIq3Xxs, kNumbersIq3Xxs, 32, 16, 0, true, 0.25f);
constexpr GridFormat kIq3S =
    row<BlockIQ3_S>("iq3_s", kPointsIq3S, kLevelsIq3S, kNumbersIq3S, 32, 16, 0, false, 1.0f);

}  // namespace

const GridFormat* find_grid_format(std::string_view name) {
  const GridFormat* const all[] = {&kIq1S, &kIq1M, &kIq2Xxs, &kIq2Xs, &kIq2S, &kIq3Xxs, &kIq3S};
  for (const GridFormat* f : all) {
    if (f->name == name) return f;
  }
  return nullptr;
}

uint8_t with_even_signs(int seven) { return uint8_t(seven | (std::popcount(unsigned(seven)) & 1) << 7); }

// Every product is exact in f32: 11 bits of d, 5 of 2s + 1 and 6 of the number. So the order does not matter.
void decode_grid(const GridFormat& f, const std::byte* in, float* out, int64_t count) {
  for (int64_t done = 0; done < count; done += 256, in += f.block_bytes) {
    GridCodes c;
    f.take_apart(in, c);
    for (int i = 0; i < 32; ++i, out += 8) {
      int8_t numbers[8];
      for (int j = 0; j < 8; j += f.width) {
        std::memcpy(numbers + j, &f.numbers[size_t(c.index[(8 * i + j) / f.width] * f.width)],
                    size_t(f.width));
      }
      for (int j = 0; j < 8; ++j) {
        const int sign = c.signs[i] >> j & 1 ? -1 : 1;
        numbers[j] = int8_t(f.has_signs() ? numbers[j] * sign : numbers[j] + sign);
      }
      const float scale = c.d.value() * (float(2 * c.scale[i / 2] + 1) * f.unit);
      for (int j = 0; j < 8; ++j) out[j] = scale * float(numbers[j]);
    }
  }
}

void decode_iq1_s(const std::byte* in, float* out, int64_t n) { decode_grid(kIq1S, in, out, n); }
void decode_iq1_m(const std::byte* in, float* out, int64_t n) { decode_grid(kIq1M, in, out, n); }
void decode_iq2_xxs(const std::byte* in, float* out, int64_t n) { decode_grid(kIq2Xxs, in, out, n); }
void decode_iq2_xs(const std::byte* in, float* out, int64_t n) { decode_grid(kIq2Xs, in, out, n); }
void decode_iq2_s(const std::byte* in, float* out, int64_t n) { decode_grid(kIq2S, in, out, n); }
void decode_iq3_xxs(const std::byte* in, float* out, int64_t n) { decode_grid(kIq3Xxs, in, out, n); }
void decode_iq3_s(const std::byte* in, float* out, int64_t n) { decode_grid(kIq3S, in, out, n); }

}  // namespace rlx::quant
