"""The machine that runs the pages can itself fail: each way in which a page can lie is found."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.docs.pages import read_page
from tests.docs.runner import PageRun, compare
from trysquare import ConfigurationError


def run_text(folder: Path, text: str) -> None:
    page = folder / "page.md"
    page.write_text(dedent(text), encoding="utf-8")
    project = folder / "project"
    project.mkdir()
    PageRun(read_page(page), project).run()


def test_blocks_of_a_page_share_their_names_and_files(tmp_path: Path) -> None:
    run_text(
        tmp_path,
        """
        ```python title="shop.py"
        PRICE = 3
        ```
        ```python
        from shop import PRICE
        total = PRICE * 2
        ```
        ```python
        print(total)
        ```
        ```output
        6
        ```
        ```console
        $ python -c 'import shop; print(shop.PRICE)'
        3
        $ echo one; \\
            echo two
        one
        …
        ```
        """,
    )


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("```\nx\n```", "must name its language"),
        ("```klingon\nx\n```", "unknown language `klingon`"),
        ("```python maybe\nx = 1\n```", "unknown mark maybe"),
        ("```python\nprint(1)\n```\n```output\n2\n```", "but this came out"),
        ("```python\n1 / 0\n```", "page.md:1: ZeroDivisionError"),
        ('```python raises="KeyError"\nx = 1\n```', "KeyError was promised, and it did not come"),
        ("```output\n2\n```", "needs a python block before it"),
        ("```console\n$ echo a\nb\n```", "but this came out"),
        ("```console\n$ false\n```", "ended with 1, not 0"),
        ('```console exit="2"\n$ true\n```', "ended with 0, not 2"),
        ("```console\necho a\n```", "begins with `\\$ `"),
        ("```python\nx = 1\n", "never closed"),
        ("```console background\n$ echo started\nstopped\n```", "but this came out"),
    ],
)
def test_a_block_that_does_not_hold_fails_with_its_place(tmp_path: Path, block: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        run_text(tmp_path, block)


@pytest.mark.parametrize("block", ["```toml\na = \n```", "```json\n{,}\n```"])
def test_data_that_does_not_parse_fails(tmp_path: Path, block: str) -> None:
    with pytest.raises(ValueError):
        run_text(tmp_path, block)


def test_toml_that_is_no_valid_configuration_fails(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="Unknown setting `http"):
        run_text(tmp_path, "```toml\n[http]\nprot = 1\n```")


def test_a_raised_error_is_shown_with_its_type(tmp_path: Path) -> None:
    run_text(tmp_path, '```python raises="KeyError"\n{}["a"]\n```\n```output\nKeyError: \'a\'\n```')


def test_a_background_command_runs_until_the_page_ends(tmp_path: Path) -> None:
    run_text(tmp_path, "```console background\n$ python -uc 'print(\"up\"); input() if 0 else __import__(\"threading\").Event().wait()'\nup\n```")  # fmt: skip  # noqa: E501


def test_a_value_that_differs_each_time_is_learned_and_used(tmp_path: Path) -> None:
    run_text(
        tmp_path,
        """
        ```console learns="K-1234"
        $ python -c 'import os; print("key:", os.urandom(4).hex())' | tee key; true
        key: K-1234
        ```
        ```console
        $ grep -c K-1234 key
        1
        $ cat key
        key: K-1234
        ```
        """,
    )


def test_a_command_in_a_terminal_gets_what_is_typed(tmp_path: Path) -> None:
    run_text(
        tmp_path,
        """
        ```console types="yes"
        $ python -c 'import sys; print(input("Sure? "), sys.stdin.isatty())'
        Sure? yes
        yes True
        ```
        """,
    )


@pytest.mark.parametrize(
    ("shown", "came", "same"),
    [
        ("a … c", "a b c", True),
        ("a … c", "a b d", False),
        ("a\n…\nd", "a\nb\nc\nd", True),
        ("a\n…", "a\nb\nc", True),
        ("a\n…", "a", False),
        ("…\nz", "x\ny\nz", True),
        ("a…c", "a\nc", False),
        ("", "", True),
        ("", "a", False),
        ("a.c", "abc", False),
    ],
)
def test_an_ellipsis_stands_for_anything_in_a_line_or_for_lines(shown: str, came: str, same: bool) -> None:
    if same:
        compare("here", shown, came)
    else:
        with pytest.raises(AssertionError, match="here shows"):
            compare("here", shown, came)
