#include "rlx/lang/picture.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "rlx/ir/bodies.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/text.h"
#include "rlx/lang/picture_groups.h"

namespace rlx {
namespace {

constexpr size_t kLongestAttrs = 40;

// Attributes without bodies and contents, cut when they are long.
std::string attrs_of(const ir::Node& n) {
  std::vector<std::string> parts;
  for (const ir::FieldInfo& f : n.op->fields) {
    if (f.kind == ir::AttrKind::graph || f.kind == ir::AttrKind::literal) continue;
    const ir::AttrValue value = f.get(n.attrs.get());
    if (ir::same_value(value, f.default_value) || f.name == "name" || f.name == "shape") continue;
    std::string text;
    ir::append_attr(text, f, value);
    parts.push_back(cat(f.name, "=", text));
  }
  std::string out = join(parts);
  if (out.size() > kLongestAttrs) out.replace(kLongestAttrs, out.npos, "...");
  return out;
}

std::vector<std::string> lines_of(const ir::Node& n) {
  std::vector<std::string> types;
  for (const Shape& s : n.shapes) types.push_back(cat(s));
  const std::string attrs = attrs_of(n);
  std::string head =
      n.op->traits.leaf ? cat(n.op->name, " ", ir::leaf_name(n)) : cat(n.label(), " = ", n.op->name);
  if (!attrs.empty()) head += cat("(", attrs, ")");
  return {std::move(head), join(types)};
}

// What an edge carries.
std::string type_of(const ir::Graph& g, ir::Value v) { return cat(g.shape(v)); }

std::string dot_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

void append_dot(std::string& out, const ir::Graph& g, const std::string& prefix, const std::string& indent);

void append_dot_node(std::string& out, const ir::Node& n, const std::string& prefix,
                     const std::string& indent) {
  const std::string id = cat(prefix, n.id);
  const auto lines = lines_of(n);
  const std::string label = dot_quoted(lines[0]);
  out += cat(indent, dot_quoted(id), " [shape=box, label=", label.substr(0, label.size() - 1), "\\n",
             dot_quoted(lines[1]).substr(1), n.op->traits.leaf ? ", style=rounded" : "", "];\n");
  ir::for_each_body(n, [&](const ir::FieldInfo& field, const ir::GraphRef& body) {
    const std::string inside = cat(id, ".", field.name, ".");
    out += cat(indent, "subgraph ", dot_quoted(cat("cluster_", inside)), " {\n", indent,
               "  label=", dot_quoted(cat(n.label(), " ", field.name)), ";\n");
    append_dot(out, *body, inside, indent + "  ");
    out += indent + "}\n";
    if (const auto leaves = body->leaves(); !leaves.empty())
      out += cat(indent, dot_quoted(id), " -> ", dot_quoted(cat(inside, leaves[0])), " [style=dotted];\n");
  });
}

void append_dot_nodes(std::string& out, const picture::Group& group, const std::string& prefix,
                      const std::string& indent) {
  for (const ir::Node* n : group.nodes) append_dot_node(out, *n, prefix, indent);
  for (const picture::Group& inside : group.groups) {
    out += cat(indent, "subgraph ",
               dot_quoted(cat("cluster_", prefix, inside.all_nodes()[0]->id, " ", inside.place)), " {\n",
               indent, "  label=", dot_quoted(inside.place), ";\n");
    append_dot_nodes(out, inside, prefix, indent + "  ");
    out += indent + "}\n";
  }
}

// Edges stand behind all clusters: a node belongs to the first that mentions it.
void append_dot(std::string& out, const ir::Graph& g, const std::string& prefix, const std::string& indent) {
  append_dot_nodes(out, picture::group_by_place(g), prefix, indent);
  for (const ir::Node* n : g.nodes()) {
    for (const ir::Value v : n->inputs)
      out += cat(indent, dot_quoted(cat(prefix, v.node)), " -> ", dot_quoted(cat(prefix, n->id)),
                 " [tooltip=", dot_quoted(type_of(g, v)),
                 v.index > 0 ? cat(", label=\"#", v.index, "\"") : "", "];\n");
  }
  const auto names = g.output_names();
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string id = dot_quoted(cat(prefix, "output ", i));
    out += cat(indent, id, " [shape=ellipse, label=", dot_quoted(names[i]), "];\n", indent,
               dot_quoted(cat(prefix, g.outputs()[i].node)), " -> ", id, ";\n");
  }
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        // Control characters have no place in XML.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

std::string to_dot(const ir::Graph& g) {
  std::string out = cat("digraph ", dot_quoted(g.name()), " {\n  node [fontname=monospace, fontsize=10];\n");
  append_dot(out, g, "n", "  ");
  return out + "}\n";
}

// The layout. Every node has a layer below those of its operands; a leaf stands right above its first user, and so does what is
// made of weights and constants alone. In a layer nodes are sorted by the mean place of their neighbours, from above and from below in turn.
namespace {

constexpr double kCharacter = 6.7, kLine = 15, kPad = 7, kGapX = 18, kGapY = 34;

struct Box {
  const ir::Node* node = nullptr;  // null: a group, or a value that comes in or goes out
  bool is_group = false;
  std::vector<std::string> lines;
  std::string inside;  // bodies, drawn relative to the corner of the box
  double width = 0, height = 0, x = 0, y = 0;
  size_t layer = 0;
  std::vector<size_t> above;
  std::map<size_t, std::string> below;  // users, with the types of what they get
  double center() const { return x + width / 2; }
};

struct Drawing {
  std::string svg;
  double width = 0, height = 0;
};

Drawing draw(const ir::Graph& g);
Drawing draw(const ir::Graph& g, picture::Group group, bool whole);

double width_of(std::string_view text) { return std::ceil(double(text.size()) * kCharacter + 2 * kPad); }

Box box_of(const ir::Node& n) {
  Box b;
  b.node = &n;
  b.lines = lines_of(n);
  for (const std::string& line : b.lines) b.width = std::max(b.width, width_of(line));
  b.height = double(b.lines.size()) * kLine + 2 * kPad;
  ir::for_each_body(n, [&](const ir::FieldInfo& field, const ir::GraphRef& body) {
    const Drawing d = draw(*body);
    b.inside +=
        cat("<text x=\"", kPad, "\" y=\"", b.height + kLine - 4, "\" class=\"s\">", xml_escaped(field.name),
            "</text><g transform=\"translate(", kPad, ",", b.height + kLine, ")\">", d.svg, "</g>");
    b.height += kLine + d.height + kPad;
    b.width = std::max(b.width, d.width + 2 * kPad);
  });
  return b;
}

Box box_of(const ir::Graph& g, const picture::Group& group) {
  const Drawing d = draw(g, group, false);
  Box b;
  b.is_group = true;
  b.lines = {group.place};
  b.inside = cat("<g transform=\"translate(", kPad, ",", kLine + 2 * kPad, ")\">", d.svg, "</g>");
  b.width = std::max(width_of(group.place), d.width + 2 * kPad);
  b.height = kLine + 3 * kPad + d.height;
  return b;
}

// A value at the edge of what is drawn.
Box box_of(const std::string& name) {
  Box b;
  b.lines = {name};
  b.width = width_of(name);
  b.height = kLine + 2 * kPad;
  return b;
}

class Layout {
 public:
  /// Of a group inside of a graph what comes in and goes out is drawn too; of the whole graph its outputs.
  Layout(const ir::Graph& g, picture::Group group, bool whole) : graph_(g) {
    const auto nodes = group.all_nodes();
    std::set<ir::NodeId> here;
    for (const ir::Node* n : nodes) here.insert(n->id);
    for (const ir::Node* n : nodes) {
      for (const ir::Value v : n->inputs) {
        if (here.contains(v.node) || at_.contains(v.node)) continue;
        at_[v.node] = boxes_.size();
        boxes_.push_back(box_of(name_of(v)));
      }
    }
    for (const picture::Member& m : picture::members_in_order(group)) {
      const auto inside = m.node != nullptr ? std::vector{m.node} : m.group->all_nodes();
      for (const ir::Node* n : inside) at_[n->id] = boxes_.size();
      boxes_.push_back(m.node != nullptr ? box_of(*m.node) : box_of(g, *m.group));
      for (const ir::Node* n : inside) {
        for (const ir::Value v : n->inputs) connect(v, boxes_.size() - 1);
      }
    }
    if (whole) {
      const auto names = g.output_names();
      for (size_t i = 0; i < names.size(); ++i) add_output(g.outputs()[i], names[i]);
    } else {
      for (const ir::Node* n : nodes) {
        const bool leaves = std::any_of(n->uses.begin(), n->uses.end(),
                                        [&](ir::Use use) { return !here.contains(use.user); });
        if (leaves) add_output(n->result(), name_of(n->result()));
      }
    }
    find_layers();
    sort_layers();
    place();
  }

