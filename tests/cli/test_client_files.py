"""The editors of clients' files: whatever a person wrote stays, byte for byte."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from trysquare.files import jsonc, toml
from trysquare.files.edit import TextError

ENTRY: dict[str, Any] = {"command": "/bin/trysquare", "args": ["serve", "--tools", "a:b"]}
PATH = ["mcpServers", "ours"]

NAMES = st.sampled_from(["a", "b", "mcpServers", "ours", "servers", 'with "quotes"', "ünï", ""]) | st.text(max_size=4)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False, width=16)
    | st.text(max_size=6)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
SPACES = st.sampled_from(["", "", " ", "\n", "\r\n", "\t", "// note }{\n", '/* a, "b": { */', "\n  ", " // x\r\n"])
SERVERS = st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=2), max_size=3)


@st.composite
def written_json(draw: st.DrawFn, value: Any) -> str:
    """A value as people write JSON: any white space, comments, trailing commas."""

    def spaced(text: str) -> str:
        return draw(SPACES) + text + draw(SPACES)

    def listed(parts: list[str], opening: str, closing: str) -> str:
        comma = "," + draw(SPACES) if parts and draw(st.booleans()) else ""
        return opening + draw(SPACES) + ",".join(spaced(part) for part in parts) + comma + closing

    def written(part: Any) -> str:
        if isinstance(part, dict):
            return listed([f"{json.dumps(k)}{draw(SPACES)}:{spaced(written(v))}" for k, v in part.items()], "{", "}")
        if isinstance(part, list):
            return listed([written(one) for one in part], "[", "]")
        return json.dumps(part, ensure_ascii=draw(st.booleans()))

    return draw(st.sampled_from(["", "\ufeff"])) + spaced(written(value))


@st.composite
def json_files(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    value = draw(st.dictionaries(NAMES, VALUES, max_size=3))
    value.pop("mcpServers", None)
    if draw(st.booleans()):
        value["mcpServers"] = draw(SERVERS)
    return draw(written_json(value)), value


def with_entry(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "mcpServers": {**value.get("mcpServers", {}), "ours": ENTRY}}


def is_insertion(before: str, after: str) -> bool:
    """Whether `after` is `before` with one text inserted, and perhaps one comma somewhere before that."""
    commas = [place for place in range(len(before) + 1) if after[place] == "," and after[:place] == before[:place]]
    return is_one_insertion(before, after) or any(
        is_one_insertion(before[place:], after[place + 1 :]) for place in commas
    )


def is_one_insertion(before: str, after: str) -> bool:
    pairs = enumerate(zip(before, after, strict=False))
    shared = next((place for place, (old, new) in pairs if old != new), len(before))
    return after.endswith(before[shared:]) and len(after) > len(before)


@given(json_files())
def test_an_entry_put_into_json_is_all_that_changes(file: tuple[str, dict[str, Any]]):
    text, value = file
    after = jsonc.put_entry(text, PATH, ENTRY)

    assert jsonc.read_entry(after, []) == with_entry(value)
    if "ours" not in value.get("mcpServers", {}):
        assert is_insertion(text, after)


@given(json_files())
def test_an_entry_replaced_in_json_leaves_what_stands_before_and_after_it(file: tuple[str, dict[str, Any]]):
    text, value = file
    first = jsonc.put_entry(text, PATH, ENTRY)
    second = jsonc.put_entry(first, PATH, {"command": "other"})

    assert jsonc.read_entry(second, ["mcpServers"]) == {**value.get("mcpServers", {}), "ours": {"command": "other"}}
    assert jsonc.put_entry(second, PATH, ENTRY) == jsonc.put_entry(jsonc.put_entry(first, PATH, ENTRY), PATH, ENTRY)


@given(json_files())
def test_an_entry_taken_out_of_json_is_all_that_goes(file: tuple[str, dict[str, Any]]):
    text, value = file
    after = jsonc.remove_entry(jsonc.put_entry(text, PATH, ENTRY), PATH)
    others = {name: part for name, part in value.get("mcpServers", {}).items() if name != "ours"}

    assert jsonc.read_entry(after, []) == {**value, "mcpServers": others}
    if value.get("mcpServers") and "ours" not in value["mcpServers"]:
        assert after == text


def problem_of(editor: Any, text: str) -> TextError | None:
    try:
        editor.put_entry(text, PATH, ENTRY)
    except TextError as error:
        return error
    return None


@given(st.text(max_size=30) | json_files().map(lambda file: file[0][:-1]))
def test_any_text_is_json_or_refused_with_its_place(text: str):
    problem = problem_of(jsonc, text)
    assert problem is None or (1 <= problem.line <= text.count("\n") + 1 and problem.column >= 1)


@given(st.binary(max_size=40).map(lambda raw: raw.decode("utf-8", "replace")))
def test_any_text_is_toml_or_refused_with_its_place(text: str):
    problem = problem_of(toml, text)
    assert problem is None or (1 <= problem.line <= text.count("\n") + 1 and problem.column >= 1)


TABLES = st.lists(
    st.sampled_from(
        [
            'model = "x"  # the model\n',
            "numbers = [\n  1, # one ]\n  2,\n]\n",
            "\n# a comment\n",
            "[profiles.fast]\nspeed = nan\n",
            '[mcpServers.other]\r\ncommand = "[mcpServers.ours]"\r\n',
            "[mcpServers.other.env]\nKEY = '''\n[mcpServers.ours]\n'''\n",
            '["odd.name"]\nwhen = 2026-07-28T00:00:00Z\n',
            "[[list]]\n[[list]]\nx = {a = 1}\n",
            "   [ spaced . out ]   \n",
        ]
    ),
    unique=True,
).map(lambda parts: "".join(sorted(parts, key=lambda part: part.lstrip().startswith("["))))


@given(TABLES, st.sampled_from(["", "\ufeff"]))
def test_a_table_put_into_toml_is_all_that_changes(body: str, mark: str):
    text = mark + body
    after = toml.put_entry(text, PATH, ENTRY)

    assert after.startswith(text)
    assert toml.read_entry(after, PATH) == ENTRY
    assert toml.remove_entry(after, PATH) == text
    replaced = toml.put_entry(after, PATH, {"command": "other", "env": {"a b": "1"}})
    assert toml.read_entry(replaced, PATH) == {"command": "other", "env": {"a b": "1"}}
    assert toml.remove_entry(replaced, PATH).rstrip() == text.rstrip()


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=10))
def test_any_text_survives_as_a_toml_value_and_name(text: str):
    entry = {"command": text, "args": [text]}
    assert tomllib.loads(toml.put_entry("", ["t", text], entry)) == {"t": {text: entry}}


def test_json_with_comments_tabs_and_windows_line_ends_keeps_them():
    before = '{\r\n\t// mine\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "x"}, // one\r\n\t},\r\n}\r\n'
    added = '\r\n\t\t"ours": {\r\n\t\t\t"command": "y"\r\n\t\t},'
    assert jsonc.put_entry(before, PATH, {"command": "y"}) == before.replace(" // one", " // one" + added)


def test_a_toml_table_is_replaced_where_it_stands_and_comments_of_the_next_one_stay():
    before = '[mcpServers.ours]\ncommand = "old"\n[mcpServers.ours.env]\nA = "1"\n\n# the next\n[next]\n'
    assert toml.put_entry(before, PATH, {"command": "new"}) == snapshot(
        '[mcpServers.ours]\ncommand = "new"\n\n# the next\n[next]\n'
    )


def test_a_toml_table_in_two_places_goes_and_every_comment_around_it_stays():
    before = (
        "# top\n[a]\n\n# ours\n[mcpServers.ours]\nx = 1 # it\n# about q\n[q]\n[mcpServers.ours.env]\nA = 1\n# end\n"
    )
    assert toml.remove_entry(before, PATH) == snapshot("# top\n[a]\n\n# ours\n# about q\n[q]\n# end\n")
    assert toml.put_entry(before, PATH, {"x": 2}) == snapshot(
        "# top\n[a]\n\n# ours\n[mcpServers.ours]\nx = 2\n# about q\n[q]\n# end\n"
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{\n  'a': 1\n}", "line 2, column 3"),
        ('{"a": 1', "line 1, column 8"),
        ('{"a": 01}', "line 1, column 8"),
        ('{"mcpServers": []}', "line 1, column 16"),
        ("[]", "line 1, column 1"),
        ('{"a": "\n"}', "line 1, column 7"),
        ("{} /* open", "line 1, column 4"),
        ("[" * 5000, "line 1, column 102"),
    ],
)
def test_json_that_cannot_be_edited_is_refused_with_its_place(text: str, place: str):
    with pytest.raises(TextError, match=place):
        jsonc.put_entry(text, PATH, ENTRY)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = 1\nb = \n", "line 2"),
        ("mcpServers = {other = {}}\n", "line 1"),
        ("[mcpServers]\nours = {command = 'x'}\n", "line 1"),
        ("mcpServers.ours.command = 'x'\n", "line 1"),
    ],
)
def test_toml_that_cannot_be_edited_is_refused_with_its_place(text: str, place: str):
    with pytest.raises(TextError, match=place):
        toml.put_entry(text, PATH, ENTRY)


GAPS = st.sampled_from(["", " ", "\n", "\r\n", "\n  ", " // c{}\n", "//c\n  ", "// c */\n", " /* c */ ", "/*c\n*/"])


@st.composite
def objects_with_gaps(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """An object with white space or a comment wherever one may stand, and its value."""
    value = draw(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9) | st.just({}), min_size=1, max_size=4))
    parts: list[str] = [draw(GAPS), "{"]
    for place, (name, inner) in enumerate(value.items()):
        parts += [draw(GAPS), json.dumps(name), draw(GAPS), ":", draw(GAPS), json.dumps(inner), draw(GAPS)]
        if place + 1 < len(value) or draw(st.booleans()):
            parts += [",", draw(GAPS)]
    return "".join([*parts, "}", draw(GAPS)]), value


@given(objects_with_gaps(), st.data())
def test_any_member_can_be_removed_wherever_comments_stand(
    made: tuple[str, dict[str, Any]], data: st.DataObject
) -> None:
    text, value = made
    name = data.draw(st.sampled_from(sorted(value)))
    after = jsonc.remove_entry(text, [name])
    assert jsonc.read_entry(after, []) == {other: kept for other, kept in value.items() if other != name}
