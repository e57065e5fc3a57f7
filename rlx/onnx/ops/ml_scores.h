// What classical models have in common: inputs as reals, scores made into probabilities, classes by their labels.
#pragma once

#include "rlx/onnx/call.h"

namespace rlx::onnx {

Tensor reals_in(const Call&, int i);
Tensor constant_row(const Call&, const std::vector<float>&, DType type, Dims dims);

/// Scores as post_transform `kind` wants them.
Tensor transformed(const Call&, const Tensor& scores, const std::string& kind);

/// Labels of classes by number; strings have no tensor here.
Tensor labels_at(const Call&, const Tensor& index);
size_t class_count(const Call&);

/// The number of the largest score of each row.
Tensor best(const Tensor& scores);

/// Labels and probabilities of two classes told apart by one score. Which border divides them depends on whether scores can be negative.
Items two_classes(const Call&, const Tensor& score, bool positive_weights, const std::string& kind);

}  // namespace rlx::onnx
