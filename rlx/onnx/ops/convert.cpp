// Changes of the element type.
#include "rlx/onnx/convert.h"
#include "rlx/lang/operators.h"
#include "rlx/onnx/follow.h"
#include "rlx/onnx/table.h"

namespace rlx::onnx {
namespace {

file::ElementType element_of_item(const Item& it) {
  return it.element == file::ElementType::undefined ? file::element_of(it.dtype()) : it.element;
}

Item cast_item(const Call& c, file::ElementType to) {
  const Item& x = c.item(0);
  const bool saturate = c.flag("saturate", true);
  Item out = converted(c, c.in(0), element_of_item(x), to, saturate, c.text("round_mode", "up"));
  out.bounds = x.bounds;
  return out;
}

Items cast(Call& c) {
  if (c.has_attr("to") && c.find("to")->kind == file::Attribute::Kind::string)
    c.unsupported("a type given by name, as before version 6");
  return {cast_item(c, c.element("to", file::ElementType::undefined))};
}

// The same bits as another type. Contents that are known are read anew; of others only integers can be.
Items bit_cast(Call& c) {
  const auto from = element_of_item(c.item(0)), to = c.element("to", file::ElementType::undefined);
  const auto &a = file::info_of(from), &b = file::info_of(to);
  if (a.bits != b.bits) throw c.wrong(a.name, " and ", b.name, " have different widths");
  const auto done = [&](Item it) {
    it.element = to;
    return Items{std::move(it)};
  };
  if (const auto known = c.constant(0); known && a.exact && b.exact)
    return done(Item(Literal::copy_of(Shape(*b.dtype, known->shape().dims()), known->bytes())));
  const bool whole =
      !is_float(*a.dtype) && !is_float(*b.dtype) && !is_complex(*a.dtype) && !is_complex(*b.dtype);
  if (!whole || to == file::ElementType::bool_) {
    if (!c.item(0).sources.empty())
      c.needs_value(c.item(0), "the bits of a number that is read as another type");
    c.unsupported(cat("the bits of ", a.name, " as ", b.name, " at run time"));
  }
  const Tensor x = from == file::ElementType::bool_ ? c.in(0).cast(DType::u8) : c.in(0);
  return done(converted(c, x, from == file::ElementType::bool_ ? file::ElementType::u8 : from, to, true));
}

Items cast_like(Call& c) { return {cast_item(c, element_of_item(c.item(1)))}; }

}  // namespace

std::span<const Entry> convert_entries() {
  static const std::vector<Entry> kEntries{
      {"BitCast", 26, bit_cast},
      {"Cast", 1, cast, BoundsRule::by_hand, follow_cast},
      {"CastLike", 15, cast_like, BoundsRule::by_hand},
  };
  return kEntries;
}

}  // namespace rlx::onnx
