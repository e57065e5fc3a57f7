// Pictures of graphs: the DOT language of Graphviz, and SVG with a layout of its own. Bodies of loops and branches are drawn
// inside the node that holds them, nodes made under one label (ir::LabelScope) or lowered from one block in a frame with its name.
// A type stands in the box of the value, and at every edge that carries it.
#pragma once

#include <string>

#include "rlx/ir/graph.h"

namespace rlx {

/// The language of Graphviz.
std::string to_dot(const ir::Graph&);

/// A complete SVG document. Nodes lie in layers, operands above users; each is a rectangle with its statement and type, and
/// a title with its origin.
std::string to_svg(const ir::Graph&);

/// Text as it stands between tags of HTML, XML and SVG, quotes included.
std::string xml_escaped(std::string_view text);

}  // namespace rlx