  Drawing drawing() const {
    Drawing d;
    for (const Box& b : boxes_) {
      d.width = std::max(d.width, b.x + b.width);
      d.height = std::max(d.height, b.y + b.height);
      for (const auto& [user, types] : b.below) d.svg += edge(b, boxes_[user], types);
    }
    for (const Box& b : boxes_) d.svg += rectangle(b);
    return d;
  }

 private:
  std::string name_of(ir::Value v) const {
    const ir::Node& n = graph_.node(v);
    return n.op->traits.leaf ? ir::leaf_name(n) : n.label();
  }

  void add_output(ir::Value v, const std::string& name) {
    boxes_.push_back(box_of(name));
    connect(v, boxes_.size() - 1);
  }

  void connect(ir::Value v, size_t to) {
    const size_t from = at_.at(v.node);
    if (from == to) return;
    std::string& types = boxes_[from].below[to];
    if (types.empty()) boxes_[to].above.push_back(from);
    const std::string type = type_of(graph_, v);
    if (types.find(type) == std::string::npos) types += cat(types.empty() ? "" : ", ", type);
  }

  void find_layers() {
    for (Box& b : boxes_) {
      for (const size_t a : b.above) b.layer = std::max(b.layer, boxes_[a].layer + 1);
    }
    // A leaf, and what is made of weights and constants alone.
    std::vector<bool> fixed;
    for (const Box& b : boxes_) {
      const bool varies = b.above.empty() && (b.node == nullptr || b.node->is<ir::Input>());
      fixed.push_back(!varies &&
                      std::all_of(b.above.begin(), b.above.end(), [&](size_t a) { return fixed[a]; }));
    }
    for (size_t i = boxes_.size(); i-- > 0;) {
      Box& b = boxes_[i];
      if ((!b.above.empty() && !fixed[i]) || b.below.empty()) continue;
      size_t first = boxes_[b.below.begin()->first].layer;
      for (const auto& [user, _] : b.below) first = std::min(first, boxes_[user].layer);
      b.layer = first - 1;
    }
    for (size_t i = 0; i < boxes_.size(); ++i) {
      if (boxes_[i].layer >= layers_.size()) layers_.resize(boxes_[i].layer + 1);
      layers_[boxes_[i].layer].push_back(i);
    }
  }

