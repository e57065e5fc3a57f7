// Values as a C++ source writes them, for `rlx build`.
#pragma once

#include <string>
#include <vector>

#include "rlx/ir/graph.h"

namespace rlx::cli {

std::string cpp_text(std::string_view);                                // "model.cpp:12"
std::string cpp_integers(std::span<const int64_t>);                    // {2, 3}
std::string cpp_type(const Shape&);                                    // f32, {2, 3}
std::string cpp_name(std::string_view prefix, std::string_view name);  // b3_hidden
std::string cpp_comment(std::string_view);                             // of one line

/// The bytes beside a source. Pieces begin at multiples of 64.
class DataFile {
 public:
  /// `expression`: how the source calls the first byte.
  explicit DataFile(std::string expression) : expression_(std::move(expression)) {}
  /// Where they lie, as the source says it. What is the same memory is kept once.
  std::string add(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  std::string add(const Literal& value);
  void write(const std::string& path) const;
  uint64_t bytes() const { return end_; }

 private:
  struct Piece {
    uint64_t offset;
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };
  std::string expression_;
  std::vector<Piece> pieces_;
  uint64_t end_ = 0;
};

/// A few numbers as such, else a place in the data.
std::string cpp_literal(const Literal&, DataFile&);

/// `.set("axis", 1)`; `body` gives the expression for a graph.
std::string cpp_set(const ir::FieldInfo&, const ir::AttrValue&, DataFile&,
                    const std::function<std::string(const ir::GraphRef&)>& body);

}  // namespace rlx::cli
