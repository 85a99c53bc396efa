"""Selection: which documents an expression means."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.guide.contents import FixedContent, document
from tests.support import size
from trysquare import ErrorCode
from trysquare.core.errors import NotFound
from trysquare.guide.documents import Document
from trysquare.guide.expression import parse_expression
from trysquare.guide.selection import MAX_WARNINGS, Selection, matches, select

CONTENT = FixedContent(
    held=[
        document("lang/backend/go", tags=frozenset({"web"})),
        document("lang/python", tags=frozenset({"web", "draft"})),
        document("lang/rust"),
        document("docs/api", tags=frozenset({"web"})),
        document("docs/python"),
        document("guide/all"),
    ],
    named={
        "start": ["lang/python", "docs"],
        "more": ["start", "lang"],
        "docs": ["docs/api"],
        "loop": ["lang/rust", "loop"],
        "one": ["lang/rust", "other"],
        "other": ["docs/api", "one"],
        "broken": ["lang/rust", "/x", "nosuch", "lang/zzz"],
    },
)


def chosen(text: str, content: FixedContent = CONTENT) -> Selection:
    return select(parse_expression(text), content)


def ids(selection: Selection) -> list[str]:
    return [str(each.document.id) for each in selection.chosen]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lang/python+rust,guide", ["lang/python", "lang/rust", "guide/all"]),
        ("guide,lang/rust", ["guide/all", "lang/rust"]),
        (" lang / python ", ["lang/python"]),
        ("lang/PY*", ["lang/python"]),
        ("lang/python.md", ["lang/python"]),
        ("lang/+", ["lang/backend/go", "lang/python", "lang/rust"]),
        ("lang/rust+python+rust", ["lang/rust", "lang/python"]),
        ("lang/go", ["lang/backend/go"]),
        ("lang/backend/go", ["lang/backend/go"]),
        ("lang/backend/", ["lang/backend/go"]),
        ("lang,lang/python", ["lang/backend/go", "lang/python", "lang/rust"]),
        ("lang,-#draft", ["lang/backend/go", "lang/rust"]),
        ("-lang/rust,lang", ["lang/backend/go", "lang/python"]),
        ("#web & lang", ["lang/backend/go", "lang/python"]),
        ("lang & #web,-#draft", ["lang/backend/go"]),
        ("start", ["lang/python", "docs/api", "docs/python"]),
        ("more/python", ["lang/python", "docs/python"]),
        ("docs", ["docs/api"]),
        ("more", ["lang/python", "docs/api", "docs/python", "lang/backend/go", "lang/rust"]),
    ],
)
def test_documents_come_in_order_and_once(text: str, expected: list[str]):
    assert ids(chosen(text)) == expected


def test_a_name_that_is_both_means_the_collection_outside_and_the_category_inside():
    assert ids(chosen("docs")) == ["docs/api"]
    assert ids(chosen("start")) == ["lang/python", "docs/api", "docs/python"]


@pytest.mark.parametrize(
    ("text", "says", "nearest"),
    [
        ("lnag", "Unknown category or collection `lnag`", ["lang"]),
        ("lang/pyhton", "Nothing matches `lang/pyhton`", ["python"]),
        ("lang/../../*", "Nothing matches", []),
        ("lang/python.mustache", "Nothing matches", None),
        ("lang/g", "Nothing matches", None),
        ("#nosuch", "Nothing matches `#nosuch`", []),
        ("lang,-lnag", "Unknown category or collection `lnag`", ["lang"]),
        ("lang & docs", "Nothing matches", []),
        ("lang,-lang", "excludes all that it names", None),
    ],
)
def test_no_match_is_a_failure_with_the_nearest_names(text: str, says: str, nearest: list[str] | None):
    with pytest.raises(NotFound) as caught:
        chosen(text)
    assert says in caught.value.message
    assert caught.value.code == ErrorCode.RESOURCE_NOT_FOUND
    if nearest is not None:
        assert caught.value.fields.get("nearest") == nearest


def test_each_document_tells_which_part_chose_it():
    found = {str(each.document.id): each.because for each in chosen("lang/rust,lang").chosen}
    assert found["lang/rust"] == "lang/rust"
    assert found["lang/python"] == "lang"


def test_exclusions_are_reported():
    selection = chosen("lang,-#draft")
    assert [(str(each.document.id), each.because) for each in selection.excluded] == [("lang/python", "-#draft")]


def test_an_exclusion_that_excludes_nothing_is_reported():
    assert chosen("lang,-lang/zzz").warnings == ("`-lang/zzz` excludes nothing.",)


@pytest.mark.parametrize(
    ("text", "expected", "warning"),
    [
        ("loop", ["lang/rust"], "Collection `loop` contains itself (loop > loop); the inner one was left out."),
        ("one", ["lang/rust", "docs/api"], "Collection `one` contains itself (one > other > one)"),
        ("other", ["docs/api", "lang/rust"], "Collection `other` contains itself (other > one > other)"),
    ],
)
def test_a_collection_with_a_cycle_is_reported_and_the_rest_counts(text: str, expected: list[str], warning: str):
    selection = chosen(text)
    assert ids(selection) == expected
    assert selection.warnings[0].startswith(warning)


def test_collections_of_one_circle_asked_for_together_are_both_whole():
    assert ids(chosen("one,other")) == ["lang/rust", "docs/api"]
    assert ids(chosen("loop,one,other,-lang/rust")) == ["docs/api"]


def test_broken_members_of_a_collection_are_reported_and_the_others_count():
    selection = chosen("broken")
    assert ids(selection) == ["lang/rust"]
    assert [warning.partition(": ")[0] for warning in selection.warnings] == [
        "Collection `broken`, `/x`",
        "Collection `broken`, `nosuch`",
    ]


def test_collections_nested_too_deeply_are_reported():
    deep = {f"c{n}": [f"c{n + 1}"] for n in range(40)} | {"c40": ["lang"]}
    with pytest.raises(NotFound):
        chosen("c0", FixedContent(held=[document("lang/a")], named=deep))
    found = chosen("c0", FixedContent(held=[document("lang/a")], named={**deep, "c0": ["lang", "c1"]}))
    assert ids(found) == ["lang/a"]
    assert "nested deeper" in found.warnings[0]


def test_collections_that_hold_one_another_many_times_over_are_opened_once():
    tree = {f"c{n}": [f"c{n + 1}"] * 50 for n in range(14)} | {"c14": ["lang"]}
    assert ids(chosen("c0", FixedContent(held=[document("lang/a")], named=tree))) == ["lang/a"]


def test_collections_that_all_hold_all_end_with_a_warning():
    names = [f"c{n}" for n in range(14)]
    tangle = {name: ["lang", *names] for name in names}
    selection = chosen("c0", FixedContent(held=[document("lang/a")], named=tangle))
    assert ids(selection) == ["lang/a"]
    assert len(selection.warnings) == MAX_WARNINGS


@pytest.mark.parametrize(
    ("name", "pattern", "fits"),
    [
        ("python", "python", True),
        ("backend/python", "python", True),
        ("backend/python", "back*", True),
        ("backend/python", "backend/python.md", True),
        ("backend/python", "end/python", False),
        ("Python", "pYTHON.MD", True),
        ("python", "py?hon", True),
        ("python", "[a-z]ython", True),
        ("python", "[!p]ython", False),
        ("python", "[", False),
        ("a[b", "a[[]b", True),
        ("python", "../python", False),
        ("python", "/python", False),
        ("python", "**/python", False),
        ("backend/python", "**/python", True),
        ("py\nthon", "py*", True),
    ],
)
def test_a_name_fits_a_pattern_as_in_file_names(name: str, pattern: str, fits: bool):
    assert matches(name, pattern) is fits


names = st.sampled_from(["a", "b", "sub/a", "sub/c", "D", "deep/er/b"])
made = st.lists(
    st.builds(
        lambda category, name, tags: document(f"{category}/{name}", tags=frozenset(tags)),
        st.sampled_from(["x", "y"]), names, st.lists(st.sampled_from(["t", "u"]), max_size=2),
    ),
    min_size=1, max_size=10, unique_by=lambda each: each.id,
)  # fmt: skip
operands = st.sampled_from(["x", "y", "x/a", "y/a+b", "x/*", "x/sub/", "#t", "#u", "both", "y/d", "x/?"])
parts = st.builds(
    lambda minus, some: minus + " & ".join(some),
    st.sampled_from(["", "", "-"]),
    st.lists(operands, min_size=1, max_size=2),
)


@hypothesis_settings(max_examples=size(300, 5_000))
@given(made, st.lists(parts, min_size=1, max_size=4))
def test_a_selection_is_what_its_parts_say(held: Sequence[Document], texts: list[str]):
    content = FixedContent(held=[*held, document("x/last"), document("y/last")], named={"both": ["x/a,y", "#t"]})
    texts = ["x,y", *texts] if all(text.startswith("-") for text in texts) else texts
    wanted, excluded = _by_hand(content, texts)
    try:
        selection = chosen(",".join(texts), content)
    except NotFound:
        assert wanted is None or not set(wanted) - excluded
        return
    assert wanted is not None
    assert ids(selection) == [each for each in wanted if each not in excluded]
    assert len(set(ids(selection))) == len(ids(selection))
    assert {str(each.document.id) for each in selection.excluded} == excluded & set(wanted)


def _by_hand(content: FixedContent, texts: list[str]) -> tuple[list[str] | None, set[str]]:
    """The same by sets: what each part holds, one after the other. None where a part that adds holds nothing."""
    wanted: list[str] = []
    excluded: set[str] = set()
    for text in texts:
        for part in text.split(","):
            sets = [_operand(content, each.strip()) for each in part.removeprefix("-").split("&")]
            found = [each for each in sets[0] if all(each in other for other in sets)]
            if part.startswith("-"):
                excluded.update(found)
            elif not found:
                return None, excluded
            else:
                wanted.extend(each for each in found if each not in wanted)
    return wanted, excluded


def _operand(content: FixedContent, text: str) -> list[str]:
    everything = [str(each.id) for each in content.held]
    if text == "both":
        return list(dict.fromkeys(_operand(content, "x/a") + _operand(content, "y") + _operand(content, "#t")))
    if text.startswith("#"):
        return [str(each.id) for each in content.held if text[1:] in each.tags]
    category, _, patterns = text.partition("/")
    inside = [each for each in everything if each.startswith(category + "/")]
    if not patterns:
        return inside
    found = [each for pattern in patterns.split("+") for each in inside if _fits(each.partition("/")[2], pattern)]
    return list(dict.fromkeys(found))


def _fits(name: str, pattern: str) -> bool:
    last = name.rpartition("/")[2]
    if pattern == "*":
        return True
    if pattern == "?":
        return len(last) == 1
    if pattern.endswith("/"):
        return name.startswith(pattern)
    return pattern.lower() in (name.lower(), last.lower())
