#include "rlx/io/onnx/read.h"

#include <charconv>
#include <set>

#include <protozero/pbf_reader.hpp>

#include "rlx/base/file.h"
#include "rlx/base/utf8.h"

namespace rlx::io::onnx {
namespace {

using protozero::pbf_reader;

// A field by number and wire type: one of a known number and another wire type is not that field.
constexpr uint32_t number(uint32_t tag) { return tag << 3; }
constexpr uint32_t fixed64(uint32_t tag) { return tag << 3 | 1; }
constexpr uint32_t bytes(uint32_t tag) { return tag << 3 | 2; }
constexpr uint32_t fixed32(uint32_t tag) { return tag << 3 | 5; }

class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  Model model(pbf_reader m);
  Tensor tensor(pbf_reader m);
  std::vector<std::string> notes() const { return {unknown_.begin(), unknown_.end()}; }

 private:
  class Deeper {
   public:
    explicit Deeper(Reader& r) : reader_(r) {
      if (++r.depth_ > kDeepestNesting)
        throw invalid("onnx '", r.source_, "': graphs or types nest deeper than ", kDeepestNesting,
                      " levels");
    }
    ~Deeper() { --reader_.depth_; }

   private:
    Reader& reader_;
  };

  // Calls take(field) for each field; what it does not know is noted and skipped.
  template <class Take>
  void fields(pbf_reader m, std::string_view message, Take take) {
    while (m.next()) {
      if (take(m, m.tag() << 3 | uint32_t(m.wire_type()))) continue;
      if (unknown_.size() < 64) unknown_.insert(cat("field ", m.tag(), " of ", message, " is not known"));
      m.skip();
    }
  }

  // A name: protobuf's strings are UTF-8.
  std::string text(pbf_reader& f) const {
    std::string out = f.get_string();
    if (!valid_utf8(out))
      throw invalid("onnx '", source_, "': a name of ", out.size(), " bytes is not UTF-8");
    return out;
  }

  template <class Get>
  static void append_packed(const Get& range, std::vector<int64_t>& to) {
    for (const auto v : range) to.push_back(int64_t(v));
  }

  Graph graph(pbf_reader m);
  Node node(pbf_reader m);
  Attribute attribute(pbf_reader m);
  void attribute_lists(Attribute& a, pbf_reader& m);
  Function function(pbf_reader m);
  SparseTensor sparse(pbf_reader m);
  ValueInfo value_info(pbf_reader m);
  Type type(pbf_reader m);
  std::vector<Dimension> shape(pbf_reader m);
  Dimension dimension(pbf_reader m);
  std::pair<std::string, std::string> entry(pbf_reader m);
  void opset(pbf_reader m, Opsets& to);
  ExternalData external(const std::vector<std::pair<std::string, std::string>>& entries, const Tensor& t);

