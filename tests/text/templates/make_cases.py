#!/usr/bin/env python3
"""Renders every template of this folder over the conversations below with jinja2, set up as Hugging Face
transformers sets it up, and writes what comes out to cases.json.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install jinja2 && /tmp/v/bin/python tests/text/templates/make_cases.py

The templates were written for these tests after the prompt formats the models publish, in their style and with their
constructs; where a format leaves little freedom they come close to the published text.
"""
import datetime
import json
import pathlib

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = datetime.datetime(2025, 3, 9, 14, 5, 7)
TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "Current weather in a city.",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "name of the city"},
        "unit": {"type": "string", "enum": ["c", "f"]}}, "required": ["city"]}}}]
USER = {"role": "user", "content": "Hello, who are you?"}
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "abcdefghi", "type": "function",
     "function": {"name": "get_weather", "arguments": {"city": "Köln", "unit": "c"}}}]}
RESULT = {"role": "tool", "name": "get_weather", "tool_call_id": "abcdefghi", "content": "{\"temp\": 21}"}

CONVERSATIONS = {
    "one_question": {"messages": [USER]},
    "system_and_turns": {"messages": [
        {"role": "system", "content": "You are terse.\n"}, {"role": "user", "content": " Hi  "},
        {"role": "assistant", "content": " Hello! "},
        {"role": "user", "content": "Zwölf Boxkämpfer & <tags> \"quoted\" 日本語 🙂"}]},
    "no_generation_prompt": {"messages": [
        {"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}], "add_generation_prompt": False},
    "tools_offered": {"messages": [{"role": "user", "content": "Weather in Köln?"}], "tools": TOOLS},
    "tool_called": {"messages": [
        {"role": "user", "content": "Weather in Köln?"}, CALL, RESULT,
        {"role": "assistant", "content": "It is 21 °C."}, {"role": "user", "content": "Thanks"}], "tools": TOOLS},
    "thought": {"messages": [
        {"role": "user", "content": "2*21?"}, {"role": "assistant", "content": "<think>\neasy\n</think>\n\n42"},
        {"role": "user", "content": "sure?"}], "enable_thinking": False},
    "two_questions_in_a_row": {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]},
    "parts": {"messages": [{"role": "user", "content": [
        {"type": "image"}, {"type": "text", "text": " What is this? "}]}]},
}


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def main():
    here = pathlib.Path(__file__).parent
    cases = []
    for path in sorted(here.glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        for name, conversation in CONVERSATIONS.items():
            variables = {"messages": [], "tools": None, "documents": None, "add_generation_prompt": True,
                         "bos_token": "<s>", "eos_token": "</s>", **conversation}
            case = {"template": path.name, "conversation": name, "variables": variables}
            try:
                case["expected"] = environment().from_string(source).render(**variables)
            except Exception as e:  # the template refuses the conversation
                case["refused"] = str(e)
            cases.append(case)
    text = json.dumps({"made_by": "jinja2 " + jinja2.__version__, "now": NOW.isoformat(), "cases": cases},
                      ensure_ascii=False, indent=1)
    (here / "cases.json").write_text(text + "\n", encoding="utf-8")
    print(len(cases), "cases,", sum("refused" in c for c in cases), "of them refused")


if __name__ == "__main__":
    main()
