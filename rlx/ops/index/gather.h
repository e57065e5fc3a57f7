// Picking slices by index: take with shared indices, the batched form, and the per-element form.
#pragma once

#include "rlx/ops/index/indices.h"

namespace rlx::ops {

struct Gather {
  static constexpr std::string_view name = "gather",
                                    summary = "Slices along an axis, picked by indices (take).",
                                    operands = "table, indices";
  static constexpr std::string_view doc =
      "y[o.., k.., t..] = table[o.., indices[k..], t..]: the sizes before `axis`, those of the indices, "
      "those after it. The same indices serve all o; batched_gather has its own for each";
  struct Attrs {
    int axis = 0;
    IndexMode mode = IndexMode::error;
    static constexpr auto fields() {
      return std::tuple{field("axis", &Attrs::axis, "axis of the table; negative counts from the end"),
                        field("mode", &Attrs::mode, kIndexModeDoc)};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct BatchedGather {
  static constexpr std::string_view name = "batched_gather",
                                    summary = "Slices along an axis, with indices per batch.",
                                    operands = "table, indices";
  static constexpr std::string_view doc =
      "y[b.., o.., k.., t..] = table[b.., o.., indices[b.., k..], t..], b over the first `batch_dims` axes "
      "of both";
  struct Attrs {
    int axis = 1;
    int batch_dims = 1;
    IndexMode mode = IndexMode::error;
    static constexpr auto fields() {
      return std::tuple{
          field("axis", &Attrs::axis, "axis of the table, behind the batch; negative counts from the end"),
          field("batch_dims", &Attrs::batch_dims, "number of leading axes that run together"),
          field("mode", &Attrs::mode, kIndexModeDoc)};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct GatherBackward {
  static constexpr std::string_view name = "gather_backward",
                                    summary = "Gradient of gather with respect to the table.",
                                    operands = "dy, indices";
  static constexpr std::string_view doc =
      "d_table[o.., j, t..] = sum of dy[o.., k.., t..] over the k with indices[k..] = j; rows nobody picked "
      "are 0";
  struct Attrs {
    Dims table_shape;
    int axis = 0;
    IndexMode mode = IndexMode::error;
    static constexpr auto fields() {
      return std::tuple{field("table_shape", &Attrs::table_shape, "extents of the table"),
                        field("axis", &Attrs::axis, "axis of the table; negative counts from the end"),
                        field("mode", &Attrs::mode, kIndexModeDoc)};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr gather(Expr table, Expr indices, int axis, IndexMode mode = IndexMode::error);
Expr batched_gather(Expr table, Expr indices, int axis, int batch_dims, IndexMode mode = IndexMode::error);
Expr gather_backward(Expr dy, Expr indices, Dims table_shape, int axis, IndexMode mode = IndexMode::error);

}  // namespace rlx::ops
