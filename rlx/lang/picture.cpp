#include "rlx/lang/picture.h"

#include <algorithm>
#include <cmath>

#include "rlx/ir/bodies.h"
#include "rlx/ir/leaves.h"
#include "rlx/ir/text.h"

namespace rlx {
namespace {

constexpr size_t kLongestAttrs = 40;

std::string label_of(const ir::Node& n) { return n.name.empty() ? cat("%", n.id) : n.name; }

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
      n.op->traits.leaf ? cat(n.op->name, " ", ir::leaf_name(n)) : cat(label_of(n), " = ", n.op->name);
  if (!attrs.empty()) head += cat("(", attrs, ")");
  return {std::move(head), join(types)};
}

std::string dot_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

void append_dot(std::string& out, const ir::Graph& g, const std::string& prefix, const std::string& indent) {
  for (const ir::Node* n : g.nodes()) {
    const std::string id = cat(prefix, n->id);
    const auto lines = lines_of(*n);
    const std::string label = dot_quoted(lines[0]);
    out += cat(indent, dot_quoted(id), " [shape=box, label=", label.substr(0, label.size() - 1), "\\n",
               dot_quoted(lines[1]).substr(1), n->op->traits.leaf ? ", style=rounded" : "", "];\n");
    for (size_t i = 0; i < n->inputs.size(); ++i) {
      out += cat(indent, dot_quoted(cat(prefix, n->inputs[i].node)), " -> ", dot_quoted(id));
      if (n->inputs[i].index > 0) out += cat(" [label=\"#", n->inputs[i].index, "\"]");
      out += ";\n";
    }
    ir::for_each_body(*n, [&](const ir::FieldInfo& field, const ir::GraphRef& body) {
      const std::string inside = cat(id, ".", field.name, ".");
      out += cat(indent, "subgraph ", dot_quoted(cat("cluster_", inside)), " {\n", indent,
                 "  label=", dot_quoted(cat(label_of(*n), " ", field.name)), ";\n");
      append_dot(out, *body, inside, indent + "  ");
      out += indent + "}\n";
      if (const auto leaves = body->leaves(); !leaves.empty())
        out += cat(indent, dot_quoted(id), " -> ", dot_quoted(cat(inside, leaves[0])), " [style=dotted];\n");
    });
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

// The layout. Every node has a layer below those of its operands; a leaf or constant stands right above its first user. In a
// layer nodes are sorted by the mean place of their neighbours, from above and from below in turn.
namespace {

constexpr double kCharacter = 6.7, kLine = 15, kPad = 7, kGapX = 18, kGapY = 34;

struct Box {
  const ir::Node* node = nullptr;  // null: an output
  std::vector<std::string> lines;
  std::string inside;  // bodies, drawn relative to the corner of the box
  double width = 0, height = 0, x = 0, y = 0;
  size_t layer = 0;
  std::vector<size_t> above, below;
  double center() const { return x + width / 2; }
};

struct Drawing {
  std::string svg;
  double width = 0, height = 0;
};

Drawing draw(const ir::Graph& g);

Box box_of(const ir::Node& n) {
  Box b;
  b.node = &n;
  b.lines = lines_of(n);
  for (const std::string& line : b.lines) b.width = std::max(b.width, double(line.size()) * kCharacter);
  b.width = std::ceil(b.width + 2 * kPad);
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

class Layout {
 public:
  explicit Layout(const ir::Graph& g) {
    std::vector<size_t> at;
    for (const ir::Node* n : g.nodes()) {
      if (n->id >= at.size()) at.resize(n->id + 1, 0);
      at[n->id] = boxes_.size();
      boxes_.push_back(box_of(*n));
      for (const ir::Value v : n->inputs) connect(at[v.node], boxes_.size() - 1);
    }
    const auto names = g.output_names();
    for (size_t i = 0; i < names.size(); ++i) {
      Box b;
      b.lines = {names[i]};
      b.width = std::ceil(double(names[i].size()) * kCharacter + 2 * kPad);
      b.height = kLine + 2 * kPad;
      boxes_.push_back(std::move(b));
      connect(at[g.outputs()[i].node], boxes_.size() - 1);
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
      for (const size_t user : b.below) d.svg += edge(b, boxes_[user]);
    }
    for (const Box& b : boxes_) d.svg += rectangle(b);
    return d;
  }

 private:
  void connect(size_t from, size_t to) {
    boxes_[from].below.push_back(to);
    boxes_[to].above.push_back(from);
  }

  void find_layers() {
    for (Box& b : boxes_) {
      for (const size_t a : b.above) b.layer = std::max(b.layer, boxes_[a].layer + 1);
    }
    for (Box& b : boxes_) {
      if (!b.above.empty() || b.below.empty()) continue;
      size_t first = boxes_[b.below[0]].layer;
      for (const size_t u : b.below) first = std::min(first, boxes_[u].layer);
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
        for (const size_t i : layer)
          wish[i] = mean(down ? boxes_[i].above : boxes_[i].below, order, order[i]);
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

  static std::string edge(const Box& from, const Box& to) {
    const double x0 = from.center(), y0 = from.y + from.height, x1 = to.center(), y1 = to.y;
    const double bend = std::max(kGapY / 2, (y1 - y0) / 3);
    const auto r = [](double v) { return std::round(v * 10) / 10; };
    return cat("<path class=\"e\" d=\"M", r(x0), " ", r(y0), "C", r(x0), " ", r(y0 + bend), " ", r(x1), " ",
               r(y1 - bend), " ", r(x1), " ", r(y1), "\"/>\n");
  }

  static std::string rectangle(const Box& b) {
    const bool leaf = b.node && b.node->op->traits.leaf;
    std::string out =
        cat("<g transform=\"translate(", b.x, ",", b.y, ")\"><rect class=\"",
            !b.node ? "o"
            : leaf  ? "l"
                    : "n",
            "\" width=\"", b.width, "\" height=\"", b.height, "\" rx=\"", leaf || !b.node ? 9 : 3, "\"/>");
    if (b.node && b.node->origin) out += cat("<title>", xml_escaped(b.node->origin->text()), "</title>");
    for (size_t i = 0; i < b.lines.size(); ++i)
      out += cat("<text x=\"", kPad, "\" y=\"", kPad + kLine * double(i) + 11, "\"",
                 i > 0 ? " class=\"s\"" : "", ">", xml_escaped(b.lines[i]), "</text>");
    return out + b.inside + "</g>\n";
  }

  std::vector<Box> boxes_;
  std::vector<std::vector<size_t>> layers_;
};

Drawing draw(const ir::Graph& g) { return Layout(g).drawing(); }

}  // namespace

std::string to_svg(const ir::Graph& g) {
  const Drawing d = draw(g);
  constexpr double kMargin = 10;
  return cat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", d.width + 2 * kMargin, "\" height=\"",
      d.height + 2 * kMargin, "\" viewBox=\"", -kMargin, " ", -kMargin, " ", d.width + 2 * kMargin, " ",
      d.height + 2 * kMargin,
      "\" font-family=\"monospace\" font-size=\"11\">\n<style>.n{fill:#fff;stroke:#456}.l{fill:#e8f1e4;"
      "stroke:#6a8a5a}.o{fill:#f7ecd8;stroke:#a8843c}.e{fill:none;stroke:#89a;stroke-width:1}.s{fill:#678}"
      "</style>\n",
      d.svg, "</svg>\n");
}

}  // namespace rlx
