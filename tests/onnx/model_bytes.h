// Small ONNX models written by hand, for tests.
#pragma once

#include <protozero/pbf_writer.hpp>
#include <string>
#include <vector>

#include "rlx/io/onnx/element_type.h"

namespace rlx::test {

using io::onnx::ElementType;

/// A message under construction; fields by number, as onnx.proto has them.
class Message {
 public:
  Message& text(uint32_t field, const std::string& v) { return pbf().add_string(field, v), *this; }
  Message& number(uint32_t field, int64_t v) { return pbf().add_int64(field, v), *this; }
  Message& real(uint32_t field, float v) { return pbf().add_float(field, v), *this; }
  Message& part(uint32_t field, const Message& v) { return pbf().add_message(field, v.bytes_), *this; }
  const std::string& bytes() const { return bytes_; }

 private:
  protozero::pbf_writer pbf() { return protozero::pbf_writer(bytes_); }
  std::string bytes_;
};

inline Message attribute(const std::string& name, int64_t v) {
  return Message().text(1, name).number(3, v).number(20, 2);
}
inline Message attribute(const std::string& name, float v) {
  return Message().text(1, name).real(2, v).number(20, 1);
}
inline Message attribute(const std::string& name, const std::vector<float>& v) {
  Message m;
  m.text(1, name);
  for (const float x : v) m.real(7, x);
  return m.number(20, 6);
}
inline Message attribute(const std::string& name, const std::string& v) {
  return Message().text(1, name).text(4, v).number(20, 3);
}
inline Message attribute(const std::string& name, const std::vector<int64_t>& v) {
  Message m;
  m.text(1, name);
  for (const int64_t i : v) m.number(8, i);
  return m.number(20, 7);
}
inline Message attribute(const std::string& name, const std::vector<std::string>& v) {
  Message m;
  m.text(1, name);
  for (const std::string& t : v) m.text(9, t);
  return m.number(20, 8);
}
inline Message graph_attribute(const std::string& name, const Message& graph) {
  return Message().text(1, name).part(6, graph).number(20, 5);
}

inline Message node(const std::string& op, const std::vector<std::string>& in,
                    const std::vector<std::string>& out, const std::vector<Message>& attributes = {},
                    const std::string& domain = "") {
  Message m;
  for (const auto& s : in) m.text(1, s);
  for (const auto& s : out) m.text(2, s);
  m.text(4, op);
  for (const auto& a : attributes) m.part(5, a);
  if (!domain.empty()) m.text(7, domain);
  return m;
}

/// Extents: numbers, or names of symbols.
inline Message value(const std::string& name, const std::vector<std::string>& dims,
                     ElementType type = ElementType::f32) {
  Message shape;
  for (const std::string& d : dims) {
    const bool digits = !d.empty() && d.find_first_not_of("-0123456789") == std::string::npos;
    shape.part(1, digits ? Message().number(1, std::stoll(d)) : Message().text(2, d));
  }
  const Message tensor = Message().number(1, int64_t(type)).part(2, shape);
  return Message().text(1, name).part(2, Message().part(1, tensor));
}

inline Message ints(const std::string& name, const std::vector<int64_t>& dims,
                    const std::vector<int64_t>& values) {
  Message m;
  for (const int64_t d : dims) m.number(1, d);
  m.number(2, int64_t(ElementType::i64));
  for (const int64_t v : values) m.number(7, v);
  return m.text(8, name);
}

inline Message floats(const std::string& name, const std::vector<int64_t>& dims,
                      const std::vector<float>& values) {
  Message m;
  for (const int64_t d : dims) m.number(1, d);
  m.number(2, int64_t(ElementType::f32));
  for (const float v : values) m.real(4, v);
  return m.text(8, name);
}

inline Message graph(const std::vector<Message>& nodes, const std::vector<Message>& inputs,
                     const std::vector<Message>& outputs, const std::vector<Message>& initializers = {}) {
  Message m;
  for (const auto& n : nodes) m.part(1, n);
  m.text(2, "g");
  for (const auto& t : initializers) m.part(5, t);
  for (const auto& v : inputs) m.part(11, v);
  for (const auto& v : outputs) m.part(12, v);
  return m;
}

inline std::string model(const Message& graph, int64_t opset = 21,
                         const std::vector<Message>& functions = {}) {
  Message m;
  m.number(1, 10).text(2, "test").part(7, graph).part(8, Message().text(1, "").number(2, opset));
  if (!functions.empty()) m.part(8, Message().text(1, "f").number(2, 1));
  for (const auto& f : functions) m.part(25, f);
  return m.bytes();
}

inline Message function(const std::string& name, const std::vector<std::string>& in,
                        const std::vector<std::string>& out, const std::vector<Message>& nodes) {
  Message m;
  m.text(1, name);
  for (const auto& s : in) m.text(4, s);
  for (const auto& s : out) m.text(5, s);
  for (const auto& n : nodes) m.part(7, n);
  return m.part(9, Message().text(1, "").number(2, 21))
      .part(9, Message().text(1, "f").number(2, 1))
      .text(10, "f");
}

}  // namespace rlx::test
