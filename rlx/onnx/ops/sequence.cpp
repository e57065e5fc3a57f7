// Sequences of tensors, as long as they are known while the graph is built, and optional values.
#include <algorithm>

#include "rlx/lang/functions.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/importer.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

const Items& list_of(const Call& c, int i) {
  if (!c.item(i).is_sequence()) throw c.wrong("operand ", i, " is not a sequence");
  return c.item(i).list;
}

size_t place(const Call& c, int operand, size_t size, bool end_allowed) {
  int64_t i = c.known_int(operand, "the place in the sequence");
  if (i < 0) i += int64_t(size);
  if (i < 0 || i > int64_t(size) || (!end_allowed && i == int64_t(size)))
    throw c.wrong("place ", i, " of a sequence of ", size);
  return size_t(i);
}

Items construct(Call& c) { return {Item::sequence(c.items())}; }

Items empty(Call& c) {
  c.ignore("dtype");
  return {Item::sequence({})};
}

Items at(Call& c) {
  const Items& list = list_of(c, 0);
  return {list[place(c, 1, list.size(), false)]};
}

Items insert(Call& c) {
  Items list = list_of(c, 0);
  const size_t i = c.has(2) ? place(c, 2, list.size(), true) : list.size();
  list.insert(list.begin() + ptrdiff_t(i), c.item(1));
  return {Item::sequence(std::move(list))};
}

Items erase(Call& c) {
  Items list = list_of(c, 0);
  if (list.empty()) throw c.wrong("the sequence is empty");
  const size_t i = c.has(1) ? place(c, 1, list.size(), false) : list.size() - 1;
  list.erase(list.begin() + ptrdiff_t(i));
  return {Item::sequence(std::move(list))};
}

Items length(Call& c) { return {Literal::of<int64_t>({}, {int64_t(list_of(c, 0).size())})}; }

Items concat(Call& c) {
  Tensors parts;
  for (const Item& it : list_of(c, 0)) parts.push_back(c.tensor_of(it));
  if (parts.empty()) throw c.wrong("the sequence is empty");
  if (c.flag("new_axis")) return {rlx::stack(parts, c.axis(c.integer("axis", 0), parts[0].rank() + 1))};
  const int axis = c.axis(c.integer("axis", 0), parts[0].rank());
  return {parts.size() == 1 ? parts[0] : rlx::concat(parts, {.axis = axis})};
}

Items split(Call& c) {
  const Tensor x = c.in(0);
  const int axis = c.axis(c.integer("axis", 0), x.rank());
  const bool keep = c.flag("keepdims", true);
  const int64_t size = x.dim(axis).value();
  std::vector<int64_t> parts;
  bool drop = false;
  if (!c.has(1)) {
    parts.assign(size_t(size), 1);
    drop = !keep;
  } else {
    const Literal given = c.known(1, "the sizes of the parts");
    if (given.shape().rank() == 0) {
      const int64_t each = given.integer_at(0);
      if (each < 1) throw c.wrong("parts of ", each);
      for (int64_t done = 0; done < size; done += each) parts.push_back(std::min(each, size - done));
    } else {
      parts = given.to_integers();
    }
  }
  Items list;
  int64_t start = 0;
  for (const int64_t n : parts) {
    const Tensor part = x.narrow(axis, start, n);
    list.emplace_back(drop ? part.squeeze(axis) : part);
    list.back().element = c.item(0).element;
    start += n;
  }
  return {Item::sequence(std::move(list))};
}

Items map(Call& c) {
  const file::Graph& body = c.body("body");
  const size_t steps = list_of(c, 0).size();
  std::vector<Items> columns(body.outputs.size());
  for (size_t i = 0; i < steps; ++i) {
    Items arguments;
    for (const Item& it : c.items()) {
      if (it.is_sequence() && i >= it.list.size()) throw c.wrong("sequences of different lengths");
      arguments.push_back(it.is_sequence() ? it.list[i] : it);
    }
    const Items results = c.importer().run_body(body, arguments);
    for (size_t k = 0; k < results.size(); ++k) columns[k].push_back(results[k]);
  }
  Items out;
  for (Items& column : columns) out.push_back(Item::sequence(std::move(column)));
  return out;
}

Items optional(Call& c) {
  c.ignore("type");
  return {c.has(0) ? c.item(0) : Item()};
}

Items has_element(Call& c) { return {Literal::scalar(DType::bool_, c.has(0) ? 1 : 0)}; }

Items get_element(Call& c) { return {c.item(0)}; }

constexpr Entry kept(std::string_view name, int since, ImportNode import) {
  return {name, since, import, BoundsRule::refuse, nullptr, false};
}

}  // namespace

std::span<const Entry> sequence_entries() {
  static const std::vector<Entry> kEntries{
      kept("ConcatFromSequence", 11, concat),
      kept("Optional", 15, optional),
      kept("OptionalGetElement", 15, get_element),
      kept("OptionalHasElement", 15, has_element),
      kept("SequenceAt", 11, at),
      kept("SequenceConstruct", 11, construct),
      kept("SequenceEmpty", 11, empty),
      kept("SequenceErase", 11, erase),
      kept("SequenceInsert", 11, insert),
      kept("SequenceLength", 11, length),
      kept("SequenceMap", 17, map),
      kept("SplitToSequence", 11, split),
  };
  return kEntries;
}

}  // namespace rlx::onnx
