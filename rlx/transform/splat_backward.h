// The gradient of a splatting picture, callable by hand.
#pragma once

#include "rlx/ops/splat/render.h"

namespace rlx::transform {

/// d loss / d inputs from d loss / d rgba [height, width, 4]: the exact derivative of gaussian_splat_render,
/// made of ordinary operators, so it differentiates again. Gradients of the camera and background are in
/// `meta`.
ops::SplatInputs gaussian_splat_render_backward(const ops::SplatInputs& inputs, ir::Expr d_loss_rgba,
                                                const ops::SplatParams& params);

}  // namespace rlx::transform
