"""Outlines: by tree-sitter and by Python's own parser, which agree."""

from __future__ import annotations

from pathlib import Path

import pytest
from inline_snapshot import snapshot

import trysquare
from tests.support import missing_component
from trysquare import ErrorCode, ToolError
from trysquare.workbench import outline as outlining
from trysquare.workbench.outline import Language, Outline, has_parser, outline_of, python_outline, tree_outline

GO = """\
package main

import (
\t"fmt"
\tlog "log/slog"
)

const Limit = 3

type Server struct{ port int }

func (s *Server) Stop() {}

func Start(port int) { local := 1; fmt.Println(local) }
"""
JAVASCRIPT = """\
import fs from "fs";
const path = require("path");
const LIMIT = 3;
const double = (x) => x * 2;
class Server { stop() { const inner = 1; } }
export function* start() {}
"""
TYPESCRIPT = """\
import type { A } from "./a";
interface Shape { side: number }
type Id = string;
enum Color { Red }
abstract class Base { abstract area(): number; size(): number { return 1; } }
export const make = async <T,>(x: T): Promise<T> => x;
"""


def need_parser(language: Language) -> None:
    if not has_parser(language):
        missing_component(f"tree-sitter's grammar of {language}", "pip install 'trysquare[code]'")


def told(outline: Outline) -> list[str]:
    symbols = [f"{'  ' * each.depth}{each.kind} {each.name} {each.line}-{each.end_line}" for each in outline.symbols]
    return symbols + [f"import {each.line} {each.text}" for each in outline.imports]


def test_go_is_outlined() -> None:
    need_parser("go")
    assert told(outline_of("main.go", GO)) == snapshot(
        [
            "variable Limit 8-8",
            "type Server 10-10",
            "function Stop 12-12",
            "function Start 14-14",
            'import 4 "fmt"',
            'import 5 log "log/slog"',
        ]
    )


def test_javascript_is_outlined() -> None:
    need_parser("javascript")
    assert told(outline_of("app.mjs", JAVASCRIPT)) == snapshot(
        [
            "variable path 2-2",
            "variable LIMIT 3-3",
            "function double 4-4",
            "class Server 5-5",
            "  function stop 5-5",
            "function start 6-6",
            'import 1 import fs from "fs";',
            'import 2 require("path")',
        ]
    )


def test_typescript_is_outlined() -> None:
    need_parser("typescript")
    assert told(outline_of("app.ts", TYPESCRIPT)) == snapshot(
        [
            "interface Shape 2-2",
            "type Id 3-3",
            "enum Color 4-4",
            "class Base 5-5",
            "  function size 5-5",
            "function make 6-6",
            'import 1 import type { A } from "./a";',
        ]
    )


SOURCES = sorted(Path(trysquare.__file__).parent.glob("core/*.py"))


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.name)
def test_both_ways_to_read_python_agree(file: Path) -> None:
    need_parser("python")
    source = file.read_text(encoding="utf-8")
    by_tree, by_python = tree_outline(source, "python"), python_outline(source, file.name)
    assert by_tree.symbols == by_python.symbols
    assert [each.line for each in by_tree.imports] == [each.line for each in by_python.imports]


def test_python_that_cannot_be_parsed_is_refused_with_the_line() -> None:
    with pytest.raises(ToolError) as refused:
        python_outline("x = 1\ndef broken(:\n", "a.py")
    assert refused.value.message.startswith("`a.py` ")
    assert "(line 2)" in refused.value.message


def test_a_language_without_its_grammar_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlining, "has_parser", lambda language: False)
    assert outline_of("a.py", "def f(): ...\n").symbols[0].name == "f"
    with pytest.raises(ToolError) as refused:
        outline_of("a.go", GO)
    assert refused.value.code == ErrorCode.CAPABILITY_NOT_SUPPORTED
    assert refused.value.code == ErrorCode.CAPABILITY_NOT_SUPPORTED


def test_sources_of_any_depth_are_read() -> None:
    need_parser("javascript")
    deep = "(" * 20_000 + ")" * 20_000 + "\nfunction last() {}\n"
    assert isinstance(tree_outline(deep, "javascript"), Outline)
    with pytest.raises(ToolError):
        python_outline("(" * 20_000 + ")" * 20_000, "a.py")
