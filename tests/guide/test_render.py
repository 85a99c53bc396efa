"""Render: templates choose and repeat, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from trysquare.guide import templates as render_module
from trysquare.guide import templates as sandbox
from trysquare.guide.documents import DocumentId, read_document
from trysquare.guide.templates import MAX_TEMPLATE, TemplateError, render

ID = DocumentId(category="lang", name="python")


def rendered(
    body: str,
    *,
    flags: dict[str, Any] | None = None,
    others: dict[str, str] | None = None,
    includes: str = "",
    **values: Any,
) -> str:
    document = read_document(ID, f"---\ntitle: Python\ntemplate: true\nincludes: [{includes}]\n---\n{body}")
    return render(document, flags=flags or {}, include=(others or {}).get, values=values)


def test_a_document_that_is_no_template_is_delivered_as_it_is():
    document = read_document(ID, "{{ nothing }} {% x")
    assert render(document, flags={}, include=lambda name: None) == "{{ nothing }} {% x"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("{% if flags.strict %}strict{% else %}loose{% endif %}", "strict"),
        ("{% if flags.unset %}a{% else %}b{% endif %}", "b"),
        ("[{{ flags.unset }}]", "[]"),
        ("{{ flags['list'] | join(', ') }}", "a, b"),
        ("{{ flags.items }}", "a flag"),
        ("{% for each in flags.list %}{{ loop.index }}{{ each }} {% endfor %}", "1a 2b "),
        ("{% for key, value in [('a', 1), ('b', 2)] %}{{ key ~ value }}{% endfor %}", "a1b2"),
        ("{{ document.title }} {{ document.id }}", "Python lang/python"),
        ("{{ 1 + 2 * 3 - 4 // 2 }} {{ 7 % 4 }} {{ 1.26 | round(1) }}", "5 3 1.3"),
        ("{% set x = 'a' %}{{ x ~ x }}{{ x + 'b' }}", "aaab"),
        ("{{ {'a': [1, 'é']} | tojson }}", '{"a": [1, "é"]}'),
        ("{{ nothing | default('none') }}", "none"),
        ("{{ 'b,a' | upper }} {{ [3, 1] | sort | first }} {{ 'abc' | length }}", "B,A 1 3"),
        ("{{ arguments[0] }} {{ 'x' in arguments }}", "first False"),
        ("{% if nothing is defined %}a{% else %}b{% endif %}", "b"),
        ("<b>{{ '<i>' }}</b>\n", "<b><i></b>\n"),
        ("{# a comment #}{% raw %}{{ x }}{% endraw %}", "{{ x }}"),
    ],
)
def test_a_template_chooses_and_repeats(body: str, expected: str):
    flags = {"strict": True, "list": ["a", "b"], "items": "a flag"}
    assert rendered(body, flags=flags, arguments=["first"]) == expected


def test_a_document_that_is_named_can_be_included_with_the_same_flags():
    others = {"lang/go": "go {{ flags.x }}"}
    assert rendered("{% include 'lang/go' %}", flags={"x": 1}, others=others, includes="lang/go") == "go 1"


@pytest.mark.parametrize(
    "body",
    ["{% include 'lang/go' %}", "{% include ['lang/go', 'x'] %}", "{% set a = 'lang/' %}{% include a ~ 'go' %}",
     "{% include '/etc/passwd' %}", "{% include '../secret.md' %}", "{% include 'lang/python/../go' %}"],
)  # fmt: skip
def test_a_document_that_is_not_named_cannot_be_included(body: str):
    with pytest.raises(TemplateError, match="not named in `includes`"):
        rendered(body, others={"lang/go": "secret"}, includes="docs/api")


def test_a_document_that_includes_itself_is_reported():
    with pytest.raises(TemplateError, match="includes itself"):
        rendered("{% include 'lang/python' %}")


@pytest.mark.parametrize(
    ("body", "line", "says"),
    [
        ("one\n\n{{ nope }}", 8, "'nope' is undefined"),
        ("{{ document.nope }}", 6, "nope"),
        ("\n{% if %}", 7, "Expected an expression"),
        ("{{", 6, "unexpected 'end of template'"),
        ("a\n{{ 1 / 0 }}", 7, "division by zero"),
        ("{{ [1, 'a'] | sort }}", 6, "not supported between"),
        ("{% nosuch %}", 6, "unknown tag"),
    ],
)
def test_a_wrong_template_is_reported_with_document_and_line(body: str, line: int, says: str):
    with pytest.raises(TemplateError, match=says) as caught:
        rendered(body)
    assert caught.value.message.startswith("`lang/python` ")
    assert f"(line {line})" in caught.value.message


def test_a_wrong_include_is_reported_with_its_own_name():
    with pytest.raises(TemplateError, match=r"`lang/go` .*\(line 2 "):
        rendered("{% include 'lang/go' %}", others={"lang/go": "\n{{ nope }}"}, includes="lang/go")


ESCAPES = [
    "{{ ''.__class__ }}",
    "{{ ''['__class__'] }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''|attr('__class__') }}",
    "{{ ''|attr('\\x5f\\x5fclass\\x5f\\x5f') }}",
    "{{ [''] | map(attribute='__class__') | list }}",
    "{{ ['{0.__class__}'] | map('format', '') | list }}",
    "{{ '{0.__class__.__init__.__globals__}'.format(flags) }}",
    "{{ '{0.__class__}'.format_map({'0': 1}) }}",
    "{{ 'x'|attr('for' ~ 'mat') }}",
    "{% set f = '{0.__class__}'.format %}{{ f(1) }}",
    "{{ self.__init__.__globals__.__builtins__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ joiner.__init__.__globals__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ lipsum.__globals__['os'].popen('id').read() }}",
    "{{ range(10**9) | list }}",
    "{{ dict.__base__ }}",
    "{{ config }}",
    "{{ request.application.__globals__ }}",
    "{{ get_flashed_messages.__globals__ }}",
    "{{ url_for.__globals__ }}",
    "{{ flags.__class__ }}",
    "{{ flags.clear() }}",
    "{{ flags.update({'a': 1}) }}",
    "{{ flags.keys.__self__ }}",
    "{{ flags.__missing__.__globals__ }}",
    "{{ flags['__init__'].__globals__ or nope }}",
    "{{ document.__init__ }}",
    "{{ document.metadata.pop('x') }}",
    "{{ (1).__class__ }}",
    "{{ [].append(1) }}",
    "{{ [].__add__ }}",
    "{{ arguments.append.__self__ }}",
    "{{ arguments.sort.__call__ }}",
    "{% for x in [1] %}{{ loop.__init__.__globals__ }}{% endfor %}",
    "{% for x in [1] %}{{ loop._iterator }}{% endfor %}",
    "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "{% for x in ().__class__.__base__.__subclasses__() %}{{ x }}{% endfor %}",
    "{% if ''.__class__ %}{% endif %}",
    "{% set flags.x = 1 %}",
    "{% set ns = namespace(a=1) %}",
    "{% macro m() %}{{ caller.__globals__ }}{% endmacro %}{{ m() }}",
    "{% call x() %}{% endcall %}",
    "{% filter upper %}x{% endfilter %}",
    "{% import 'os' as os %}",
    "{% from 'os' import system %}",
    "{% extends 'base' %}",
    "{% block x %}{{ super.__init__ }}{% endblock %}",
    "{{ x() }}",
    "{{ undefined_function.__globals__ }}",
    "{{ nope.__class__ }}",
    "{{ (nope|default).__class__ }}",
    "{{ 'a'.join(['b']) }}",
    "{{ ('%c' * 3) % (95, 95, 99) }}",
    "{{ '%s' % flags }}",
    "{{ ''|xmlattr }}",
    "{{ {'a': 1} | dictsort }}",
    "{{ [1] | sum(start=flags.__class__) }}",
    "{% do flags.clear() %}",
    "{% debug %}",
    "{% print ''.__class__ %}",
    "{{ g.pop.__globals__ }}",
    "{{ 'turn counted' | turn }}",
    "{{ [[]] | groupby('__class__') }}",
    "{{ ['a'] | sort(attribute='__class__') }}",
    "{{ ['a'] | unique(attribute='__class__.__name__') | list }}",
    "{{ ['a'] | max(attribute='__class__') }}",
    "{{ ['a'] | join('', attribute='__class__') }}",
    "{{ ['a'] | join('', '__class__') }}",
    "{{ 5 | default.__globals__ }}",
]


HARMLESS = ("", "a", "['a']")
"""A flag of an odd name is not set, and a single value needs no key to be sorted by."""


@pytest.mark.parametrize("body", ESCAPES)
def test_no_known_way_out_of_the_sandbox_is_one(body: str):
    try:
        shown = rendered(body, flags={"a": 1}, arguments=["x"])
    except TemplateError:
        return
    assert shown in HARMLESS


def test_a_plain_name_of_the_engine_shows_nothing_of_the_process():
    assert "0x" not in rendered("{{ self }}")


DOUBLING = [
    "{% set a = 'aa' %}" + "{% set a = a ~ a %}" * 40,
    "{% set a = 'aa' %}" + "{% set a = a + a %}" * 40,
    "{% set a = ['aa'] %}" + "{% set a = a + a %}" * 40,
    "{% set a = ['aa'] %}" + "{% set a = [a, a] %}" * 40 + "{{ a }}",
    "{% set a = ('aa',) %}" + "{% set a = (a, a) %}" * 40 + "{{ a == a }}",
    "{% set a = {'a': 1} %}" + "{% set a = {'a': a, 'b': a} %}" * 40 + "{{ a | tojson }}",
    "{% set a = 'a' * 1000000000 %}",
    "{% set a = [0] * 1000000000 %}",
    "{{ 9 ** 9 ** 9 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ 'a' | center(1000000000) }}",
    "{{ 'a' | indent(1000000000) }}",
    "{{ [1] | tojson(indent=1000000000) }}",
    "{{ 1.5 | round(1000000000, 'ceil') }}",
    "{{ 'a' | wordwrap(1) }}",
    "{{ '" + "a" * 20_000 + "' | list | join('" + "b" * 20_000 + "') }}",
    "{{ " + "9 * " * 40 + "9 }}",
    "{% for a in letters %}{% for b in letters %}{% for c in letters %}{% endfor %}{% endfor %}{% endfor %}",
    "{% for a in letters %}{% for b in letters %}{% set c = a %}{% endfor %}{% endfor %}",
    "{{ " + "(" * 3_000 + "1" + ")" * 3_000 + " }}",
    "{{ a" + ".a" * 5_000 + " }}",
    "{% if 1 %}" * 300 + "{% endif %}" * 300,
    "{% for a in [1] %}" * 40 + "{% endfor %}" * 40,
    "x" * (MAX_TEMPLATE + 1),
]


@pytest.mark.parametrize("body", DOUBLING, ids=range(len(DOUBLING)))
def test_no_short_template_becomes_large_or_runs_on(body: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sandbox, "MAX_TURNS", 2_000)
    with pytest.raises(TemplateError):
        rendered(body, letters="abcdefghij" * 10)


def test_time_that_is_used_up_ends_a_template(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sandbox, "MAX_SECONDS", -1.0)
    with pytest.raises(TemplateError, match="runs for more than"):
        rendered("{% for a in letters %}{% endfor %}", letters="a" * 300)


def test_a_long_output_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(render_module, "MAX_RENDERED", 1_000)
    with pytest.raises(TemplateError, match="1,000 characters"):
        rendered("{% for a in letters %}abcdefghij{% endfor %}", letters="a" * 101)


def test_an_included_text_is_held_to_the_same_rules():
    with pytest.raises(TemplateError, match="calls are not allowed"):
        rendered("{% include 'lang/go' %}", others={"lang/go": "{{ x() }}"}, includes="lang/go")
