// Bodies of the pieces that fusion finds, and what the target says of them.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "rlx/ir/graph.h"
#include "rlx/ir/target.h"

namespace rlx::passes {

/// Operators that are to run as one.
struct Piece {
  std::vector<const ir::Node*> nodes;  // in order, the root last
  ir::Values operands, results;
  ir::GraphRef body;
};

/// One value everywhere: a piece that reads it has a copy of its own.
bool is_fill(const ir::Node&);

/// Pieces that do the same on the same types share one body, and the target is asked about it once: the updates of the weights of a
/// model are a few pieces, many times.
class PieceBodies {
 public:
  /// Both must outlive it, and the graph stay as it is.
  PieceBodies(const ir::Graph& g, const ir::Target& target) : g_(g), target_(target) {}

  /// Finds operands, results and body of a piece whose nodes are known. Whether the target takes it.
  ir::Support complete(Piece&);

 private:
  /// What the body of a piece is made of.
  struct Form {
    std::vector<const ir::Node*>
        nodes;  // of the body but leaves: those of the piece, fills in front of who reads them
    std::vector<uint32_t>
        wiring;  // of all operands in turn: kInside + place among the nodes, or operand of the piece
    std::vector<uint32_t> results;  // places among the nodes
    Shapes operands;
  };
  struct Known {
    Form form;
    ir::GraphRef body;
    ir::Support answer;
  };

  Form form_of(Piece&) const;
  static bool same(const Form&, const Form&);
  ir::GraphRef body_of(const Form&) const;
  ir::Support ask(const Form&, const ir::GraphRef& body) const;

  const ir::Graph& g_;
  const ir::Target& target_;
  std::deque<Known> known_;
  std::unordered_multimap<uint64_t, size_t> places_;  // in `known_`, by the hash of a form
};

}  // namespace rlx::passes
