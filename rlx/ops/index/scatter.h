// Writing rows by index. Rows are written in the order of the updates, so the result is deterministic.
#pragma once

#include "rlx/ops/index/indices.h"

namespace rlx::ops {

enum class ScatterKind { set, add, max, min };
constexpr std::array<std::string_view, 4> choice_names(ScatterKind) { return {"set", "add", "max", "min"}; }

struct Scatter {
  static constexpr std::string_view name = "scatter",
                                    summary = "A tensor with rows replaced or combined by index.",
                                    operands = "base, indices, updates";
  static constexpr std::string_view doc =
      "y = base, then for u = 0, 1, ...: y[b.., indices[b.., u], t..] = kind(itself, updates[b.., u, t..]), "
      "b over the first `batch_dims` axes. set: the last update of a row wins and gets the gradient; max, "
      "min: NaN wins, and the gradient is shared by all that equal the result";
  struct Attrs {
    ScatterKind kind = ScatterKind::set;
    int batch_dims = 0;
    IndexMode mode = IndexMode::error;
    static constexpr auto fields() {
      return std::tuple{field("kind", &Attrs::kind, "how an update meets the row"),
                        field("batch_dims", &Attrs::batch_dims, "number of leading axes that run together"),
                        field("mode", &Attrs::mode, kIndexModeDoc)};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

struct ScatterAdd {
  static constexpr std::string_view name = "scatter_add", summary = "Rows summed by index.",
                                    operands = "updates, indices";
  static constexpr std::string_view doc =
      "y[b.., r, t..] = sum of updates[b.., u, t..] over the u with indices[b.., u] = r, for 0 <= r < rows; "
      "b over the first `batch_dims` axes";
  struct Attrs {
    Dim rows = 0;
    int batch_dims = 0;
    IndexMode mode = IndexMode::error;
    static constexpr auto fields() {
      return std::tuple{field("rows", &Attrs::rows, "number of rows of the result"),
                        field("batch_dims", &Attrs::batch_dims, "number of leading axes that run together"),
                        field("mode", &Attrs::mode, kIndexModeDoc)};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Exprs decompose(const Lower&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Expr scatter(Expr base, Expr indices, Expr updates, ScatterKind kind, int batch_dims = 0,
             IndexMode mode = IndexMode::error);
Expr scatter_add(Expr updates, Expr indices, Dim rows, int batch_dims = 0, IndexMode mode = IndexMode::error);

}  // namespace rlx::ops
