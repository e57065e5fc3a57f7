// From a record to its OpDef. Much is instantiated for each record, so it is done once: rlx/ops/all.cpp includes this for
// the operators of the library, programs for their own.
#pragma once

#include "rlx/ir/op_record.h"

namespace rlx::ir {

namespace detail {
std::vector<std::string> split_names(std::string_view list);
void set_arity(OpDef&);
}  // namespace detail

template <OpRecord Op>
OpDef build_def() {
  using Attrs = typename Op::Attrs;
  OpDef d;
  d.name = Op::name;
  d.summary = Op::summary;
  d.doc = Op::doc;
  d.operands = detail::split_names(Op::operands);
  d.results = {"y"};
  if constexpr (requires { Op::results; }) d.results = detail::split_names(Op::results);
  if constexpr (requires { Op::traits; }) d.traits = Op::traits;
  detail::set_arity(d);
  d.fields = describe_fields<Attrs>();
  d.copy_attrs = [](const void* a) -> std::shared_ptr<void> {
    return a ? std::make_shared<Attrs>(*static_cast<const Attrs*>(a)) : std::make_shared<Attrs>();
  };
  d.infer = [](Infer& c, void* a) { return Op::infer(c, *static_cast<Attrs*>(a)); };
  if constexpr (requires { &Op::reference; }) {
    d.reference = [](const Eval& c, const void* a) {
      return Op::reference(c, *static_cast<const Attrs*>(a));
    };
  }
  if constexpr (requires { &Op::decompose; }) {
    d.decompose = [](const Lower& c, const void* a) {
      return Op::decompose(c, *static_cast<const Attrs*>(a));
    };
  }
  if constexpr (requires { &Op::vjp; }) {
    d.vjp = [](const Vjp& c, const void* a) { return Op::vjp(c, *static_cast<const Attrs*>(a)); };
  }
  if constexpr (requires { &Op::jvp; }) {
    d.jvp = [](const Jvp& c, const void* a) { return Op::jvp(c, *static_cast<const Attrs*>(a)); };
  }
  if constexpr (requires { &Op::vmap; }) {
    d.vmap = [](const Vmap& c, const void* a) { return Op::vmap(c, *static_cast<const Attrs*>(a)); };
  }
  if constexpr (requires { &Op::view; }) {
    d.view = [](const View& c, const void* a) { return Op::view(c, *static_cast<const Attrs*>(a)); };
  }
  if constexpr (requires { &Op::operations; }) {
    d.operations = [](std::span<const Shape> in, std::span<const Shape> out, const void* a) {
      return Op::operations(in, out, *static_cast<const Attrs*>(a));
    };
  }
  if constexpr (requires { Op::in_place; }) d.in_place = Op::in_place;
  if constexpr (requires { &Op::samples; }) {
    d.samples = [] {
      std::vector<Sample> out;
      for (auto& s : Op::samples())
        out.push_back({std::make_shared<Attrs>(std::move(s.attrs)), std::move(s.inputs)});
      return out;
    };
  }
  return d;
}

template <OpRecord Op>
const OpDef& def() {
  static const OpDef d = build_def<Op>();
  return d;
}

}  // namespace rlx::ir
