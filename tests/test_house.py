"""The rules of the house, as tests: sizes, imports, and what `import trysquare` may do."""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import pytest

import trysquare

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "trysquare"
FILES = sorted(SOURCE.rglob("*.py"))
NEEDED = ("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection")
# What must be one file, and why.
ONE_FILE = {"gateway/elysia.py": "it is copied into environments that have nothing else of us"}
FILE_GOAL, FILE_LIMIT, FUNCTION_LIMIT = 400, 600, 80

# Where `except Exception` may stand, and why. Everything else lets errors pass to `call_tool`.
CATCH_ALLS = {
    "core/call.py": "the one place where a crash is caught, for tools, prompts and resources",
    "core/threads.py": "carries an error from a thread to the side that awaits it",
    "wrappers/timed.py": "hands an error on to the coroutine that it drives",
    "core/result.py": "a value's own code may raise anything while it is written as JSON",
    # These run inside the program under test, which must not notice them.
    "debug/recorder/report.py": "an exception's text is made by its own code",
    "debug/recorder/shown.py": "a value may do anything when it is looked at",
    "debug/recorder/evaluating.py": "an expression of the caller may raise anything",
    "debug/recorder/running.py": "whatever ends the program is what is told",
    "debug/recorder/live.py": "an expression or a condition may fail in any way, and that is told",
}


def python(code: str, *options: str) -> str:
    """What a fresh interpreter prints, or the failure of the test."""
    command = [sys.executable, *options, "-c", dedent(code)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, cwd="/")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout, so there are no tracked files to look at")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_importing_trysquare_needs_pydantic_only(tmp_path: Path) -> None:
    for name in NEEDED:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        linked = origin.parent if origin.name == "__init__.py" else origin
        (tmp_path / linked.name).symlink_to(linked)
    (tmp_path / "trysquare").symlink_to(SOURCE)
    printed = python(
        f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import trysquare
        trysquare.tool(lambda: None, name="x").input_schema
        known = set(sys.stdlib_module_names) | {{"__main__", "trysquare", *{NEEDED!r}}}
        others = {{name.split(".")[0] for name in sys.modules}} - known
        print(sorted(name for name in others if not name.startswith("_sysconfigdata")))
        """,
        "-S", "-I",
    )  # fmt: skip
    assert printed == "[]\n"


def test_importing_trysquare_imports_no_mcp_and_no_other_room() -> None:
    printed = python(
        """
        import sys
        import trysquare
        assert not [name for name in sys.modules if name.startswith("trysquare.")]
        for name in trysquare.__all__:
            getattr(trysquare, name)
        rooms = {name.split(".")[1] for name in sys.modules if name.startswith("trysquare.")}
        print(sorted(rooms), [name for name in sys.modules if name.split(".")[0] in ("mcp", "mcp_types", "anyio")])
        """
    )
    assert printed == "['core'] []\n"


def test_importing_trysquare_touches_no_network_starts_no_thread_and_writes_no_file() -> None:
    printed = python(
        """
        import sys
        sys.dont_write_bytecode = True
        seen = []

        def watch(event, arguments):
            writes = event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+")
            acts = ("socket.", "subprocess.", "os.system", "os.mkdir", "os.remove", "os.rename")
            if writes or event.startswith(acts):
                seen.append((event, arguments[:2]))

        sys.addaudithook(watch)
        import threading
        import trysquare
        print(seen, threading.active_count())
        """
    )
    assert printed == "[] 1\n"


def test_the_public_names_are_these() -> None:
    assert trysquare.__all__ == [
        "Answer", "Audio", "CallContext", "ChangingToolset", "CombinedToolset", "ConfigurationError", "Consent",
        "DeclarationError", "Declarations", "ErrorCode", "Example", "FixedToolset", "Image", "Principal", "Prompt",
        "PromptArgument", "PromptMessage", "Resource", "ResourceContents", "ResourceLink", "ResourceTemplate", "Result",
        "Text", "Tool", "ToolArguments", "ToolError", "ToolMetadata", "Toolset", "TrysquareError", "call_tool",
        "prompt", "tool", "wait_for",
    ]  # fmt: skip
    assert all(hasattr(trysquare, name) for name in trysquare.__all__)


def test_files_are_short() -> None:
    lengths = {
        path.relative_to(SOURCE).as_posix(): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES
    }
    assert {name: length for name, length in lengths.items() if length > FILE_LIMIT} == {}
    assert {name for name, length in lengths.items() if length > FILE_GOAL} == set(ONE_FILE)


def test_functions_are_small() -> None:
    lengths = {
        f"{path.relative_to(SOURCE).as_posix()}:{node.name}": function_lines(node)
        for path in FILES
        for node in functions(parsed(path))
    }
    assert {name: length for name, length in lengths.items() if length > FUNCTION_LIMIT} == {}
    assert statistics.median(lengths.values()) < 10
    assert statistics.quantiles(lengths.values(), n=10)[-1] < 40


def test_inner_packages_have_empty_init_files() -> None:
    inner = [path for path in SOURCE.rglob("__init__.py") if path.parent != SOURCE]
    assert [path.relative_to(SOURCE).as_posix() for path in inner if path.read_text(encoding="utf-8").strip()] == []


def catches_all(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException")) for kind in caught
    )


def reraises(handler: ast.ExceptHandler) -> bool:
    """Whether the handler lets the error go on, as it is or as one that says more."""
    return isinstance(handler.body[-1], ast.Raise)


def test_crashes_are_caught_in_one_place() -> None:
    found = {
        path.relative_to(SOURCE).as_posix()
        for path in FILES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ExceptHandler) and catches_all(node) and not reraises(node)
    }
    assert found == set(CATCH_ALLS)


def test_there_is_one_licence() -> None:
    named = [
        path.relative_to(ROOT).as_posix() for path in tracked_files() if path.stem.upper() in ("LICENSE", "LICENCE")
    ]
    assert named == ["LICENSE"]
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_no_tracked_file_names_a_place_on_somebodys_machine() -> None:
    # Written in parts, so that this file does not find itself.
    place = re.compile(r"(?<![\w./])/(?:" + "|".join(("home/[a-z]", "Users/[A-Za-z]", "root/", "work/")) + r")")
    allowed = re.compile(r"/(?:home/(?:you|ada|user|me)\b|Users/(?:you|ada|user|me)\b)")
    found: list[str] = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if place.search(allowed.sub("", line)):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert found == []
