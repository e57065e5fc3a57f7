// The work of Builder::build: steps first, then where everything lies.
#pragma once

#include "rlx/backend/assembly.h"
#include "rlx/backend/builder.h"
#include "rlx/ir/inline.h"

namespace rlx::backend {

class GraphAssembly : private Assembly {
 public:
  GraphAssembly(const Builder&, const ir::Graph&, const Interface&);
  std::shared_ptr<const Executable> run();

 private:
  // steps.cpp
  void add_node(const ir::Node&);
  void add_constant(const ir::Node&);
  void add_step(const ir::Node&);
  void add_chosen(const ir::Node&, std::vector<Place> in, std::span<const Arg> args, const Choice&,
                  std::vector<Declined>);
  bool add_view(const ir::Node&);
  bool waits(const ir::Node& cast) const;
  bool add_with_narrow_cache(const ir::Node& attention);
  /// A row-major copy of the value in a new buffer.
  Place add_copy(const Place& from, std::string_view name);
  void append_copy(const Place& from, const Place& to);
  void add(Plan::Step, std::unique_ptr<Step>);
  Place fresh(const Shape&, std::string name);
  [[noreturn]] void refuse(const ir::Node&, const Choice&) const;

  // concat.cpp
  void find_parts();
  bool add_concat(const ir::Node&);
  const Place& place_of_concat(const ir::Node&);
  /// Where the step of a node writes result i: a buffer of its own, or its part of a concatenation.
  Place place_of_result(const ir::Node&, uint32_t i);
  Place part_of(const Place& whole, const Shape&, int64_t offset) const;

  // places.cpp
  void add_outputs();
  bool can_be_output(const Place&, int output) const;
  void find_lifetimes();
  bool donation_is_safe(const Donation&) const;
  void copy_unsafe_donations();
  void share_places();
  bool may_share(size_t step, const InPlace&) const;
  void place();

  const Builder& builder_;
  const ir::Graph& graph_;
  const Interface& interface_;
  ir::ValueMap<Place> places_;
  struct Part {
    ir::NodeId concat;
    int64_t offset;  // bytes
  };
  ir::ValueMap<Part> parts_;         // values that are made inside of a concatenation
  std::vector<int> output_buffers_;  // by output
};

}  // namespace rlx::backend
