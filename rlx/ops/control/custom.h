// Operators registered at run time by name.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "rlx/ops/vocabulary.h"

namespace rlx::ops {

/// A backend's own code for a custom operator: dense operands in, results to fill.
using CustomKernel =
    std::function<void(std::span<const Literal> in, std::span<Literal> out, std::string_view attrs)>;

/// The definition of an operator outside the library. `attrs` is whatever bytes its author chose. A missing
/// rule is an error when the transform is asked for, never a silent zero.
struct CustomOp {
  std::string name;
  int num_inputs = 0;
  std::function<Shapes(std::span<const Shape> in, std::string_view attrs)> infer;
  std::function<Literals(const Eval& c, std::string_view attrs)> reference;
  std::function<Exprs(const Vjp& c, std::string_view attrs)> vjp;
  std::function<Exprs(const Jvp& c, std::string_view attrs)> jvp;
  std::function<Exprs(const Vmap& c, std::string_view attrs)> vmap;
  std::map<std::string, CustomKernel> kernels;  // by backend name
};

/// Makes the operator known to the whole process. Name, infer and reference are required; a name that is
/// taken is an error unless `replace`. Safe to call from several threads.
void register_custom_op(CustomOp op, bool replace = false);
/// Null when there is none. The definition stays alive as long as the pointer.
std::shared_ptr<const CustomOp> find_custom_op(std::string_view name);
std::vector<std::string> custom_op_names();

struct Custom {
  static constexpr std::string_view name = "custom", summary = "An operator registered by name at run time.",
                                    operands = "operands...", results = "results...";
  static constexpr std::string_view doc = "results = op(operands), as the registered operator defines it";
  struct Attrs {
    std::string op;
    std::string attrs;
    std::optional<Shape> out_shape;
    static constexpr auto fields() {
      return std::tuple{
          field("op", &Attrs::op, "name under which it was registered"),
          field("attrs", &Attrs::attrs, "bytes for the operator; their meaning is its own"),
          field("out_shape", &Attrs::out_shape, "type of the only result instead of the inferred one")};
    }
  };
  static Shapes infer(Infer&, Attrs&);
  static Literals reference(const Eval&, const Attrs&);
  static Exprs vjp(const Vjp&, const Attrs&);
  static Exprs jvp(const Jvp&, const Attrs&);
  static Exprs vmap(const Vmap&, const Attrs&);
  static std::vector<OpSample<Attrs>> samples();
};

Exprs custom_op(Graph& g, const std::string& name, const std::string& attrs, const Exprs& inputs);
Expr custom_op_packed(Graph& g, const std::string& name, const std::string& attrs, const Exprs& inputs,
                      const Shape& out_shape);

}  // namespace rlx::ops
