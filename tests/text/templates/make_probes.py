#!/usr/bin/env python3
"""Renders the small templates below with jinja2, set up as Hugging Face transformers sets it up, and writes what comes
out to probes.json: [source, result], where the result of what jinja2 refuses is null.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install jinja2 && /tmp/v/bin/python tests/text/templates/make_probes.py
"""
import json
import pathlib

import make_cases

VARIABLES = {"x": "<x & 'y'>", "n": 3, "f": 2.5, "t": True, "z": None, "s": "Hello World", "l": [3, 1, 2], "e": [],
             "d": {"b": 1, "a": [1, 2]}, "u": "Ünï çödé 日本", "m": [{"k": "b", "v": 1}, {"k": "A", "v": 2}, {"k": "b", "v": 3}],
             "tree": [{"v": 1, "c": [{"v": 2, "c": [{"v": 3, "c": []}]}]}, {"v": 4, "c": []}],
             "long": "The quick brown fox jumps over the lazy dog and runs away from the well-known mother-in-law."}

EXPRESSIONS = r"""
[1e15, 1e16, 3e8, 100000.0, 123456.789e3, 1e-4, 1e-5, 0.00012, 1e22, -2e5, 0.0, 5e-324]
1e6 ~ "|" ~ 1e15|round ~ "|" ~ "%s" % 2e5 ~ "|" ~ "{}".format(2e5)
{"a": 1e6, "b": [0.0001, 2.5e-7, 1e16]}|tojson
["\u200d", "\xa0", "\xad", "\u2028", "\ufeff", "\ue000", "\u0378", "\u0300", "\U000e0001", "\x7f", "é"]
"ΑΣ ΣΑ Σ ΑΣ. ΑΣΑ ΑΣ'Α"|lower
m|groupby("k")|map(attribute="grouper")|list
m|groupby("k")|map(attribute="list")|map("length")|list
"<"|safe + x
x + "<"|safe
("<b>"|safe) ~ x
(x|e) ~ x
x|escape
x|e|e
x|forceescape
(x|e)|forceescape
("<b>%s</b>"|safe) % x
("<b>%s</b>"|safe)|format(x)
("<b>{}</b>"|safe).format(x)
("<b>"|safe) * 2
("<i>"|safe)|upper
("<i>"|safe).upper() + x
("a,b"|safe).split(",")
("-"|safe).join([x, "b"])
("a<"|safe).replace("a", "<")
("abc"|safe)[1:] + "<"
[x|e]
x is escaped
x|e is escaped
none|selectattr("a")|list
none|map("upper")|list
none|select|list
none|reject|list
none|rejectattr("a")|list
nope|map("upper")|list
e|select|list
"%s"|format(n)
"%s and %s"|format(n, f)
"%(a)s-%(b)03d"|format(a=1, b=2)
"%s" % n
"%s %s" % (1, 2)
"%d" % 3.9
"%5d|%-5d|%05d|%+d|% d" % (1, 2, 3, 4, 5)
"%x %X %#x %o %#o" % (255, 255, 255, 8, 8)
"%.3f %10.2f %-10.2f| %e %g %G" % (f, f, f, 12345.678, 0.00001, 1e20)
"%5s|%-5s|%.2s" % ("a", "b", "cde")
"%r %s %a" % ("ü", "ü", "ü")
"%c%c" % (65, "b")
"%%" % ()
"%(a)s" % {"a": 1}
"%s" % d
"%s" % [1, 2]
"%*d" % (5, 3)
"%s"
"%s %s" % 1
"%d" % "a"
"a" % 1
"{}".format(x)
"{} {}".format(1, "b")
"{0} {1} {0}".format("a", "b")
"{a} {b}".format(a=1, b=2)
"{0[b]} {0[a][1]}".format(d)
"{:>8}|{:<8}|{:^8}|{:*^8}".format("a", "b", "c", "d")
"{:5d}|{:<5d}|{:^5d}|{:05d}|{:+d}".format(1, 2, 3, 4, 5)
"{:.2f} {:8.3f} {:e} {:g} {:%}".format(f, f, f, f, f)
"{:,} {:_} {:,.2f}".format(1234567, 1234567, 1234567.891)
"{:x} {:X} {:#x} {:b} {:o} {:c}".format(255, 255, 255, 5, 8, 65)
"{!r} {!s}".format("a", "b")
"{:{w}}|".format("a", w=5)
"{{}} {}".format(1)
"{:.2}".format("abc")
"{:.3} {}".format(12345.678, 1.0)
"{} {} {}".format(none, true, [1])
"{:5}|{:<7}|".format(true, none)
"{".format()
"{}".format()
"{} {0}".format(1)
"{a}".format_map({"a": 7})
{1: 2}
{1: 2}[1]
{1: "a", "b": none, none: 3, true: 4}
{1: 2}[1.0]
{(1, 2): 3}[(1, 2)]
{1: 2}|tojson
{1: 2, "a": 3}|length
1 in {1: 2}
{1: 2}.get(1)
{1: 2}.get("1", "no")
{[1]: 2}
l.0
m.0.k
l.5
u.0
d.a.1
0x1f + 0b101 + 0o17 + 1_000
0xFF
"1f"|int(0, 16)
"0x1f"|int(base=16)
"101"|int(base=2)
"z"|int(7)
"12.7"|int
"-5"|int
" 5 "|int
"1e3"|int
"abc"|int
none|int
f|int
"2.5"|float
"x"|float(1.5)
range(3)
range(1, 10, 3)
range(3)|list
range(5)[1]
range(5)|length
range(3) == range(3)
range(3) == [0, 1, 2]
range(3) is iterable
range(3) is sequence
2 in range(3)
range(0)
range(3)|tojson
d.keys()
d.values()
d.items()
d.keys()|list
d.items()|list
d.keys()|length
d.items()|sort
"a" in d.keys()
d.copy()
dict(d)
dict(d, c=3)
dict(a=1, b=2)
dict([["a", 1], ["b", 2]])
dict([(1, 2)])
l|map("string")|join("-")
"yes" if e|select else "no"
"yes" if l|map("abs") else "no"
l|map("abs")|length
l|map("abs")|first
l|reverse|list
l|reverse|first
l|map("abs")|last
l|last
m|groupby("k")
m|groupby("k")|map("first")|list
m|groupby("k", case_sensitive=true)
m|groupby("zz", default="q")
l|batch(2)|list
l|batch(2, "-")|list
l|slice(2)|list
l|slice(2, "-")|list
[1,2,3,4,5,6,7]|slice(3)|list
[1,2,3,4,5,6,7]|batch(3)|list
long|truncate(20)
long|truncate(20, true)
long|truncate(20, true, "…")
long|truncate(20, false, "", 0)
long|truncate(500)
s|truncate(5)
s|truncate(9, leeway=0)
u|truncate(4, true, "", 0)
long|wordcount
""|wordcount
"a_b c-d 1.5 é"|wordcount
long|wordwrap(20)
long|wordwrap(20, false)
long|wordwrap(10, wrapstring="|")
"abcdefghijklmnop qr"|wordwrap(5)
"abcdefghijklmnop qr"|wordwrap(5, false)
"a\n\nb c"|wordwrap(3)
"one two-three-four"|wordwrap(8)
"one two-three-four"|wordwrap(8, break_on_hyphens=false)
"  lead  in"|wordwrap(6)
"x"|center(5)
"ab"|center(5)
"ab"|center(6)
("x"|center)|length
"a b/c?d=é&f"|urlencode
{"a b": "c&d", "e": 1}|urlencode
[["a", 1], ["b", "x y"]]|urlencode
3|urlencode
"<p>a  <b>b</b>\n c &amp; &lt;d&gt; <!-- x --> e</p>"|striptags
"a < b"|striptags
d|attr("b")
d|attr("keys") is callable
d|pprint
[1, "a", none]|pprint
{"zzzzzzzzzzzzzzzzzzzzzzzzzzzz": "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": [1, 2]}|pprint
[[1]|random, ["a"]|random]
e|random is undefined
1|filesizeformat
13000|filesizeformat
13000|filesizeformat(true)
4100000|filesizeformat
"999"|filesizeformat
0|filesizeformat
1e30|filesizeformat
{"class": "a b", "id": none, "n": 1}|xmlattr
{"a": x}|xmlattr(false)
"it's a well-known (fact) of [life]"|title
"it's a well-known (fact)".title()
"hELLO wORLD"|capitalize
"ß ŉ ﬁ ǆ"|upper
"ß ŉ ﬁ ǆ".title()
"ǆabc".capitalize()
"İSTANBUL"|lower
"Straße".casefold()
"aBc Ä".swapcase()
"a.b.c".partition(".")
"a.b.c".rpartition(".")
"abc".partition(".")
"abc".rpartition(".")
"abcabc".index("c")
"abcabc".rindex("c")
"abc".index("z")
"abcabc".find("c", 3)
"abcabc".find("b", -3)
"abcabc".count("a", 1)
"abcabc".startswith("b", 1)
"abcabc".startswith(("x", "a"))
"abcabc".endswith("b", 0, 2)
"ab".center(7, "*")
"ab".center(6)
"ab".center(5)
"abc".center(6)
"ab".ljust(5) ~ "|"
"ab".rjust(5, "é")
"ab".ljust(5, "xy")
"-42".zfill(6)
"42".zfill(6)
"+1".zfill(1)
"a1".isalnum()
"a 1".isalnum()
"".isalnum()
"ABC".isupper()
"ABC1".isupper()
"123".isupper()
"abc".islower()
"Hello World".istitle()
"Hello world".istitle()
"½".isnumeric()
"一".isnumeric()
"²".isdigit()
"²".isdecimal()
"٣".isdecimal()
"½".isdigit()
"abc".isidentifier()
"1abc".isidentifier()
"a\tb\tcd".expandtabs()
"a\tb".expandtabs(4)
"abc".isascii()
"é".isascii()
" \t".isspace()
"a b  c d".rsplit(none, 2)
"a,b,c".rsplit(",", 1)
"a b c".split(none, 1)
"a\x0bb\x1cc\u2028d".splitlines()
"a\nb\r\nc".splitlines(true)
"aXbXc".replace("X", "-", 1)
"xxaxx".strip("x")
"prefix-a".removeprefix("prefix-")
[1, 2, 1].count(1)
[1, 2, 1].index(2)
[1, 2].index(5)
(1, 2).count(2)
[1, 2].copy()
[1].append(2)
"upper" is filter
"nope" is filter
"defined" is test
"nope" is test
"abc" is lower
"ABC" is upper
"a1" is lower
"1" is lower
d is mapping
l is sequence
d is iterable
3 is number
true is number
true is integer
3 is sameas 3
[1, 2] == (1, 2)
(1, 2) == (1, 2)
(1, 2) + (3,)
(1, 2)[0:1]
(1,) * 2
[1, 2] + (3,)
m|sort(attribute="k,v")|map(attribute="v")|list
m|sort(attribute="v", reverse=true)|map(attribute="v")|list
m|unique(attribute="k")|map(attribute="v")|list
m|max(attribute="v")
m|min(attribute="k")
["b", "A", "c"]|max
["b", "A", "c"]|min(case_sensitive=true)
m|sum(attribute="v")
[[1, "a"], [2, "b"]]|map(attribute=1)|list
[[1, "a"], [2, "b"]]|map(attribute="1")|join
[1, 2, 3]|join(", ")
m|join(",", attribute="k")
[1, 2]|join(1)
2.675|round(2)
0.5|round
1.5|round
2.5|round(0, "ceil")
1234|round(-2)
7|round
1234.5678|round(-2)
3|round(1)
"abc"|replace("b", 1)
l|sum(start=10)
d|dictsort
d|items|list
"a"|indent
"a\nb"|indent(2, true)
"a\n\nb"|indent("--", blank=true)
"abc"|list
"cba"|sort
"cba"|reverse
"aAbB"|unique|join
[true, 1, 1.0]|unique|list
x|tojson
u|tojson(ensure_ascii=true)
[1, [2, {"a": none}]]|tojson(indent=2)
{"b": 1, "a": 2}|tojson(sort_keys=true)
z|default("d")
z|default("d", true)
nope|default("d")
1.0
1e16
1e-7
123456789.123456789
1 / 3
-7 // 2
-7 % 3
7.5 // 2
2 ** -1
2 ** 0.5
"ab" < "b"
[1, 2] < [1, 3]
"é" in u
not n == 3
1 if n > 2 else 0
n is divisibleby 3
n is odd and not n is even
s[::-1]
s[-3:]
u[1:3]
l[:2] + [9]
"a" "b"
[1, 2, 3][1:][0]
loop
namespace(a=1).a
namespace({"a": 1}).a
cycler("a", "b").current
joiner is defined
"\u00e9\x41\n"
"a\qb"
true and none
d.b.c is undefined
nope.a
"x" * 3
"{0.a}".format(d)
"%s" % ("a",)
"a%sb%%" % "c"
z ~ t ~ n
"" ~ 1.0 ~ [none]
[1,2]|first ~ [1,2]|last
e|first is undefined
e|first
e|max
"a-b_c d"|title
"abc"|length + 1
-n|abs
[n]|map("abs")|list
[1, 0, 2]|select|list
[1, 0, 2]|reject|list
[1, 2, 3]|select("odd")|list
[1, 2, 3]|select(">", 1)|list
[1, 2, 3]|reject("divisibleby", 2)|list
m|selectattr("v", "gt", 1)|map(attribute="k")|list
m|rejectattr("k", "equalto", "b")|list
m|selectattr("nope")|list
m|map(attribute="nope", default="-")|join
["a", "b"]|map("upper")|join
["a", "b"]|map("replace", "a", "x")|list
[1.5, "a"]|map("string")|list
"a b c".split()|map("capitalize")|join(" ")
"  a "|trim ~ "|"
"xxaxx"|trim("x")
"abc"|string|upper
[[3, 1], [2]]|map("sum")|list
"1,2,3".split(",")|map("int")|sum
"k=v;a=b".split(";")|map("split", "=")|list
"""

