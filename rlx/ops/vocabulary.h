// The words of the IR that operators are written in. Inside rlx::ops they mean the IR's types, also where
// rlx::Graph is in sight.
#pragma once

#include "rlx/ir/inline.h"
#include "rlx/ir/interpreter.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/op_record.h"

namespace rlx::ops {

// What a record is made of.
using ir::AttrKind;
using ir::AttrsRef;
using ir::AttrTraits;
using ir::AttrValue;
using ir::Constraint;
using ir::def;
using ir::field;
using ir::FieldInfo;
using ir::NoAttrs;
using ir::OpDef;
using ir::OpSample;
using ir::OpTable;
using ir::Sample;
using ir::Traits;

// What its rules see.
using ir::BodyTransforms;
using ir::Eval;
using ir::Infer;
using ir::Interpreter;
using ir::Jvp;
using ir::Lower;
using ir::View;
using ir::Vjp;
using ir::Vmap;

// Graphs and what they hold.
using ir::Expr;
using ir::Exprs;
using ir::Graph;
using ir::GraphRef;
using ir::kNoNode;
using ir::LabelScope;
using ir::Layout;
using ir::Node;
using ir::NodeId;
using ir::Value;
using ir::ValueMap;
using ir::Values;

// Making nodes.
using ir::Constant;
using ir::Full;
using ir::full;
using ir::inline_graph;
using ir::Input;
using ir::make;
using ir::make_all;
using ir::NamedLeaf;
using ir::ones_like;
using ir::Param;
using ir::zeros_like;

}  // namespace rlx::ops
