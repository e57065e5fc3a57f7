// Attacks on a reader: bytes that must be refused, and the words the refusal must contain.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

#include "tests/support/errors.h"

namespace rlx::test {

struct Attack {
  const char* name;
  std::function<std::string()> bytes;
  const char* refusal;
};

inline std::string attack_name(const testing::TestParamInfo<Attack>& info) { return info.param.name; }

/// Runs a reader over every prefix of a good file and over every file with one byte changed: each call must
/// return or throw rlx::Error, and no prefix may pass for the whole.
template <class Read>
void expect_only_errors_near(const std::string& good, Read read) {
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(message_of([&] { read(good.substr(0, length)); }), "no error") << "prefix of " << length;
  }
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = char(bad[i] ^ flip);
      EXPECT_FALSE(message_of([&] { read(bad); }).starts_with("internal")) << "byte " << i;
    }
  }
}

}  // namespace rlx::test
