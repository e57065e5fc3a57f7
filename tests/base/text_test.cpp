#include "rlx/base/text.h"

#include <gtest/gtest.h>

#include <limits>

#include "rlx/base/error.h"

namespace rlx {
namespace {

TEST(Text, numbers_print_short_and_read_back) {
  EXPECT_EQ(cat(0.1), "0.1");
  EXPECT_EQ(cat(1.0), "1.0");
  EXPECT_EQ(cat(1e300), "1e+300");
  EXPECT_EQ(cat(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(cat(int64_t(-5), ' ', true), "-5 true");
  EXPECT_EQ(cat(std::vector<int>{1, 2}), "[1, 2]");
}

TEST(Text, nearest_name_suggests_only_what_is_near) {
  const std::vector<std::string> names{"softmax", "sigmoid", "matmul"};
  EXPECT_EQ(nearest_name("sofmax", names), "softmax");
  EXPECT_EQ(nearest_name("convolution", names), "");
  const std::vector<std::string> brief = {"dot", "x"};
  EXPECT_EQ(nearest_name("dit", brief), "dot");
  EXPECT_EQ(nearest_name("X", brief), "x");
  EXPECT_EQ(nearest_name("foo", brief), "");
  EXPECT_EQ(nearest_name("zz", brief), "");
}

TEST(Error, tells_node_and_origin_after_the_message) {
  Error e = invalid("cumsum: axis ", 5, " is out of range");
  e.set_node("%3");
  e.set_origin("model.cpp:12");
  EXPECT_STREQ(e.what(), "cumsum: axis 5 is out of range (node %3, from model.cpp:12)");
  EXPECT_EQ(e.kind(), ErrorKind::user);
}

TEST(Error, a_failed_check_is_an_internal_error_that_says_so) {
  try {
    RLX_CHECK(1 == 2, "values ", 1, " and ", 2);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::internal);
    EXPECT_NE(std::string(e.what()).find("internal error, please report: 1 == 2: values 1 and 2"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace rlx
