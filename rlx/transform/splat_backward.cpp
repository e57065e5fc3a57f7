#include "rlx/transform/splat_backward.h"

#include "rlx/ir/inline.h"
#include "rlx/transform/transform.h"

namespace rlx::transform {

ops::SplatInputs gaussian_splat_render_backward(const ops::SplatInputs& in, ir::Expr d_loss_rgba,
                                                const ops::SplatParams& params) {
  const ir::Exprs operands{in.positions, in.scales, in.rotations, in.opacities, in.colors, in.sh, in.meta};
  ir::Graph picture("picture");
  ir::Exprs leaves;
  std::vector<std::string> names;
  for (const ir::Expr& x : operands) {
    names.push_back(cat("x", names.size()));
    leaves.push_back({&picture, picture.input(names.back(), x.shape())});
  }
  const ops::SplatInputs inside{leaves[0], leaves[1], leaves[2], leaves[3], leaves[4], leaves[5], leaves[6]};
  picture.set_outputs({ops::gaussian_splat_render(inside, params).rgba});
  if (d_loss_rgba.shape() != picture.shape(picture.outputs()[0])) {
    throw invalid("gaussian_splat_render_backward: d_loss_rgba is ", d_loss_rgba.shape(), "; it must be ",
                  picture.shape(picture.outputs()[0]));
  }
  ir::Exprs arguments = operands;
  arguments.push_back(d_loss_rgba);
  const ir::Exprs d =
      ir::inline_graph(*d_loss_rgba.graph, grad(picture, names, {.cotangent_inputs = true}), arguments);
  return {d[0], d[1], d[2], d[3], d[4], d[5], d[6]};
}

}  // namespace rlx::transform
