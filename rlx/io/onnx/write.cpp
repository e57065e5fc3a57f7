#include "rlx/io/onnx/write.h"

#include <protozero/pbf_writer.hpp>
#include <string>

#include "rlx/base/error.h"

namespace rlx::io::onnx {
namespace {

using protozero::pbf_writer;

std::string graph_bytes(const Graph& g);

// A message as bytes: make(writer) adds its fields.
template <class Make>
std::string message(Make make) {
  std::string out;
  pbf_writer w(out);
  make(w);
  return out;
}

std::string entry_bytes(const std::string& key, const std::string& value) {
  return message([&](pbf_writer& w) {
    w.add_string(1, key);
    w.add_string(2, value);
  });
}

std::string tensor_bytes(const Tensor& t) {
  RLX_CHECK(t.raw.has_value() || t.external.has_value(), "tensor '", t.name, "' has no raw contents");
  return message([&](pbf_writer& w) {
    for (const int64_t d : t.dims) w.add_int64(1, d);
    w.add_int32(2, t.type);
    if (!t.name.empty()) w.add_string(8, t.name);
    if (!t.external) {
      w.add_bytes(9, reinterpret_cast<const char*>(t.raw->data()), t.raw->size());
      return;
    }
    w.add_message(13, entry_bytes("location", t.external->location));
    w.add_message(13, entry_bytes("offset", std::to_string(t.external->offset)));
    if (t.external->length) w.add_message(13, entry_bytes("length", std::to_string(*t.external->length)));
    w.add_int32(14, 1);
  });
}

std::string dimension_bytes(const Dimension& d) {
  return message([&](pbf_writer& w) {
    if (d.value) {
      w.add_int64(1, *d.value);
    } else if (!d.symbol.empty()) {
      w.add_string(2, d.symbol);
    }
  });
}

std::string value_bytes(const ValueInfo& v) {
  const std::string tensor = message([&](pbf_writer& w) {
    w.add_int32(1, v.type.element);
    if (v.type.shape)
      w.add_message(2, message([&](pbf_writer& s) {
                      for (const Dimension& d : *v.type.shape) s.add_message(1, dimension_bytes(d));
                    }));
  });
  return message([&](pbf_writer& w) {
    w.add_string(1, v.name);
    w.add_message(2, message([&](pbf_writer& t) { t.add_message(1, tensor); }));
  });
}

std::string attribute_bytes(const Attribute& a) {
  using Kind = Attribute::Kind;
  return message([&](pbf_writer& w) {
    w.add_string(1, a.name);
    switch (a.kind) {
      case Kind::real:
        w.add_float(2, a.real);
        break;
      case Kind::integer:
        w.add_int64(3, a.integer);
        break;
      case Kind::string:
        w.add_string(4, a.string);
        break;
      case Kind::tensor:
        w.add_message(5, tensor_bytes(*a.tensor));
        break;
      case Kind::graph:
        w.add_message(6, graph_bytes(*a.graph));
        break;
      case Kind::reals:
        for (const float v : a.reals) w.add_float(7, v);
        break;
      case Kind::integers:
        for (const int64_t v : a.integers) w.add_int64(8, v);
        break;
      case Kind::strings:
        for (const std::string& v : a.strings) w.add_bytes(9, v);
        break;
      default:
        RLX_CHECK(false, "attribute '", a.name, "' of kind ", int(a.kind));
    }
    w.add_int32(20, int32_t(a.kind));
  });
}

std::string node_bytes(const Node& n) {
  return message([&](pbf_writer& w) {
    for (const std::string& s : n.inputs) w.add_string(1, s);
    for (const std::string& s : n.outputs) w.add_string(2, s);
    if (!n.name.empty()) w.add_string(3, n.name);
    w.add_string(4, n.op);
    for (const Attribute& a : n.attributes) w.add_message(5, attribute_bytes(a));
    if (!n.domain.empty()) w.add_string(7, n.domain);
  });
}

std::string graph_bytes(const Graph& g) {
  return message([&](pbf_writer& w) {
    for (const Node& n : g.nodes) w.add_message(1, node_bytes(n));
    w.add_string(2, g.name);
    for (const Tensor& t : g.initializers) w.add_message(5, tensor_bytes(t));
    for (const ValueInfo& v : g.inputs) w.add_message(11, value_bytes(v));
    for (const ValueInfo& v : g.outputs) w.add_message(12, value_bytes(v));
  });
}

std::string opset_bytes(const std::string& domain, int64_t version) {
  return message([&](pbf_writer& w) {
    w.add_string(1, domain);
    w.add_int64(2, version);
  });
}

std::string function_bytes(const Function& f, const Opsets& opsets) {
  return message([&](pbf_writer& w) {
    w.add_string(1, f.name);
    for (const std::string& s : f.inputs) w.add_string(4, s);
    for (const std::string& s : f.outputs) w.add_string(5, s);
    for (const std::string& s : f.attributes) w.add_string(6, s);
    for (const Node& n : f.nodes) w.add_message(7, node_bytes(n));
    for (const auto& [domain, version] : f.opsets.empty() ? opsets : f.opsets)
      w.add_message(9, opset_bytes(domain, version));
    w.add_string(10, f.domain);
  });
}

}  // namespace

std::string model_bytes(const Model& m) {
  return message([&](pbf_writer& w) {
    w.add_int64(1, m.ir_version);
    if (!m.producer.empty()) w.add_string(2, m.producer);
    if (!m.producer_version.empty()) w.add_string(3, m.producer_version);
    w.add_message(7, graph_bytes(m.graph));
    for (const auto& [domain, version] : m.opsets) w.add_message(8, opset_bytes(domain, version));
    for (const auto& [key, value] : m.metadata) w.add_message(14, entry_bytes(key, value));
    for (const Function& f : m.functions) w.add_message(25, function_bytes(f, m.opsets));
  });
}

}  // namespace rlx::io::onnx