  void sort_layers() {
    std::vector<double> order(boxes_.size(), 0);
    const auto number = [&](const std::vector<size_t>& layer) {
      for (size_t i = 0; i < layer.size(); ++i) order[layer[i]] = double(i) / double(layer.size());
    };
    for (const auto& layer : layers_) number(layer);
    for (int sweep = 0; sweep < 6; ++sweep) {
      const bool down = sweep % 2 == 0;
      for (size_t k = 0; k < layers_.size(); ++k) {
        auto& layer = layers_[down ? k : layers_.size() - 1 - k];
        std::vector<double> wish(boxes_.size(), 0);
        for (const size_t i : layer) {
          std::vector<size_t> neighbours = boxes_[i].above;
          if (!down) {
            neighbours.clear();
            for (const auto& [user, _] : boxes_[i].below) neighbours.push_back(user);
          }
          wish[i] = mean(neighbours, order, order[i]);
        }
        std::stable_sort(layer.begin(), layer.end(), [&](size_t a, size_t b) { return wish[a] < wish[b]; });
        number(layer);
      }
    }
  }

  static double mean(const std::vector<size_t>& of, const std::vector<double>& values, double otherwise) {
    double sum = 0;
    for (const size_t i : of) sum += values[i];
    return of.empty() ? otherwise : sum / double(of.size());
  }

