"""The kernels of recorded runs: folding loops, cutting to a length, comparing runs and stops, reading lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.debug.explain.native_trace import blocks_around, calls_in, divisors_in, names_in, pointers_in, writes
from trysquare.debug.explain.traces import compare, fit_lines, fold
from trysquare.debug.snapshot import SeenStop, differences


def lines_of(numbers: list[int]) -> list[tuple[int, str]]:
    return [(number, f"#{index} {number}") for index, number in enumerate(numbers)]


@given(st.lists(st.integers(1, 4), max_size=60))
def test_folding_keeps_the_order_and_counts_what_it_leaves_out(numbers: list[int]) -> None:
    lines = lines_of(numbers)
    folded = fold(lines)
    kept = [line for line in folded if line.startswith("#")]
    assert kept == [text for _, text in lines if text in set(kept)]
    if len(kept) == len(folded):
        assert len(kept) == len(numbers)


def test_a_loop_keeps_its_first_and_last_rounds() -> None:
    assert fold(lines_of([1, *[2, 3] * 10, 4])) == [
        "#0 1",
        "#1 2",
        "#2 3",
        "#3 2",
        "#4 3",
        "… 6 more rounds of lines 2 to 3",
        "#17 2",
        "#18 3",
        "#19 2",
        "#20 3",
        "#21 4",
    ]


@given(st.lists(st.text(max_size=40), max_size=40), st.integers(60, 400))
def test_a_text_fits_its_length(lines: list[str], longest: int) -> None:
    flat = [line.replace("\n", " ").replace("\r", " ") for line in lines]
    assert len(fit_lines(flat, longest).encode()) <= longest


def run(*steps: list[object]) -> dict[str, object]:
    return {"functions": [{"file": "a.py", "function": "f", "first_line": 1}], "steps": list(steps)}


def test_runs_that_are_alike_do_not_part() -> None:
    found = compare(run([0, 2, {"x": "1"}]), run([0, 2, {"x": "1"}]))
    assert (found.same, found.values, found.one, found.other) == (1, (), None, None)


def test_a_run_that_ends_earlier_parts_there() -> None:
    found = compare(run([0, 2, {}], [0, 3, {}]), run([0, 2, {}]))
    assert found.one is not None
    assert (found.one.line, found.other) == (3, None)


def test_stops_differ_by_the_path_to_what_differs() -> None:
    one = SeenStop(location="a", values={"x": "{'a': [1, 2], 'b': 0}", "gone": "1", "o": "<C object>"})
    other = SeenStop(location="b", values={"x": "{'a': [1, 3], 'c': 0}", "new": "2", "o": "<D object>"})
    assert differences(one, other) == {
        "x['a'][1]": "2 -> 3",
        "x['b']": "gone: 0",
        "x['c']": "new: 0",
        "gone": "gone: 1",
        "o": "<C object> -> <D object>",
        "new": "new: 2",
    }


@pytest.mark.parametrize(
    ("line", "names", "calls"),
    [
        ("return user.address.city; // user", ["user.address.city", "user"], []),
        ("int valid = count_valid(readings, count);", ["valid", "readings", "count"], ["count_valid"]),
        ('console.log("total", sum);', ["sum"], ["log"]),
    ],
)
def test_a_line_is_read_by_its_words(line: str, names: list[str], calls: list[str]) -> None:
    assert names_in(line) == names
    assert calls_in(line) == calls


def test_divisors_pointers_and_writes_are_read() -> None:
    assert divisors_in("return sum / valid;") == ["valid"]
    assert pointers_in("result += node->value + items[i];") == ["node", "items"]
    assert writes("sum += x;", "sum")
    assert writes("node->next = NULL;", "node")
    assert writes("count++;", "count")
    assert not writes("if (sum == 3)", "sum")


def test_the_blocks_around_a_line_are_found() -> None:
    lines = ["int f() {", "  for (;;) {", "    if (a) {", "      b++;", "    }", "  }", "}"]
    assert blocks_around(lines, 4) == (3, 2)