  std::string source_;
  std::set<std::string> unknown_;
  int depth_ = 0;
};

std::pair<std::string, std::string> Reader::entry(pbf_reader m) {
  std::pair<std::string, std::string> out;
  fields(m, "StringStringEntryProto", [&](pbf_reader& f, uint32_t key) {
    switch (key) {
      case bytes(1):
        return out.first = text(f), true;
      case bytes(2):
        return out.second = text(f), true;
      default:
        return false;
    }
  });
  return out;
}

void Reader::opset(pbf_reader m, Opsets& to) {
  std::string domain;
  int64_t version = 0;
  fields(m, "OperatorSetIdProto", [&](pbf_reader& f, uint32_t key) {
    switch (key) {
      case bytes(1):
        return domain = text(f), true;
      case number(2):
        return version = f.get_int64(), true;
      default:
        return false;
    }
  });
  if (domain == "ai.onnx") domain.clear();
  to[domain] = version;
}

ExternalData Reader::external(const std::vector<std::pair<std::string, std::string>>& entries,
                              const Tensor& t) {
  ExternalData out;
  const auto size = [&](const std::string& key, const std::string& text) {
    int64_t v = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (error != std::errc() || end != text.data() + text.size() || v < 0)
      throw invalid("onnx '", source_, "': tensor '", t.name, "': ", key, " of its external data is '", text,
                    "'; it must be a number of bytes");
    return v;
  };
  for (const auto& [key, value] : entries) {
    if (key == "location") out.location = value;
    if (key == "offset") out.offset = size(key, value);
    if (key == "length") out.length = size(key, value);
  }
  return out;
}

Tensor Reader::tensor(pbf_reader m) {
  Tensor t;
  std::vector<std::pair<std::string, std::string>> entries;
  bool outside = false;
  fields(m, "TensorProto", [&](pbf_reader& f, uint32_t key) {
    switch (key) {
      case number(1):
        return t.dims.push_back(f.get_int64()), true;
      case bytes(1):
        return append_packed(f.get_packed_int64(), t.dims), true;
      case number(2):
        return t.type = f.get_int32(), true;
      case fixed32(4):
        return t.floats.push_back(f.get_float()), true;
      case bytes(4):
        for (const float v : f.get_packed_float()) t.floats.push_back(v);
        return true;
      case number(5):
        return t.ints.push_back(f.get_int32()), true;
      case bytes(5):
        return append_packed(f.get_packed_int32(), t.ints), true;
      case bytes(6):
        return t.strings.push_back(f.get_string()), true;
      case number(7):
        return t.ints.push_back(f.get_int64()), true;
      case bytes(7):
        return append_packed(f.get_packed_int64(), t.ints), true;
      case bytes(8):
        return t.name = text(f), true;
      case bytes(9): {
        const auto view = f.get_view();
        t.raw = std::span(reinterpret_cast<const std::byte*>(view.data()), view.size());
        return true;
      }
      case fixed64(10):
        return t.doubles.push_back(f.get_double()), true;
      case bytes(10):
        for (const double v : f.get_packed_double()) t.doubles.push_back(v);
        return true;
      case number(11):
        return t.ints.push_back(int64_t(f.get_uint64())), true;
      case bytes(11):
        return append_packed(f.get_packed_uint64(), t.ints), true;
      case bytes(12):
      case bytes(16):
        return f.skip(), true;
      case bytes(13):
        return entries.push_back(entry(f.get_message())), true;
      case number(14):
        return outside = f.get_int32() == 1, true;
      case bytes(3):
        throw invalid("onnx '", source_, "': tensor '", t.name, "' is stored in segments");
      default:
        return false;
    }
  });
  if (outside) t.external = external(entries, t);
  return t;
}

SparseTensor Reader::sparse(pbf_reader m) {
  SparseTensor s;
  fields(m, "SparseTensorProto", [&](pbf_reader& f, uint32_t key) {
    switch (key) {
      case bytes(1):
        return s.values = tensor(f.get_message()), true;
      case bytes(2):
        return s.indices = tensor(f.get_message()), true;
      case number(3):
        return s.dims.push_back(f.get_int64()), true;
      case bytes(3):
        return append_packed(f.get_packed_int64(), s.dims), true;
      default:
        return false;
    }
  });
  return s;
}

Dimension Reader::dimension(pbf_reader m) {
  Dimension d;
  fields(m, "Dimension", [&](pbf_reader& f, uint32_t key) {
    switch (key) {
      case number(1):
        return d.value = f.get_int64(), true;
      case bytes(2):
        return d.symbol = text(f), true;
      case bytes(3):
        return f.skip(), true;
      default:
        return false;
    }
  });
  return d;
}

std::vector<Dimension> Reader::shape(pbf_reader m) {
  std::vector<Dimension> out;
  fields(m, "TensorShapeProto", [&](pbf_reader& f, uint32_t key) {
    if (key != bytes(1)) return false;
    out.push_back(dimension(f.get_message()));
    return true;
  });
  return out;
}

Type Reader::type(pbf_reader m) {
  const Deeper deeper(*this);
  Type t;
  const auto tensor_type = [&](pbf_reader f, Type::Kind kind) {
    t.kind = kind;
    fields(f, "TypeProto.Tensor", [&](pbf_reader& g, uint32_t key) {
      switch (key) {
        case number(1):
          return t.element = g.get_int32(), true;
        case bytes(2):
          return t.shape = shape(g.get_message()), true;
        default:
          return false;
      }
    });
  };
  const auto outer_type = [&](pbf_reader f, Type::Kind kind, uint32_t field_of_inner) {
    t.kind = kind;
    fields(f, "TypeProto", [&](pbf_reader& g, uint32_t key) {
      if (key == bytes(field_of_inner)) return t.inner = std::make_shared<Type>(type(g.get_message())), true;
      if (kind == Type::Kind::map && key == number(1)) return t.element = g.get_int32(), true;
      return false;
    });
  };
  fields(m, "TypeProto", [&](pbf_reader& f, uint32_t key) {
    switch (key) {
      case bytes(1):
        return tensor_type(f.get_message(), Type::Kind::tensor), true;
      case bytes(4):
        return outer_type(f.get_message(), Type::Kind::sequence, 1), true;
      case bytes(5):
        return outer_type(f.get_message(), Type::Kind::map, 2), true;
      case bytes(6):
        return f.skip(), true;
      case bytes(7):
        return t.kind = Type::Kind::opaque, f.skip(), true;
      case bytes(8):
        return tensor_type(f.get_message(), Type::Kind::sparse_tensor), true;
      case bytes(9):
        return outer_type(f.get_message(), Type::Kind::optional, 1), true;
      default:
        return false;
    }
  });
  return t;
}

ValueInfo Reader::value_info(pbf_reader m) {
  ValueInfo v;
  fields(m, "ValueInfoProto", [&](pbf_reader& f, uint32_t key) {
    switch (key) {
      case bytes(1):
        return v.name = text(f), true;
      case bytes(2):
        return v.type = type(f.get_message()), true;
      case bytes(3):
      case bytes(4):
        return f.skip(), true;
      default:
        return false;
    }
  });
  return v;
}

void Reader::attribute_lists(Attribute& a, pbf_reader& f) {
  if (f.tag() == 7) {
    if (f.wire_type() == protozero::pbf_wire_type::length_delimited) {
      for (const float v : f.get_packed_float()) a.reals.push_back(v);
    } else {
      a.reals.push_back(f.get_float());
    }
  } else if (f.wire_type() == protozero::pbf_wire_type::length_delimited) {
    append_packed(f.get_packed_int64(), a.integers);
  } else {
    a.integers.push_back(f.get_int64());
  }
}

Attribute Reader::attribute(pbf_reader m) {
  Attribute a;
  fields(m, "AttributeProto", [&](pbf_reader& f, uint32_t key) {
    switch (key) {
      case bytes(1):
        return a.name = text(f), true;
      case fixed32(2):
        return a.real = f.get_float(), true;
      case number(3):
        return a.integer = f.get_int64(), true;
      case bytes(4):
        return a.string = f.get_string(), true;
      case bytes(5):
        return a.tensor = std::make_shared<Tensor>(tensor(f.get_message())), true;
      case bytes(6):
        return a.graph = std::make_shared<Graph>(graph(f.get_message())), true;
      case fixed32(7):
      case bytes(7):
      case number(8):
      case bytes(8):
        return attribute_lists(a, f), true;
      case bytes(9):
        return a.strings.push_back(f.get_string()), true;
      case bytes(10):
        return a.tensors.push_back(tensor(f.get_message())), true;
      case bytes(13):
        return f.skip(), true;
      case bytes(14):
        return a.type = std::make_shared<Type>(type(f.get_message())), true;
      case number(20):
        return a.kind = Attribute::Kind(f.get_int32()), true;
      case bytes(21):
        return a.reference = text(f), true;
      case bytes(22):
        return a.sparse = std::make_shared<SparseTensor>(sparse(f.get_message())), true;
      default:
        return false;
    }
  });
  return a;
}

Node Reader::node(pbf_reader m) {
  Node n;
  fields(m, "NodeProto", [&](pbf_reader& f, uint32_t key) {
    switch (key) {
      case bytes(1):
        return n.inputs.push_back(text(f)), true;
      case bytes(2):
        return n.outputs.push_back(text(f)), true;
      case bytes(3):
        return n.name = text(f), true;
      case bytes(4):
        return n.op = text(f), true;
      case bytes(5):
        return n.attributes.push_back(attribute(f.get_message())), true;
      case bytes(7):
        return n.domain = text(f), true;
      case bytes(8):
        return n.overload = text(f), true;
      case bytes(6):
      case bytes(9):
      case bytes(10):
        return f.skip(), true;
      default:
        return false;
    }
  });
  if (n.domain == "ai.onnx") n.domain.clear();
  return n;
}

Graph Reader::graph(pbf_reader m) {
  const Deeper deeper(*this);
  Graph g;
  fields(m, "GraphProto", [&](pbf_reader& f, uint32_t key) {
    switch (key) {
      case bytes(1):
        return g.nodes.push_back(node(f.get_message())), true;
      case bytes(2):
        return g.name = text(f), true;
      case bytes(5):
        return g.initializers.push_back(tensor(f.get_message())), true;
      case bytes(11):
        return g.inputs.push_back(value_info(f.get_message())), true;
      case bytes(12):
        return g.outputs.push_back(value_info(f.get_message())), true;
      case bytes(15):
        return g.sparse_initializers.push_back(sparse(f.get_message())), true;
      case bytes(10):
      case bytes(13):
      case bytes(14):
      case bytes(16):
        return f.skip(), true;
      default:
        return false;
    }
  });
  return g;
}

Function Reader::function(pbf_reader m) {
  Function fn;
  fields(m, "FunctionProto", [&](pbf_reader& f, uint32_t key) {
    switch (key) {
      case bytes(1):
        return fn.name = text(f), true;
      case bytes(4):
        return fn.inputs.push_back(text(f)), true;
      case bytes(5):
        return fn.outputs.push_back(text(f)), true;
      case bytes(6):
        return fn.attributes.push_back(text(f)), true;
      case bytes(7):
        return fn.nodes.push_back(node(f.get_message())), true;
      case bytes(9):
        return opset(f.get_message(), fn.opsets), true;
      case bytes(10):
        return fn.domain = text(f), true;
      case bytes(11):
        return fn.with_defaults.push_back(attribute(f.get_message())), true;
      case bytes(13):
        return fn.overload = text(f), true;
      case bytes(8):
      case bytes(12):
      case bytes(14):
        return f.skip(), true;
      default:
        return false;
    }
  });
  if (fn.domain == "ai.onnx") fn.domain.clear();
  return fn;
}

Model Reader::model(pbf_reader m) {
  Model out;
  fields(m, "ModelProto", [&](pbf_reader& f, uint32_t key) {
    switch (key) {
      case number(1):
        return out.ir_version = f.get_int64(), true;
      case bytes(2):
        return out.producer = text(f), true;
      case bytes(3):
        return out.producer_version = text(f), true;
      case bytes(7):
        return out.graph = graph(f.get_message()), true;
      case bytes(8):
        return opset(f.get_message(), out.opsets), true;
      case bytes(14):
        return out.metadata.push_back(entry(f.get_message())), true;
      case bytes(20):
        return out.has_training = true, f.skip(), true;
      case bytes(25):
        return out.functions.push_back(function(f.get_message())), true;
      case bytes(4):
      case number(5):
      case bytes(6):
      case bytes(26):
        return f.skip(), true;
      default:
        return false;
    }
  });
  return out;
}

// What protozero throws becomes a user error that names the file.
template <class Parse>
auto parsed(std::span<const std::byte> data, std::string_view path, Parse parse) {
  try {
    return parse(pbf_reader(reinterpret_cast<const char*>(data.data()), data.size()));
  } catch (const protozero::exception& e) {
    throw invalid("onnx '", path, "': not a protobuf file, or cut short (", e.what(), ")");
  }
}

}  // namespace

Model parse_model(std::span<const std::byte> data, std::shared_ptr<const void> owner, std::string_view path) {
  Reader reader(path);
  Model out = parsed(data, path, [&](pbf_reader m) { return reader.model(m); });
  if (out.ir_version < 1)
    throw invalid("onnx '", path, "': it has no IR version; an ONNX model starts with one");
  out.path = path;
  out.owner = std::move(owner);
  out.notes = reader.notes();
  return out;
}

Model read_model(const std::string& path) {
  const MappedFile file = MappedFile::open(path);
  return parse_model(file.bytes(), file.owner(), path);
}

Tensor parse_tensor(std::span<const std::byte> data, std::string_view path) {
  Reader reader(path);
  return parsed(data, path, [&](pbf_reader m) { return reader.tensor(m); });
}

bool looks_like_model(std::span<const std::byte> head) {
  // Field 1 as a small number, then a string field: the producer's name, the graph or an operator set.
  if (head.size() < 3 || head[0] != std::byte(8) || uint8_t(head[1]) == 0 || uint8_t(head[1]) > 63)
    return false;
  const uint8_t next = uint8_t(head[2]);
  return (next & 7) == 2 && next >> 3 >= 2 && next >> 3 <= 14;
}

}  // namespace rlx::io::onnx
