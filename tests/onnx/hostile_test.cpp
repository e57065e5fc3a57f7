// Files that want to hurt: each must be refused by an error of ours, soon and with the right words.
#include <gtest/gtest.h>

#include <filesystem>

#include "rlx/base/file.h"
#include "rlx/io/onnx/contents.h"
#include "rlx/io/onnx/read.h"
#include "rlx/onnx/import.h"
#include "tests/onnx/model_bytes.h"
#include "tests/support/hostile.h"

namespace rlx {
namespace {

using namespace test;

void read(const std::string& bytes) {
  const auto owner = std::make_shared<std::string>(bytes);
  onnx::import_model(
      io::onnx::parse_model(std::as_bytes(std::span(*owner)), owner, "/tmp/rlx-onnx-hostile/m.onnx"));
}

const std::vector<Message> kX{value("x", {"2"})}, kY{value("y", {"2"})};

std::string with_nodes(const std::vector<Message>& nodes, const std::vector<Message>& initializers = {}) {
  return model(graph(nodes, kX, kY, initializers));
}

Message nested(int depth) {
  const Message leaf = graph({node("Neg", {"x"}, {"a"})}, {}, {value("a", {"2"})});
  Message g = leaf;
  for (int i = 0; i < depth; ++i)
    g = graph(
        {node("If", {"c"}, {"a"}, {graph_attribute("then_branch", g), graph_attribute("else_branch", leaf)})},
        {}, {value("a", {"2"})});
  return g;
}

Message stored(const std::vector<int64_t>& dims, int64_t type, const std::string& raw) {
  Message m;
  for (const int64_t d : dims) m.number(1, d);
  return m.number(2, type).text(8, "w").text(9, raw);
}

Message outside(const std::string& path, const std::string& offset = "0", const std::string& length = "8") {
  const auto entry = [](const std::string& k, const std::string& v) {
    return Message().text(1, k).text(2, v);
  };
  return Message()
      .number(1, 2)
      .number(2, 1)
      .text(8, "w")
      .part(13, entry("location", path))
      .part(13, entry("offset", offset))
      .part(13, entry("length", length))
      .number(14, 1);
}

const Message kUse = node("Add", {"x", "w"}, {"y"});

const Attack kAttacks[] = {
    {"empty", [] { return std::string(); }, "no IR version"},
    {"not_protobuf", [] { return std::string("hello, this is text"); }, "onnx"},
    {"cut_varint", [] { return std::string("\x08\xff\xff", 3); }, "not a protobuf file, or cut short"},
    {"length_past_end", [] { return std::string("\x08\x0a\x3a\xff\xff\xff\x7f", 7); }, "cut short"},
    {"no_outputs", [] { return model(graph({}, kX, {})); }, "has no outputs"},
    {"output_nobody_makes", [] { return with_nodes({}); }, "output 'y' is made by no node"},
    {"cycle",
     [] {
       return with_nodes(
           {node("Neg", {"b"}, {"a"}), node("Neg", {"a"}, {"b"}), node("Add", {"x", "a"}, {"y"})});
     },
     "uses 'b', which no node before it makes"},
    {"own_output", [] { return with_nodes({node("Neg", {"y"}, {"y"})}); }, "uses 'y'"},
    {"name_twice", [] { return with_nodes({node("Neg", {"x"}, {"y"}), node("Abs", {"x"}, {"y"})}); },
     "'y' is given twice"},
    {"input_twice",
     [] { return model(graph({node("Neg", {"x"}, {"y"})}, {value("x", {"2"}), value("x", {"2"})}, kY)); },
     "'x' is given twice"},
    {"initializer_twice",
     [] { return with_nodes({node("Neg", {"x"}, {"y"})}, {floats("w", {1}, {1}), floats("w", {1}, {2})}); },
     "'w' is given twice"},
    {"function_calls_itself",
     [] {
       const Message f = function("F", {"a"}, {"b"}, {node("F", {"a"}, {"b"}, {}, "f")});
       return model(graph({node("F", {"x"}, {"y"}, {}, "f")}, kX, kY), 21, {f});
     },
     "levels deep"},
    {"functions_call_in_a_ring",
     [] {
       const Message f = function("F", {"a"}, {"b"}, {node("G", {"a"}, {"b"}, {}, "f")});
       const Message g = function("G", {"a"}, {"b"}, {node("F", {"a"}, {"b"}, {}, "f")});
       return model(graph({node("F", {"x"}, {"y"}, {}, "f")}, kX, kY), 21, {f, g});
     },
     "levels deep"},
    {"functions_double",
     [] {
       std::vector<Message> all{function("F0", {"a"}, {"b"}, {node("Neg", {"a"}, {"b"})})};
       for (int i = 1; i < 40; ++i) {
         const std::string inner = "F" + std::to_string(i - 1);
         all.push_back(function("F" + std::to_string(i), {"a"}, {"b"},
                                {node(inner, {"a"}, {"m"}, {}, "f"), node(inner, {"m"}, {"b"}, {}, "f")}));
       }
       return model(graph({node("F39", {"x"}, {"y"}, {}, "f")}, kX, kY), 21, all);
     },
     "more than 250000 nodes"},
    {"deep_bodies", [] { return model(nested(40)); }, "deeper than"},
    {"negative_extent", [] { return model(graph({node("Neg", {"x"}, {"y"})}, {value("x", {"-3"})}, kY)); },
     "has size -3"},
    {"negative_tensor_extent", [] { return with_nodes({kUse}, {stored({-2}, 1, "")}); },
     "negative or too large"},
    {"huge_tensor", [] { return with_nodes({kUse}, {stored({int64_t(1) << 40, int64_t(1) << 40}, 1, "")}); },
     "negative or too large"},
    {"bytes_missing", [] { return with_nodes({kUse}, {stored({2}, 1, "abc")}); },
     "3 bytes for f32[2], which takes 8"},
    {"values_missing", [] { return with_nodes({kUse}, {floats("w", {3}, {1, 2})}); }, "2 values for f32[3]"},
    {"unknown_element", [] { return with_nodes({kUse}, {stored({2}, 77, "abcdefgh")}); }, "element type 77"},
    {"strings", [] { return with_nodes({kUse}, {stored({2}, 8, "ab")}); }, "string"},
    {"bool_of_two", [] { return with_nodes({node("Not", {"w"}, {"y"})}, {stored({1}, 9, "\x02")}); },
     "a bool is stored as 2"},
    {"external_absolute", [] { return with_nodes({kUse}, {outside("/etc/passwd")}); }, "absolute path"},
    {"external_above", [] { return with_nodes({kUse}, {outside("../../etc/passwd")}); },
     "outside of the model's folder"},
    {"external_link", [] { return with_nodes({kUse}, {outside("link")}); }, "outside of the model's folder"},
    {"external_missing", [] { return with_nodes({kUse}, {outside("nothing.bin")}); }, "nothing.bin"},
    {"external_beyond", [] { return with_nodes({kUse}, {outside("eight.bin", "4")}); }, "outside of"},
    {"external_negative", [] { return with_nodes({kUse}, {outside("eight.bin", "-4")}); },
     "must be a number of bytes"},
    {"external_text", [] { return with_nodes({kUse}, {outside("eight.bin", "4x")}); },
     "must be a number of bytes"},
    {"perm_out_of_range",
     [] {
       return with_nodes({node("Transpose", {"x"}, {"y"}, {attribute("perm", std::vector<int64_t>{7})})});
     },
     "onnx: "},
    {"axis_out_of_range",
     [] { return with_nodes({node("Concat", {"x", "x"}, {"y"}, {attribute("axis", int64_t(9))})}); },
     "axis 9 is out of range"},
    {"stride_zero",
     [] {
       const Message conv = node("MaxPool", {"x"}, {"y"},
                                 {attribute("kernel_shape", std::vector<int64_t>{2}),
                                  attribute("strides", std::vector<int64_t>{0})});
       return model(graph({conv}, {value("x", {"1", "1", "8"})}, kY));
     },
     "must be 1 or more"},
    {"range_without_end",
     [] {
       return with_nodes({node("Range", {"a", "b", "c"}, {"y"})},
                         {floats("a", {}, {0}), floats("b", {}, {1e30f}), floats("c", {}, {1})});
     },
     "elements"},
    {"shape_of_petabytes",
     [] {
       const Message fill = node("ConstantOfShape", {"s"}, {"f"});
       return with_nodes({fill, node("Add", {"f", "f"}, {"g"}), node("Add", {"x", "g"}, {"y"})},
                         {ints("s", {2}, {int64_t(1) << 33, int64_t(1) << 33})});
     },
     "onnx: "},
    {"resize_to_petabytes",
     [] {
       return with_nodes({node("Resize", {"x", "", "", "to"}, {"y"},
                               {attribute("coordinate_transformation_mode", std::string("asymmetric"))})},
                         {ints("to", {1}, {int64_t(1) << 55})});
     },
     "tables have at most"},
    {"window_of_terabytes",
     [] { return with_nodes({node("HannWindow", {"n"}, {"y"})}, {ints("n", {}, {int64_t(1) << 40})}); },
     "tables have at most"},
    {"norm_over_all_channels",
     [] {
       const Message norm = node("LRN", {"x"}, {"y"}, {attribute("size", int64_t(1) << 40)});
       return model(graph({norm}, {value("x", {"1", "2", "2", "2"})}, kY));
     },
     "channels; 1 to 4096"},
    {"name_not_utf8", [] { return with_nodes({node("Neg", {"x"}, {"y"}), node("Neg\xff", {"x"}, {"z"})}); },
     "a name of 4 bytes is not UTF-8"},
    {"too_few_operands", [] { return with_nodes({node("Add", {"x"}, {"y"})}); }, "operand 1 is missing"},
    {"body_missing", [] { return with_nodes({node("If", {"c"}, {"y"})}, {stored({}, 9, "\x01")}); },
     "onnx: "},
};

class OnnxHostile : public testing::TestWithParam<Attack> {
 protected:
  void SetUp() override {
    namespace fs = std::filesystem;
    fs::create_directories("/tmp/rlx-onnx-hostile");
    write_file("/tmp/rlx-onnx-hostile/eight.bin", std::string_view("12345678"));
    std::error_code ignored;
    fs::create_symlink("/etc/hostname", "/tmp/rlx-onnx-hostile/link", ignored);
  }
};

TEST_P(OnnxHostile, IsRefused) {
  const std::string message = message_of([] { read(GetParam().bytes()); });
  EXPECT_NE(message.find(GetParam().refusal), std::string::npos) << message;
  EXPECT_FALSE(message.starts_with("internal")) << message;
}

INSTANTIATE_TEST_SUITE_P(Files, OnnxHostile, testing::ValuesIn(kAttacks), attack_name);

TEST(OnnxHostileBytes, EveryCutAndEveryFlipIsAnErrorOrAModel) {
  const std::string good =
      with_nodes({node("Transpose", {"x"}, {"t"}, {attribute("perm", std::vector<int64_t>{0})}),
                  node("Add", {"t", "w"}, {"y"})},
                 {floats("w", {2}, {1, 2})});
  EXPECT_EQ(message_of([&] { read(good); }), "no error");
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(message_of([&] { read(good.substr(0, i)); }).starts_with("internal")) << "prefix of " << i;
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = char(bad[i] ^ flip);
      EXPECT_FALSE(message_of([&] { read(bad); }).starts_with("internal")) << "byte " << i;
    }
  }
}

}  // namespace
}  // namespace rlx
