"""The wording of the product: one golden file, and rules of voice over it."""

from __future__ import annotations

import ast
import re
from difflib import unified_diff

import pytest

from tests.texts.collect import GOLDEN, Text, collect, error_classes, render, texts_of

OLD_VOICE = (
    r"is meant, it seems",
    r"\bit seems\b",
    r"\bone \w+ too many\b",
    r"(?<!there )\b(is|are) no (?!longer|more)\w+",
    r"\bthere (is|are) none\b",
    r"\blies? in\b",
    r"\bof ours\b",
    r"\bthe person\b",
    r"\ba person (has to|must|may)\b",
    r"\bnobody\b",
    r"\bwhat came of it\b",
    r"\bis to be had\b",
    r"\b(door|room|desk|bench|vanguard|errand|supervisor|sayings|healing|mending|mended)s?\b",
    r"\b(tells|told|heard|hears|knows)\b",
    r"\bbeside\b",
    r"\bslip of the pen\b",
)
"""Phrases of a private dialect. Write "is not a directory", "Unknown argument `nam`. Did you mean `name`?"."""

BUDGET = 10
"""How many texts still have such a phrase. Lower it with every text that is rewritten; it never rises."""


@pytest.fixture(scope="module")
def texts() -> list[Text]:
    return collect()


def test_the_golden_file_holds_every_text(texts: list[Text]) -> None:
    changes = unified_diff(GOLDEN.read_text("utf-8").splitlines(), render(texts).splitlines(), "golden", "source", n=0)
    shown = "\n".join(list(changes)[:40])
    assert not shown, f"texts changed; read them, then run `python -m tests.texts.refresh`\n{shown}"


def test_texts_lose_the_old_voice(texts: list[Text]) -> None:
    pattern = re.compile("|".join(OLD_VOICE), re.IGNORECASE)
    found = [f"{text.module}: {text.template}" for text in texts if pattern.search(text.template)]
    listed = "\n".join(found[:40])
    assert len(found) <= BUDGET, f"{len(found)} texts, allowed {BUDGET}: rewrite a new one in plain words\n{listed}"


def test_the_collector_finds_each_kind_of_text() -> None:
    tree = ast.parse(
        '''
class Lost(ToolError):
    default_code = ErrorCode.FILE_NOT_FOUND

def act(log, parser, name):
    """Read by programmers only, so it is not a text."""
    log.warning("event=%s failed", name)
    parser.add_argument("--json", help="print JSON")
    _ABOUT_NAME = "the name of the file"
    option("name", help=_ABOUT_NAME)
    option("--all", help="read all of it")
    text = f"The file `{name}` was left out."
    raise Lost("No file " + name, instruction="Name another." if name else "Name one.")

@tools.declare(use_when="a file is wanted")
def read(): 
    """Read a file."""
    raise Lost(f"Gone: {name}", code=ErrorCode.FILE_CONFLICT)
'''
    )
    assert sorted((text.kind, text.template) for text in texts_of("m", tree, error_classes([tree]))) == [
        ("Lost FILE_CONFLICT", "Gone: {…}"),
        ("Lost FILE_NOT_FOUND", "No file {…}\ninstruction: Name another.\ninstruction: Name one."),
        ("description", "Read a file."),
        ("help", "help: print JSON"),
        ("help", "help: read all of it"),
        ("help", "help: the name of the file"),
        ("log", "event=%s failed"),
        ("text", "The file `{…}` was left out."),
        ("text", "use_when: a file is wanted"),
    ]
