// The tables of codebooks that encoders search in.
#include "rlx/quant/grid_encode.h"

#include "rlx/quant/weighted.h"

namespace rlx::quant {

std::vector<uint16_t> grid_candidates(const GridFormat& f) {
  size_t cells = 1;
  for (int j = 0; j < f.width; ++j) cells *= f.levels.size();
  std::vector<uint16_t> out;
  out.reserve(cells * kGridCandidates);
  std::vector<uint32_t> order(f.points.size());
  for (size_t cell = 0; cell < cells; ++cell) {
    int centre[8];
    size_t rest = cell;
    for (int j = 0; j < f.width; ++j, rest /= f.levels.size()) {
      centre[j] = f.levels[rest % f.levels.size()];
    }
    // A squared distance is below 2^16 (8 * 62^2 = 30752), so it and the index are one number to sort by.
    for (size_t i = 0; i < order.size(); ++i) {
      const int8_t* g = &f.numbers[i * size_t(f.width)];
      int distance = 0;
      for (int j = 0; j < f.width; ++j) distance += (centre[j] - g[j]) * (centre[j] - g[j]);
      order[i] = uint32_t(distance) << 16 | uint32_t(i);
    }
    std::partial_sort(order.begin(), order.begin() + kGridCandidates, order.end());
    for (size_t i = 0; i < kGridCandidates; ++i) out.push_back(uint16_t(order[i]));
  }
  return out;
}

namespace {

// Made when its format is first encoded: up to 6561 cells against 2048 points, some tens of milliseconds.
struct Codebook {
  const GridFormat& format;
  const std::vector<uint16_t> candidates;
  explicit Codebook(std::string_view name)
      : format(*find_grid_format(name)), candidates(grid_candidates(format)) {}
};

void encode_blocks(const Codebook& c, const float* in, const float* weights, std::byte* out, int64_t count) {
  const GridBook book(c.format, c.candidates.data());
  GridEncoder encoder(book);
  for (int64_t i = 0; i < count; i += 256, out += c.format.block_bytes)
    encoder.encode(in + i, weights != nullptr ? weights + i : nullptr, out);
}

}  // namespace

void encode_iq1_s(const float* in, const float* weights, std::byte* out, int64_t count) {
  static const Codebook book("iq1_s");
  encode_blocks(book, in, weights, out, count);
}
void encode_iq1_m(const float* in, const float* weights, std::byte* out, int64_t count) {
  static const Codebook book("iq1_m");
  encode_blocks(book, in, weights, out, count);
}
void encode_iq2_xxs(const float* in, const float* weights, std::byte* out, int64_t count) {
  static const Codebook book("iq2_xxs");
  encode_blocks(book, in, weights, out, count);
}
void encode_iq2_xs(const float* in, const float* weights, std::byte* out, int64_t count) {
  static const Codebook book("iq2_xs");
  encode_blocks(book, in, weights, out, count);
}
void encode_iq2_s(const float* in, const float* weights, std::byte* out, int64_t count) {
  static const Codebook book("iq2_s");
  encode_blocks(book, in, weights, out, count);
}
void encode_iq3_xxs(const float* in, const float* weights, std::byte* out, int64_t count) {
  static const Codebook book("iq3_xxs");
  encode_blocks(book, in, weights, out, count);
}
void encode_iq3_s(const float* in, const float* weights, std::byte* out, int64_t count) {
  static const Codebook book("iq3_s");
  encode_blocks(book, in, weights, out, count);
}

}  // namespace rlx::quant
