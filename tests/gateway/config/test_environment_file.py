"""Environment files, as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.gateway.config.variables import UnusableFile, parse_environment, read_environment


def test_lines_with_comments_quotes_and_export_are_understood() -> None:
    text = """\
# keys of ours
A=1
 export B = two words # and a comment
C="three # no comment"
D='four "quoted"'
E=
F=a=b=c
G="open
A=again
"""
    assert parse_environment(text) == {
        "A": "again",
        "B": "two words",
        "C": "three # no comment",
        "D": 'four "quoted"',
        "E": "",
        "F": "a=b=c",
        "G": '"open',
    }


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_its_line(text: str) -> None:
    try:
        found = parse_environment(text)
    except UnusableFile as error:
        assert str(error).startswith("line ")  # noqa: PT017 - the text decides which of the two is right
    else:
        assert all(name and "=" not in name for name in found)


def test_a_file_that_cannot_be_used_is_named_without_its_values(tmp_path: Path) -> None:
    path = tmp_path / "keys.env"
    with pytest.raises(UnusableFile, match=r"keys\.env: No such file"):
        read_environment(path)
    path.write_bytes(b"A=1\ns3cret\n")
    with pytest.raises(UnusableFile, match=r"keys\.env, line 2") as caught:
        read_environment(path)
    assert "s3cret" not in str(caught.value)
    path.write_bytes(b"A=\xff\n")
    with pytest.raises(UnusableFile, match="UTF-8"):
        read_environment(path)
