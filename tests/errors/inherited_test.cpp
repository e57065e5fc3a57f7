// Messages that operators inherit from the records and not from their own rules: one table for all of them.
#include <gtest/gtest.h>

#include "rlx/ir/text.h"
#include "rlx/ops/all.h"
#include "tests/support/errors.h"
#include "tests/support/samples.h"

namespace rlx::ops {
namespace {

using test::make_case;
using test::message_of;

class Inherited : public testing::TestWithParam<const OpDef*> {
 protected:
  const OpDef& op() const { return *GetParam(); }
  bool is_leaf() const { return op().traits.leaf; }

  /// The message of a call with `count` scalars as operands.
  std::string with_operands(int count) const {
    Graph g;
    Values operands;
    for (int i = 0; i < count; ++i) operands.push_back(g.input(cat("x", i), Shape(DType::f32, {})));
    return message_of([&] { g.append(op(), nullptr, operands); });
  }
  /// The message of a call in a text, with nothing but these attributes.
  std::string with_attributes(const std::string& attributes) const {
    return message_of(
        [&] { ir::parse_graph(cat("graph() { return ", op().name, "(", attributes, ") }"), table()); });
  }
};

TEST_P(Inherited, too_few_and_too_many_operands) {
  const std::string takes =
      op().max_operands == 0  ? "it takes none"
      : op().max_operands < 0 ? cat("it takes ", op().min_operands, " or more (", join(op().operands), ")")
      : op().max_operands == op().min_operands
          ? cat("it takes ", op().min_operands, " (", join(op().operands), ")")
          : cat("it takes ", op().min_operands, " to ", op().max_operands, " (", join(op().operands), ")");
  if (op().min_operands > 0) {
    const int count = op().min_operands - 1;
    EXPECT_EQ(with_operands(count), cat(op().name, ": ", count, " operands; ", takes));
  }
  if (op().max_operands >= 0) {
    const int count = op().max_operands + 1;
    EXPECT_EQ(with_operands(count), cat(op().name, ": ", count, " operands; ", takes));
  }
}

TEST_P(Inherited, attributes_that_do_not_exist_or_come_twice) {
  if (is_leaf()) return;
  std::vector<std::string> known;
  for (const FieldInfo& f : op().fields) known.emplace_back(f.name);
  EXPECT_EQ(with_attributes("colour=1"), cat("parse: ", op().name, " has no attribute 'colour'; it has ",
                                             known.empty() ? "none" : join(known)));
  for (const FieldInfo& f : op().fields) {
    if (f.kind != AttrKind::integer && f.kind != AttrKind::boolean) continue;
    const std::string_view value = f.kind == AttrKind::integer ? "1" : "true";
    EXPECT_EQ(with_attributes(cat(f.name, "=", value, ", ", f.name, "=", value)),
              cat("parse: attribute '", f.name, "' is given twice"));
  }
}

TEST_P(Inherited, values_of_attributes_that_make_no_sense) {
  if (is_leaf()) return;
  for (const FieldInfo& f : op().fields) {
    SCOPED_TRACE(f.name);
    switch (f.kind) {
      case AttrKind::choice:
        EXPECT_EQ(
            with_attributes(cat(f.name, "=no_such_choice")),
            cat("parse: 'no_such_choice' is not a choice for '", f.name, "'; known: ", join(f.choices)));
        break;
      case AttrKind::boolean:
        EXPECT_EQ(with_attributes(cat(f.name, "=1")), "parse: expected true or false, found '1'");
        break;
      case AttrKind::integer:
        EXPECT_EQ(with_attributes(cat(f.name, "=99999999999999999999")),
                  "parse: expected a whole number that fits 64 bits");
        break;
      case AttrKind::real:
        EXPECT_EQ(with_attributes(cat(f.name, "=1e999")),
                  "parse: 1e999 is beyond the range of f64; write inf or -inf");
        break;
      case AttrKind::dtype:
        EXPECT_EQ(with_attributes(cat(f.name, "=f33")),
                  "parse: 'f33' is not a dtype; expected one like f32 or i64");
        break;
      case AttrKind::dims:
        EXPECT_EQ(with_attributes(cat(f.name, "=[2,3]")),
                  cat("parse: attribute '", f.name, "' is a list, written (2,3); found '['"));
        break;
      case AttrKind::integers:
      case AttrKind::reals:
        EXPECT_EQ(with_attributes(cat(f.name, "=2")),
                  cat("parse: attribute '", f.name, "' is a list, written [2,3]; found '2'"));
        break;
      default:
        break;
    }
    if (!f.optional && f.kind != AttrKind::graph && f.kind != AttrKind::choice) {
      EXPECT_EQ(with_attributes(cat(f.name, "=none")), cat("parse: attribute '", f.name, "' cannot be none"));
    }
  }
}

// A field of 32 bits keeps a larger number out; one of 64 bits takes it, and the operator may refuse it then.
TEST_P(Inherited, whole_numbers_are_never_cut) {
  const std::shared_ptr<void> attrs = op().copy_attrs(nullptr);
  for (const FieldInfo& f : op().fields) {
    if (f.kind != AttrKind::integer && f.kind != AttrKind::integers) continue;
    SCOPED_TRACE(f.name);
    const int64_t wide = (int64_t(1) << 32) + 1;
    const AttrValue value =
        f.kind == AttrKind::integer ? AttrValue(wide) : AttrValue(std::vector<int64_t>{wide});
    const std::string message = message_of([&] { f.set(attrs.get(), value); });
    if (message == "no error") {
      EXPECT_TRUE(ir::same_value(f.get(attrs.get()), value));
    } else {
      EXPECT_EQ(message, "4294967297 is out of range; -2147483648 to 2147483647");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Inherited, testing::ValuesIn(test::ops_of(table())), test::OpName());

}  // namespace
}  // namespace rlx::ops