  // From above: each box below the middle of its operands, pushed right by its neighbour. Then everything that stands left
  // of zero is moved in.
  void place() {
    double y = 0;
    for (const auto& layer : layers_) {
      double end = -1e30, tallest = 0, first = 0;
      for (const size_t i : layer) {
        Box& b = boxes_[i];
        double wish = end > -1e29 ? end + kGapX + b.width / 2 : b.width / 2;
        if (!b.above.empty()) {
          wish = 0;
          for (const size_t a : b.above) wish += boxes_[a].center() / double(b.above.size());
        }
        b.x = std::round(std::max(wish - b.width / 2, end + kGapX));
        b.y = y;
        end = b.x + b.width;
        tallest = std::max(tallest, b.height);
        first = std::min(first, b.x);
      }
      for (const size_t i : layer) boxes_[i].x -= first;
      y += tallest + kGapY;
    }
  }

  static std::string edge(const Box& from, const Box& to, const std::string& types) {
    const double x0 = from.center(), y0 = from.y + from.height, x1 = to.center(), y1 = to.y;
    const double bend = std::max(kGapY / 2, (y1 - y0) / 3);
    const auto r = [](double v) { return std::round(v * 10) / 10; };
    return cat("<path class=\"e\" d=\"M", r(x0), " ", r(y0), "C", r(x0), " ", r(y0 + bend), " ", r(x1), " ",
               r(y1 - bend), " ", r(x1), " ", r(y1), "\"><title>", xml_escaped(types), "</title></path>\n");
  }

  static std::string rectangle(const Box& b) {
    const bool leaf = b.node && b.node->op->traits.leaf;
    std::string out = cat("<g transform=\"translate(", b.x, ",", b.y, ")\"><rect class=\"",
                          b.is_group ? "g"
                          : !b.node  ? "o"
                          : leaf     ? "l"
                                     : "n",
                          "\" width=\"", b.width, "\" height=\"", b.height, "\" rx=\"",
                          leaf || (!b.node && !b.is_group) ? 9 : 3, "\"/>");
    if (b.node && b.node->origin) out += cat("<title>", xml_escaped(b.node->origin->text()), "</title>");
    for (size_t i = 0; i < b.lines.size(); ++i)
      out += cat("<text x=\"", kPad, "\" y=\"", kPad + kLine * double(i) + 11, "\"",
                 i > 0 ? " class=\"s\"" : "", ">", xml_escaped(b.lines[i]), "</text>");
    return out + b.inside + "</g>\n";
  }

  const ir::Graph& graph_;
  std::vector<Box> boxes_;
  std::map<ir::NodeId, size_t> at_;  // the box that a node is in
  std::vector<std::vector<size_t>> layers_;
};

Drawing draw(const ir::Graph& g, picture::Group group, bool whole) {
  return Layout(g, std::move(group), whole).drawing();
}
Drawing draw(const ir::Graph& g) { return draw(g, picture::group_by_place(g), true); }

}  // namespace

std::string to_svg(const ir::Graph& g) {
  const Drawing d = draw(g);
  constexpr double kMargin = 10;
  return cat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", d.width + 2 * kMargin, "\" height=\"",
      d.height + 2 * kMargin, "\" viewBox=\"", -kMargin, " ", -kMargin, " ", d.width + 2 * kMargin, " ",
      d.height + 2 * kMargin,
      "\" font-family=\"monospace\" font-size=\"11\">\n<style>.n{fill:#fff;stroke:#456}.l{fill:#e8f1e4;"
      "stroke:#6a8a5a}.g{fill:#f3f5f8;stroke:#9ab;stroke-dasharray:4 3}.o{fill:#f7ecd8;stroke:#a8843c}.e{fill:none;stroke:#89a;stroke-width:1}.s{fill:#678}"
      "</style>\n",
      d.svg, "</svg>\n");
}

}  // namespace rlx
