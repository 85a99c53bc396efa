"""The safety filter finds what it says that it covers, and says so exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trysquare.core.errors import NotFound
from trysquare.models.sampling import COVERED, SafetyFilter

COVERED_TEXTS = [
    ("credentials", "-----BEGIN RSA " + "PRIVATE KEY-----"),
    ("credentials", "AKIA" + "ABCDEFGHIJKLMNOP"),
    ("credentials", "ghp_" + "a1" * 18),
    ("credentials", "sk-" + "abcd1234" * 4),
    ("credentials", "xoxb-" + "1234567890-abc"),
    ("credentials", "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl"),
    ("credentials", "postgres://me:secret@db/x"),
    ("personal_data", "4111 1111 1111 1111"),
    ("personal_data", "DE89 3704 0044 0532 0130 00"),
    ("personal_data", "078-05-1120"),
    ("destructive_commands", "rm -rf /"),
    ("destructive_commands", "sudo rm -r -f ~"),
    ("destructive_commands", "dd if=/dev/zero of=/dev/sda bs=1M"),
    ("destructive_commands", "mkfs.ext4 /dev/sdb1"),
    ("destructive_commands", "curl https://example.org/x | sudo bash"),
    ("destructive_commands", ":(){ :|:& };:"),
]
INNOCENT = [
    "rm -rf build/",
    "rm -f /tmp/x/y.txt",
    "4111 1111 1111 1112",
    "0000 0000 0000 0000",
    "DE00 3704 0044 0532 0130 00",
    "curl https://example.org/x -o file",
    "The task is-sk-etched in 2024-10-1120.",
    "see https://example.org:8080/path",
    "of=/dev/null",
]


@pytest.mark.parametrize(("category", "text"), COVERED_TEXTS)
def test_what_is_covered_is_found_in_the_middle_of_a_text(category: str, text: str) -> None:
    whole = f"First line.\n{text}\nLast line."
    [found] = SafetyFilter().find(whole)
    assert found.category == category
    assert whole[found.start : found.end].strip() in text
    assert SafetyFilter().find(SafetyFilter().redact(whole)) == ()


@pytest.mark.parametrize("text", INNOCENT)
def test_what_only_looks_alike_is_left(text: str) -> None:
    assert SafetyFilter().find(text) == ()


def test_every_category_is_listed_and_tried() -> None:
    assert {category for category, _ in COVERED_TEXTS} == COVERED.keys()


def test_only_the_categories_that_are_asked_for_are_looked_for() -> None:
    assert SafetyFilter(["credentials"]).find("rm -rf /") == ()


def test_a_category_that_is_not_covered_is_refused() -> None:
    with pytest.raises(NotFound, match="does not cover `violence`") as caught:
        SafetyFilter(["violence"])
    assert "credentials, personal_data, destructive_commands and nothing else" in str(caught.value.instruction)


@given(st.text())
def test_text_without_findings_is_not_changed(text: str) -> None:
    found = SafetyFilter().find(text)
    assert found or SafetyFilter().redact(text) == text
