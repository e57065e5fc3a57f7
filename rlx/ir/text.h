// The text form of graphs (.rlx): every graph prints to a text that parses back to an equal graph.
//
//   graph @toy(x: f32[batch,4], param w: f32[4,8]) {
//     h = matmul(x, w) : f32[batch,8]
//     %3:2 = top_k(h, k=2) : f32[batch,2], i32[batch,2]
//     return %3, best=%3#1
//   }
//
// `graph @toy(x: f32[n], y: f32[n]) where m = n, p*q = 8 {` says what is known of sizes: names that gave way to
// others (rlx/ir/graph.h: solved_symbols), and equations that the graph itself asks for.
//
// A statement is `name = op(operands, attribute=value, ...) : types`; types may be left out and are checked
// where given. `name:2` has two results, `name` being the first and `name#1` the second. `%3` is a node
// without a name. An operand may be a nested call. Attributes equal to their default are not printed.
// Values: true, 7, 0.5, nan, "text", none, f16, [1, 2], (batch, 4) for dims, f32[2,3] for types,
// f32[2]{1.0, 2.0} for constants, f32[2]@"name" for constants kept elsewhere, graph(...) {...} for bodies,
// bare words for choices. A name that is not a plain word is quoted. Comments run from // to the end of the
// line.
//
// A module is a graph with its stage in front and, at LIR, a plan behind; every reader of graphs reads it:
//
//   module hir fusable        module mir        module lir
//   graph @toy(...) {...}     graph ...         graph ...
//                                               plan {
//                                                 slot(h, offset=64, bytes=128)
//                                               }
//
// A graph without that line is at HIR stage when it holds blocks, else at MIR. The statements of a plan are
// calls whose operands are values of the graph and whose attributes are true, 7, 0.5, [1, 2], "text" or
// words.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "rlx/ir/module.h"

namespace rlx::ir {

/// Reads back to an equal graph.
std::string to_text(const Graph&);
/// With the line of the stage, unless the module is one that was read without.
std::string to_text(const Module&);

/// Throws a user error with line and column and what was expected. A module gives its graph.
Graph parse_graph(std::string_view text, const OpTable&);
/// As parse_graph, with stage and plan where the text has them.
Module parse_module(std::string_view text, const OpTable&);

/// Every error of a text, each with its place as origin: the parser goes on behind a statement that it cannot
/// read, says nothing of what depends on it, and what could be read is verified. Empty means sound. Counting
/// stops at a hundred.
std::vector<VerifyError> verify_text(std::string_view text, const OpTable&);

/// Constants kept outside of the text. Storing returns the name to write, or empty to write the contents.
using StoreLiteral = std::function<std::string(const Literal&)>;
/// The constant of a name.
using FetchLiteral = std::function<Literal(const std::string& name)>;

/// As above, with constants kept outside.
std::string to_text(const Graph&, const StoreLiteral&);
std::string to_text(const Module&, const StoreLiteral&);
/// `origins`, when given, has one entry per node, bodies included, in the order of the text
/// (rlx/ir/json.h: origins_to_json).
Module parse_module(std::string_view text, const OpTable&, const FetchLiteral&,
                    std::span<const OriginRef> origins = {});

/// Text with one more column per node: where it came from.
std::string to_annotated_text(const Graph&);

/// Attributes written as in a call, "k=2, axis=1", over the defaults of the operator.
AttrsRef parse_attrs(std::string_view text, const OpDef&, const OpTable&);

/// One attribute value, as in a graph text.
void append_attr(std::string& out, const FieldInfo&, const AttrValue&, int indent = 0);

/// "name" as is when it is a plain word ([A-Za-z_][A-Za-z0-9_.]*), else in quotes with escapes.
std::string quote_name(std::string_view name);
/// In quotes, with escapes.
std::string quote(std::string_view text);

}  // namespace rlx::ir
