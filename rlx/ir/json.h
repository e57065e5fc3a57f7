// The JSON form of graphs, for programs in other languages; people read the text form of rlx/ir/text.h.
//
//   {"format": "rlx.graph", "version": 1, "graph": {
//      "name": "toy",
//      "nodes": [{"id": 0, "op": "input", "attrs": {"name": "x", "shape": "f32[batch,4]"}},
//                {"id": 1, "op": "top_k", "inputs": [[0, 0]], "attrs": {"k": 2},
//                 "types": ["f32[batch,2]", "i32[batch,2]"], "name": "best",
//                 "origin": 0}],
//      "outputs": [{"value": [1, 0], "name": "best"}],
//      "sizes": [["m", "n"]]},
//    "origins": [{"file": "model.cpp", "line": 12, "label": "layer3/router"}]}
//
// Nodes come operands first; a value is [id, result]. Types, extents with symbols and dtypes are written as
// in the text form, reals that JSON has no number for as "nan", "inf" and "-inf", constants as
// {"type": "f32[2]", "base64": "..."}, bodies as nested graphs. Attributes equal to their default are left
// out. "sizes" are the equations behind `where` in the text form. "origins" lists where nodes came from, once each, for the nodes of all bodies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::ir {

inline constexpr std::string_view kJsonFormat = "rlx.graph";
inline constexpr int kJsonVersion = 1;

/// `indent` < 0 writes one line. A name that is not UTF-8 is a user error: JSON cannot hold it.
std::string to_json(const Graph&, int indent = -1);

/// Throws a user error with the place in the document. Unknown keys and other versions are errors.
Graph graph_from_json(std::string_view text, const OpTable&);

/// The origins alone, to go beside a text form: {"origins": [...], "nodes": [0, -1, ...]} with one number for
/// every node in the order in which parse_graph makes them, -1 for none. Empty when no node has an origin.
std::string origins_to_json(const Graph&);
/// One for every node, null where it has none.
std::vector<OriginRef> origins_from_json(std::string_view text);

}  // namespace rlx::ir
