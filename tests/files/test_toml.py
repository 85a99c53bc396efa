"""Where keys stand in a TOML text."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.files.toml import key_lines


def test_each_key_and_table_has_the_line_where_it_is_first_given() -> None:
    text = 'a = 1\n\n[http]\n# a comment with = and [brackets]\nport = 8000\n\n[http.oauth]\nissuer = "x"\n'
    assert key_lines(text) == {
        ("a",): 1,
        ("http",): 3,
        ("http", "port"): 5,
        ("http", "oauth"): 7,
        ("http", "oauth", "issuer"): 8,
    }


@pytest.mark.parametrize(
    "value",
    [
        '"""\nb = 1\n[c]\n"""',
        "'''\nb = 1\n'''",
        "[\n  1, # b = 2\n  2,\n]",
        '["[", "]"]',
        '{ b = "}", c = [1] }',
        '"a \\" # b"',
        '""',
        "''",
        "1979-05-27T07:32:00Z # b = 3",
    ],
)
def test_a_value_of_any_form_is_passed_over_whole(value: str) -> None:
    text = f"a = {value}\nlast = 1\n"
    tomllib.loads(text)
    assert key_lines(text)[("last",)] == text.count("\n", 0, text.index("last = 1")) + 1


def test_quoted_and_dotted_keys_are_read_as_toml_reads_them() -> None:
    assert key_lines('"a.b".c = 1\n[ x . "y z" ]\n') == {
        ("a.b",): 1,
        ("a.b", "c"): 1,
        ("x",): 2,
        ("x", "y z"): 2,
    }


KEYS = st.text("ab_-1", min_size=1, max_size=4)
SCALARS = st.one_of(
    st.integers(-5, 5).map(str),
    st.sampled_from(['"#"', '"[x] = 1"', "'\\'", '"""a\n= b"""', "'''\n[q]\n'''", "true", "[]", "[1,\n2]", '["]"]']),
)


@given(
    st.dictionaries(KEYS, st.dictionaries(KEYS, SCALARS, max_size=4), max_size=4),
    st.sampled_from(["\n", "\n\n# c=1\n"]),
)
def test_every_key_that_toml_reads_is_found_on_the_line_that_names_it(
    tables: dict[str, dict[str, str]], gap: str
) -> None:
    text = "".join(
        f"[{table}]\n" + "".join(f"{key} = {value}{gap}" for key, value in values.items())
        for table, values in tables.items()
    )
    found = key_lines(text)
    lines = text.split("\n")
    parsed: dict[str, dict[str, Any]] = tomllib.loads(text)
    assert set(found) == {(t,) for t in parsed} | {(t, k) for t, values in parsed.items() for k in values}
    for path, line in found.items():
        assert lines[line - 1].startswith((f"[{path[-1]}]", f"{path[-1]} ="))
