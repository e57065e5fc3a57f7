// Rotary positions: frequencies of every variant, and the tables a graph turns heads with.
#pragma once

#include "rlx/lang/tensor.h"
#include "rlx/models/config.h"
#include "rlx/models/config_source.h"

namespace rlx::models {

/// Reads the variant for heads of which `lanes` lanes turn, unless GGUF tells another number. `layer_type` picks one of several in config.json.
Rope read_rope(ConfigSource&, const Config&, int64_t lanes, std::string_view layer_type = {});
/// The part of a head that turns: partial_rotary_factor, wherever it is written.
double partial_rotary_factor(ConfigSource&, std::string_view layer_type = {});

/// Angle per position of each pair; for longrope those of short texts, or of long ones.
std::vector<double> rope_frequencies(const Rope&, bool long_text = false);
/// 1 + 0.1 mscale ln(factor) for factors above 1: what yarn multiplies cosines and sines with.
double yarn_magnitude(double factor, double mscale = 1);

/// Whether frequencies depend on the length of the text.
inline bool depends_on_length(const Rope& r) {
  return r.kind == Rope::Kind::longrope || r.kind == Rope::Kind::dynamic;
}

/// Cosines and sines by row, and which row is whose.
struct RopeTables {
  Tensor cos, sin;  // [rows, lanes / 2]
  Tensor rows;      // [batch, seq] i32: the row of each token; empty: token s of the sequence has row s
};

/// Tables for tokens at `positions`, f32 [rows]; `length`, i32 or i64, is a scalar or [rows] where frequencies depend on it.
RopeTables rope_tables(const Rope&, const Tensor& positions, const Tensor& length);

/// Turns the heads of x [batch, seq, heads * head_dim].
Tensor turn(const Tensor& x, const RopeTables&, const Rope&, int64_t head_dim);

}  // namespace rlx::models
