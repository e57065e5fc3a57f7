// From a record to its OpDef. Much is instantiated for each record, so it is done once: rlx/ops/all.cpp includes this for
// the operators of the library, programs for their own.
#pragma once

#include "rlx/ir/plain_def.h"

namespace rlx::ir {

namespace detail {
void add_sample(std::vector<Sample>&, AttrsRef, std::vector<std::string>&&);
}

/// All parts of a record.
template <OpRecord Op>
void fill_def(OpDef& d) {
  using Attrs = typename Op::Attrs;
  fill_plain_def<Op>(d);
  d.summary = Op::summary;
  d.doc = Op::doc;
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
  if constexpr (requires { &Op::samples; }) {
    d.samples = [] {
      std::vector<Sample> out;
      for (auto& s : Op::samples())
        detail::add_sample(out, std::make_shared<Attrs>(std::move(s.attrs)), std::move(s.inputs));
      return out;
    };
  }
}

/// The record of an operator, made once.
template <OpRecord Op>
const OpDef& def() {
  static const OpDef d = detail::filled(&fill_def<Op>);
  return d;
}

}  // namespace rlx::ir
