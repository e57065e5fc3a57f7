// Packed codes of weights decoded to f32.
#include "rlx/backend/cpu/kernels/copy.h"
#include "rlx/backend/cpu/kernels/sizes.h"
#include "rlx/backend/cpu/nodes/families.h"
#include "rlx/ops/quant/dequantize_blocks.h"

namespace rlx::cpu {
namespace {

Support accepts(const Request& r) {
  if (const Support s = none_empty(r); !s) return s;
  return all_row_major(r);
}

// ---- blocks of W transposed, [n, k] ----

// Rows of blocks that are decoded together and turned into columns of W.
constexpr int64_t kRows = 16;

struct BlockRows {
  quant::BlockFormat format;
  int64_t k, n, matrices, row_bytes;

  int64_t strips() const { return ceil_div(n, kRows); }
  size_t strip_bytes() const { return round_up(size_t(kRows * k) * sizeof(float)); }

  void run(const Launch& l) const {
    const int parts = int(std::min<int64_t>(l.team.threads(), matrices * strips()));
    l.team.run(parts, [&](int part) {
      auto* rows = reinterpret_cast<float*>(l.workspace + size_t(part) * strip_bytes());
      const Range range = split_range(matrices * strips(), 1, parts, part);
      for (int64_t i = range.begin; i < range.end; ++i) {
        const int64_t matrix = i / strips(), first = i % strips() * kRows, count = std::min(kRows, n - first);
        const std::byte* from = l.in[0] + (matrix * n + first) * row_bytes;
        for (int64_t j = 0; j < count; ++j) format.decode(from + j * row_bytes, rows + j * k, k);
        StridedCopy turn{.rank = 2, .size = {k, count}, .from_stride = {1, k}, .to_stride = {n, 1}};
        turn.from = rows;
        turn.to = reinterpret_cast<float*>(l.out[0]) + matrix * k * n + first;
        strided_copy(l.team.limited(1), turn);
      }
    });
  }
};

// ---- codes of W[k, n] itself, with scales of one ----

struct CodeRows {
  quant::Scheme scheme;
  int64_t k, n, matrices, matrix_bytes;
  std::vector<float> ones, zeros;
  std::vector<uint8_t> fp8_ones;

  // A multiple of every block and of the rows that share a byte.
  int64_t chunk() const { return scheme.kind == quant::SchemeKind::nvfp4_block ? 16 : 2; }
  int64_t chunks() const { return ceil_div(k, chunk()); }

  // The scheme of so many rows: one block reaches over all of them, but for nvfp4, whose blocks are fixed.
  quant::Scheme of_rows(int64_t rows) const {
    quant::Scheme s = scheme;
    if (s.block > 0 && s.kind != quant::SchemeKind::nvfp4_block) s.block = int(rows);
    return s;
  }

  void run(const Launch& l) const {
    l.team.parallel_for(matrices * chunks(), std::max<int64_t>(1, 8192 / (chunk() * n)),
                        [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end; ++i)
                            decode(l, i / chunks(), i % chunks() * chunk());
                        });
  }

  void decode(const Launch& l, int64_t matrix, int64_t first) const {
    const int64_t rows = std::min(chunk(), k - first);
    const quant::Scheme s = of_rows(rows);
    const auto count = size_t(quant::scale_count(s, rows, n));
    const std::byte* codes = l.in[0] + matrix * matrix_bytes + (first == 0 ? 0 : code_bytes(s, first, n));
    quant::SchemeOperands operands{.codes = {codes, size_t(code_bytes(s, rows, n))}, .global_scale = 1};
    if (s.scale_is_fp8()) {
      operands.fp8_scale = {fp8_ones.data(), count};
    } else {
      operands.scale = {ones.data(), count};
    }
    if (s.has_zero_point()) operands.zero_point = {zeros.data(), count};
    float* out = reinterpret_cast<float*>(l.out[0]) + (matrix * k + first) * n;
    quant::decode_scheme(s, operands, rows, n, {out, size_t(rows * n)});
  }
};

std::unique_ptr<Step> prepare(const Request& r) {
  const quant::Scheme scheme = *quant::scheme_from_text(r.node.as<ops::DequantizeBlocks>().scheme);
  const Shape& y = r.out[0].shape;
  const int64_t k = y.dim(-2).value(), n = y.dim(-1).value(), matrices = y.elements() / (k * n);
  if (scheme.is_gguf()) {
    const BlockRows rows{*scheme.format, k, n, matrices, quant::encoded_bytes(*scheme.format, k)};
    return make_step([rows](const Launch& l) { rows.run(l); }, size_t(r.threads) * rows.strip_bytes());
  }
  constexpr uint8_t kOneE4m3 = 0x38;
  CodeRows rows{.scheme = scheme, .k = k, .n = n, .matrices = matrices};
  rows.matrix_bytes = quant::code_bytes(scheme, k, n);
  const auto count = size_t(quant::scale_count(rows.of_rows(rows.chunk()), rows.chunk(), n));
  rows.ones.assign(count, 1.0f);
  rows.zeros.assign(count, 0.0f);
  rows.fp8_ones.assign(count, kOneE4m3);
  return make_step([rows](const Launch& l) { rows.run(l); });
}

}  // namespace

void add_dequantize(KernelTable& table) {
  table.add<ops::DequantizeBlocks>({"dequantize_blocks_rows", accepts, prepare});
}

}  // namespace rlx::cpu