STATEMENTS = [
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% set (a, (b,)), c = [[1, [2]], 3] %}{{ a }}{{ b }}{{ c }}",
    "{% for a, (b, c) in [(1, 2)] %}{% endfor %}",
    "{% raw %}\nline\n{% endraw %}\nend", "a\n  {% raw %}\n x {{ y }}\n  {% endraw %}\nb", "{% raw -%}\n  x {%- endraw %}!",
    "{% for a in tree recursive %}{{ a.v }}:{{ loop.depth }}{% if a.c %}[{{ loop(a.c) }}]{% endif %},{% endfor %}",
    "{% for a in tree recursive %}{{ loop.index }}/{{ loop.length }}({{ loop(a.c) }}){% else %}-{% endfor %}",
    "{% for a in l %}{{ loop(l) }}{% endfor %}",
    "{% for a in l %}{% for b in l %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}{% endfor %}",
    "{% for a in l %}{{ loop }} {% endfor %}",
    "{% macro f(a) %}{{ a }}|{{ varargs }}|{{ kwargs }}{% endmacro %}{{ f(1, 2, 3, k=4) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, k=2) }}",
    "{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(*[1, 3]) }}{{ f(**{'b': 5, 'a': 4}) }}{{ f(7, **{'b': 8}) }}",
    "{% macro f() %}{{ caller() }}{% endmacro %}{% call f() %}x{% endcall %}",
    "{% macro f() %}y{% endmacro %}{% call f() %}x{% endcall %}",
    "{% macro f() %}{{ varargs|length }}{{ caller('q') }}{% endmacro %}{% call(p) f(1, 2) %}{{ p }}{% endcall %}",
    "{{ dict(*[[['a', 1]]]) }}", "{{ range(*[1, 4])|list }}", "{{ '%s-%s'|format(*l[:2]) }}",
    "{% set g = l|map('abs') %}{% for a in g %}{{ a }}{% endfor %}|{% for a in g %}{{ a }}{% endfor %}",
    "{% set g = l|map('abs') %}{{ 1 in g }}{{ g|list }}", "{% set g = l|map('abs') %}{{ g|first }}{{ g|first }}{{ g|list }}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k in d %}{{ k }}{% endfor %}",
    "{% for g in m|groupby('k') %}{{ g.grouper }}:{{ g.list|length }};{% endfor %}",
    "{% for k, v in m|groupby('k') %}{{ k }}={{ v|map(attribute='v')|join('+') }};{% endfor %}",
    "{% for row in range(7)|batch(3, '-') %}{{ row|join(' ') }}\n{% endfor %}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}",
    "{% set j = joiner('|') %}{% for a in l %}{{ j() }}{{ a }}{% endfor %}",
    "{% for a in l %}{{ loop.cycle('x', 'y') }}{{ loop.changed(a > 1) }}{% endfor %}",
    "{% for a in l if a > 1 %}{{ loop.index }}{{ a }}{{ loop.revindex }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% set ns = namespace(n=0) %}{% for a in l %}{% set ns.n = ns.n + a %}{% endfor %}{{ ns.n }}",
    "{% filter upper %}a{{ x }}{% endfilter %}", "{% set q %}a{{ x }}{% endset %}{{ q }}{{ q is escaped }}",
    "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}", "{% if none %}a{% elif e %}b{% else %}c{% endif %}",
    "{% for a in none %}x{% endfor %}", "{% for a in e %}x{% else %}none{% endfor %}",
    "{% macro f(x) %}{{ x|e }}{% endmacro %}{{ f('<') }}{{ f('<') is escaped }}",
    "{{ 'a' if false }}", "{{ nope }}", "{{ (1, 2,) }}", "{{ 1, 2 }}", "{% set a, b = 1, 2 %}{{ b }}{{ a }}",
    "{% set a = 1 %}{% if true %}{% set a = 2 %}{% endif %}{{ a }}", "{{ loop is defined }}",
    "{% for a, b in [[1, 2], [3, 4]] %}{{ a }}{{ b }};{% endfor %}", "{% for a in 'abc' %}{{ loop.last }}{% endfor %}",
    "{% set a = l|list %}{{ a is sequence }}{{ l|map('abs') is sequence }}{{ l|map('abs') is iterable }}",
    "{{ {'a': {'b': [1, 2]}}.a.b[1] }}", "{{ m[0]['k'] }}{{ m[-1].v }}", "{{ '{{' }}", "{{ '}}' }}", "{# c #}x{#- y -#} z",
]


def main():
    env = make_cases.environment()
    probes = []
    for source in ["{{ %s }}" % line for line in EXPRESSIONS.strip().split("\n")] + STATEMENTS:
        try:
            probes.append([source, env.from_string(source).render(**VARIABLES)])
        except Exception:
            probes.append([source, None])
    path = pathlib.Path(__file__).parent / "probes.json"
    text = ",\n".join(json.dumps(p, ensure_ascii=False) for p in probes)
    path.write_text('{"variables": ' + json.dumps(VARIABLES, ensure_ascii=False) + ',\n"probes": [\n' + text + "\n]}\n",
                    encoding="utf-8")


main()
