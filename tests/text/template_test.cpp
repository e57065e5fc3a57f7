#include <gtest/gtest.h>

#include "rlx/base/error.h"
#include "rlx/base/file.h"
#include "rlx/text/chat_template.h"
#include "rlx/text/json.h"

namespace rlx::text {
namespace {

std::tm moment() {
  std::tm t{};
  t.tm_year = 125, t.tm_mon = 2, t.tm_mday = 9, t.tm_hour = 14, t.tm_min = 5, t.tm_sec = 7;
  t.tm_isdst = -1;
  std::mktime(&t);
  return t;
}

std::string render(std::string_view source, const std::string& variables = "{}") {
  return ChatTemplate(source).render_with(parse_json(variables, "variables").as_dict(), moment());
}

std::string refusal(std::string_view source, const std::string& variables = "{}") {
  try {
    const std::string out = render(source, variables);
    return "accepted: " + out.substr(0, 200);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::user) << e.what();
    return e.what();
  }
}

TEST(ChatTemplate, renders_what_jinja2_renders_and_refuses_what_it_refuses) {
  const std::string folder = "tests/text/templates/";
  const Value file = parse_json(read_file(folder + "cases.json"), "cases.json");
  size_t rendered = 0;
  for (const Value& item : file.as_dict().find("cases")->as_list()) {
    const Dict& c = item.as_dict();
    const std::string& name = c.find("template")->as_string();
    SCOPED_TRACE(name + ", " + c.find("conversation")->as_string());
    const ChatTemplate chat(read_file(folder + name));
    const Dict& variables = c.find("variables")->as_dict();
    if (const Value* expected = c.find("expected")) {
      EXPECT_EQ(chat.render_with(variables, moment()), expected->as_string());
      ++rendered;
    } else {
      EXPECT_THROW(chat.render_with(variables, moment()), Error);
    }
  }
  EXPECT_GE(rendered, 60u);
}

// One construct each; templates/make_probes.py asked jinja2 for the answers. A null is a refusal.
TEST(ChatTemplate, every_filter_test_and_method_does_what_jinja2_does) {
  const Value file = parse_json(read_file("tests/text/templates/probes.json"), "probes.json");
  const Dict& variables = file.as_dict().find("variables")->as_dict();
  const List& probes = file.as_dict().find("probes")->as_list();
  EXPECT_GE(probes.size(), 400u);
  for (const Value& probe : probes) {
    const std::string& source = probe.as_list()[0].as_string();
    const Value& expected = probe.as_list()[1];
    SCOPED_TRACE(source);
    if (expected.is_none()) {
      EXPECT_THROW((void)ChatTemplate(source).render_with(variables, moment()), Error);
      continue;
    }
    try {
      EXPECT_EQ(ChatTemplate(source).render_with(variables, moment()), expected.as_string());
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST(ChatTemplate, a_line_break_after_raw_belongs_to_the_text) {
  EXPECT_EQ(render("{% raw %}\nline\n{% endraw %}\nend"), "\nline\nend");
}

TEST(ChatTemplate, render_fills_in_the_usual_variables) {
  const ChatTemplate chat(
      "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ add_generation_prompt }}{{ x }}");
  ChatOptions options{.add_generation_prompt = false, .bos_token = "<s>", .eos_token = "</s>"};
  options.extra.set("x", Value(7));
  EXPECT_EQ(chat.render(parse_json(R"([{"role": "user", "content": "hi"}])", "messages"), options),
            "<s>hi</s>False7");
  EXPECT_THROW((void)chat.render(Value("hi")), Error);
}

TEST(ChatTemplate, whitespace_control_follows_trim_and_lstrip_blocks) {
  EXPECT_EQ(render("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(render("a  {%- if true -%}  b  {%- endif -%}  c"), "abc");
  EXPECT_EQ(render("a\n  {%+ if true +%}\nb{% endif %}"), "a\n  \nb");
  EXPECT_EQ(render("  {{ 1 }}\n{# note #}\nx"), "  1\nx");
  EXPECT_EQ(render("{{ 1 -}}   {{- 2 }}"), "12");
  EXPECT_EQ(render("line\r\nend\r\n"), "line\nend");
}

TEST(ChatTemplate, a_loop_has_its_own_scope_and_a_namespace_outlives_it) {
  EXPECT_EQ(render("{% set x = 0 %}{% for i in [1, 2] %}{% set x = x + i %}{% endfor %}{{ x }}"), "0");
  EXPECT_EQ(
      render("{% set n = namespace(x=0) %}{% for i in [1, 2] %}{% set n.x = n.x + i %}{% endfor %}{{ n.x }}"),
      "3");
  EXPECT_EQ(render("{% if true %}{% set x = 5 %}{% endif %}{{ x }}"), "5");
}

TEST(ChatTemplate, errors_name_line_and_column) {
  EXPECT_EQ(refusal("a\n{{ x + }}"), "template: line 2, column 8: expected an expression, found '}}'");
  EXPECT_EQ(refusal("{% if x %}"), "template: line 1, column 11: the template ends; expected '{% endif %}'");
  EXPECT_EQ(refusal("{{ 'abc }}"), "template: line 1, column 4: the string is not closed");
  EXPECT_EQ(refusal("{{ a"), "template: line 1, column 1: the tag is not closed; expected '}}'");
  EXPECT_EQ(refusal("{# a"), "template: line 1, column 1: the comment is not closed; expected '#}'");
  EXPECT_EQ(refusal("é{{ ? }}"), "template: line 1, column 5: unexpected character '?'");
  EXPECT_EQ(refusal("{{ x.y }}"), "template: line 1, column 5: 'x' is undefined, so it has no attribute 'y'");
  EXPECT_EQ(refusal("{{ 1 + 'a' }}"),
            "template: line 1, column 6: '+' is not possible between integer and string");
  EXPECT_EQ(refusal("{{ 1 // 0 }}"), "template: line 1, column 6: division by zero");
  EXPECT_EQ(refusal("{% set x.y = 1 %}", R"({"x": {}})"),
            "template: line 1, column 4: 'x' is not a namespace; only its attributes can be set");
  EXPECT_EQ(refusal("{{ f() }}"), "template: line 1, column 5: 'f' is not a known function or method");
  EXPECT_EQ(refusal("{{ raise_exception('no ' ~ 1) }}"), "template: no 1");
}

TEST(ChatTemplate, what_is_not_in_the_subset_is_named) {
  EXPECT_NE(refusal("{% include 'x' %}").find("unknown statement 'include'; known: if, for"),
            std::string::npos);
  EXPECT_NE(refusal("{{ 1 | nope }}").find("no filter named 'nope'; known: abs"), std::string::npos);
  EXPECT_NE(refusal("{{ 1 is nope }}").find("no test named 'nope'; known:"), std::string::npos);
  EXPECT_NE(refusal("{{ 'a' | trim(1, 2) }}").find("'trim'"), std::string::npos);
  EXPECT_NE(refusal("{{ [1] | join(sep=1) }}").find("'join' has no argument 'sep'"), std::string::npos);
  EXPECT_NE(refusal("{{ [].append(1) }}").find("'append' is not a known function or method"),
            std::string::npos);
  EXPECT_NE(refusal("{% break %}").find("'break' outside of a loop"), std::string::npos);
  EXPECT_NE(refusal("{% for x in [1] %}{{ loop([]) }}{% endfor %}").find("marked 'recursive'"),
            std::string::npos);
}

TEST(ChatTemplate, values_that_hold_each_other_are_freed) {
  EXPECT_EQ(render("{% set n = namespace() %}{% set n.self = n %}ok"), "ok");
  EXPECT_EQ(render("{% set n = namespace() %}{% for i in [1] recursive %}{% set n.l = loop %}{% set n.c = "
                   "loop.cycle %}{% endfor %}{{ n.l.length }}{{ n.c(7) }}"),
            "17");
  EXPECT_EQ(render("{% for i in [1] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}"), "1");
}

}  // namespace
}  // namespace rlx::text
