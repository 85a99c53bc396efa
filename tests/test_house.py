"""Rules of the source tree: sizes, layers, dependencies, duplicates, words, and what `import trysquare` may do.

Every failure says what to do. The figures are ceilings: lower them when the tree gets smaller, do not raise them.
"""

from __future__ import annotations

import ast
import re
import statistics
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import packages_distributions
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import TypeAlias, cast

import pytest

import trysquare

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "trysquare"
FILES = sorted(SOURCE.rglob("*.py"))
NEEDED = ("pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection")
# What the program under test brings, and what is not numbered by compatibility.
NOT_OURS, CALENDAR_VERSIONS = ("pytest",), ("xllamacpp",)
MOST_FILES, MOST_LINES, LONGEST_FILE, LONGEST_FUNCTION = 640, 135_000, 800, 80
SMALL_FILE, MOST_SMALL_FILES = 40, 0.05
MOST_CATCH_ALLS = 0.5
"""Per thousand lines, those that raise again included."""
SHORTEST_DUPLICATE, FEWEST_STATEMENTS = 6, 4
MOST_INNER_IMPORTS = 1_900
"""Names that tests import from modules that are not public."""

# Where a private name of another package may be used, and why.
PRIVATE_NAMES = {
    "jobs/dbos.py": "DBOS has no public way to refuse pickles, guarded by its version",
}
# Packages that only some places import, so that the rest works without them and one place knows their ways.
CONFINED = {
    "mcp": ("server/", "gateway/upstream/", "integrations/fastmcp.py", "integrations/fastmcp_toolset.py"),
    "mcp_types": ("server/", "gateway/upstream/", "integrations/fastmcp.py", "integrations/fastmcp_toolset.py"),
    "fastmcp": ("integrations/fastmcp.py", "integrations/fastmcp_toolset.py"),
    "pydantic_ai": ("integrations/pydantic_ai.py",),
    "starlette": ("server/", "console/"),
    "uvicorn": ("server/http/",),
    "httpx2": ("net/", "gateway/upstream/", "content/"),
    "dbos": ("jobs/dbos.py",),
    "sqlalchemy": ("jobs/",),
    "psycopg": ("store/postgres.py",),
    "opentelemetry": ("middleware/tracing.py",),
    "xllamacpp": ("models/local/",),
    "llguidance": ("models/local/", "grammar/", "workbench/generation.py", "cli/grammar.py"),
    # Token masks, and the vectors of the sentence encoder.
    "numpy": ("grammar/", "search/"),
    "websockets": ("debug/cdp/",),
    "jinja2": ("guide/templates.py", "console/"),
    "webauthn": ("store/", "console/"),
    "keyring": ("store/secrets.py",),
    "yaml": ("files/front_matter.py", "files/yaml.py", "openapi/document.py"),
    "watchfiles": ("files/watch.py",),
}
# Programs of their own, in other processes or environments: they import nothing of Trysquare, the recorder only itself.
STANDALONE = (
    "processes/reaper.py", "workbench/grep_worker.py", "processes/sandbox/landlock_exec.py",
    "bots/scanners/regex_worker.py", "gateway/results/query_worker.py", "integrations/elysia.py",
)  # fmt: skip
PUBLIC_IN_SPITE_OF_THE_NAME = {("os", "_exit"), ("sys", "_getframe"), ("ctypes", "_fields_")}
# Words of the former vocabulary, each with the word to use instead.
FORMER_WORDS = {
    "door": "provider, lifespan, listener",
    "room": "package, toolset",
    "nursery": "supervisor",
    "desk": "service, session",
    "bench": "context",
    "vanguard": "nothing: it is gone",
    "errand": "background task",
    "saying": "nothing: it is gone",
    "mend": "repair",
    "heal": "repair, argument error",
    "told": "reported, formatted",
    "heard": "received",
    "the person": "the user, you, a human",
    "it seems": "did you mean",
    "one word too many": "unexpected argument",
    "of ours": "say whose",
    "lies in": "is in",
}

# Where `except Exception` may stand, and why. Everything else lets errors pass to `call_tool`.
CATCH_ALLS = {
    "core/call.py": "the one place where a crash is caught, for tools, prompts and resources",
    "core/threads.py": "carries an error from a thread to the side that awaits it",
    "middleware/observability.py": "passes an error to the coroutine that it drives",
    "core/result.py": "a value's own code may raise anything while it is written as JSON",
    # These run inside the program under test, which must not notice them.
    "debug/recorder/report.py": "an exception's text is made by its own code",
    "debug/recorder/values.py": "a value may do anything when it is looked at",
    "debug/recorder/expressions.py": "an expression of the caller may raise anything",
    "debug/recorder/runner.py": "whatever ends the program is reported",
    "debug/recorder/live.py": "an expression or a condition may fail in any way, which is reported",
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


def test_importing_trysquare_imports_no_mcp_and_only_what_is_used() -> None:
    printed = python(
        """
        import sys
        import trysquare
        loaded = {name for name in sys.modules if name.startswith("trysquare.")}
        assert loaded == {"trysquare.core", "trysquare.core.lazy"}, loaded
        # What serves, calls and integrates is above everything else.
        above = {"Client", "ExtMcpToolDecorator", "ToolResult", "from_fastapi", "from_openapi", "http_app"}
        for name in {*trysquare.__all__} - above:
            getattr(trysquare, name)
        packages = {name.split(".")[1] for name in sys.modules if name.startswith("trysquare.")}
        print(sorted(packages), [name for name in sys.modules if name.split(".")[0] in ("mcp", "mcp_types", "anyio")])
        """
    )
    assert printed == "['core', 'middleware'] []\n"


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
        "Answer", "AppPage", "Argument", "Audio", "CallContext", "Client", "CombinedToolset", "ConfigurationError",
        "Consent", "DeclarationError", "Declarations", "Depends", "DynamicToolset", "EmbeddedResource", "ErrorCode",
        "Example", "ExtMcpToolDecorator", "File", "Icon", "Image", "McpRequest", "Middleware", "Principal", "Proceed",
        "Prompt", "PromptArgument", "PromptMessage", "QuestionDeclined", "Resource", "ResourceContents", "ResourceLink",
        "ResourceTemplate", "Result", "StaticToolset", "TaskOptions", "Text", "Tool", "ToolArguments", "ToolError",
        "ToolMetadata", "ToolResult", "Tools", "Toolset", "TrysquareError", "call_tool", "from_fastapi",
        "from_openapi", "http_app", "prompt", "tool", "transform_tool", "wait_for",
    ]  # fmt: skip
    assert all(hasattr(trysquare, name) for name in trysquare.__all__)


def test_former_public_names_still_work_and_warn() -> None:
    with pytest.warns(DeprecationWarning, match="StaticToolset"):
        assert trysquare.FixedToolset is trysquare.StaticToolset  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.warns(DeprecationWarning, match="DynamicToolset"):
        assert trysquare.ChangingToolset is trysquare.DynamicToolset  # pyright: ignore[reportAttributeAccessIssue]


def file_lengths() -> dict[str, int]:
    """The lines of every source file that is not empty."""
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8") for path in FILES}
    return {name: len(text.splitlines()) for name, text in texts.items() if text.strip()}


def test_the_tree_stays_small() -> None:
    lengths = file_lengths()
    assert len(lengths) <= MOST_FILES, "Fold a small module into the neighbour that uses it."
    assert sum(lengths.values()) <= MOST_LINES, "Remove code before adding more: `duplicates`, dead branches, wrappers."


def test_files_are_neither_long_nor_tiny() -> None:
    lengths = file_lengths()
    long = {name: length for name, length in lengths.items() if length > LONGEST_FILE}
    assert long == {}, "Split these by what they are about."
    assert 120 <= statistics.median(lengths.values()) <= 350
    small = sorted(name for name, length in lengths.items() if length < SMALL_FILE)
    assert len(small) <= MOST_SMALL_FILES * len(lengths), f"Fold some of these into a neighbour: {small}"


def test_functions_are_small() -> None:
    lengths = {
        f"{path.relative_to(SOURCE).as_posix()}:{node.name}": function_lines(node)
        for path in FILES
        for node in functions(parsed(path))
    }
    long = {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION}
    assert long == {}, "Split these into steps with names."
    assert statistics.median(lengths.values()) <= 10
    assert statistics.quantiles(lengths.values(), n=10)[-1] <= 40


def test_packages_export_through_lazy_facades_or_nothing() -> None:
    for path in SOURCE.rglob("__init__.py"):
        text = path.read_text(encoding="utf-8")
        assert not text.strip() or "lazy_exports(" in text, f"{path}: an `__init__.py` is empty or a lazy facade."


def test_the_layers_hold() -> None:
    checked = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"],
        capture_output=True, text=True, timeout=100, check=False, cwd=ROOT,
    )  # fmt: skip
    said = f"{checked.stdout[-3000:]}\nMove the code to the lower layer that owns it, or pass the value in."
    assert checked.returncode == 0, said


def catches_all(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException")) for kind in caught
    )


def reraises(handler: ast.ExceptHandler) -> bool:
    """Whether the handler lets the error go on, as it is or as one that says more."""
    return isinstance(handler.body[-1], ast.Raise)


def catch_alls() -> dict[str, list[ast.ExceptHandler]]:
    return {
        path.relative_to(SOURCE).as_posix(): found
        for path in FILES
        if (
            found := [
                node for node in ast.walk(parsed(path)) if isinstance(node, ast.ExceptHandler) and catches_all(node)
            ]
        )
    }


def test_crashes_are_caught_in_one_place() -> None:
    found = {name for name, handlers in catch_alls().items() if not all(map(reraises, handlers))}
    assert found == set(CATCH_ALLS), "Catch what can be foreseen by its type; `call_tool` catches the rest."


def test_broad_excepts_are_rare() -> None:
    number = sum(len(handlers) for handlers in catch_alls().values())
    assert number / sum(file_lengths().values()) * 1000 <= MOST_CATCH_ALLS, "Name the exceptions that are expected."


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_names_of_others(tree: ast.Module) -> Iterator[str]:
    """Private names of other packages that a module imports or reads."""
    others: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                others[one.asname or one.name.split(".")[0]] = one.name.split(".")[0]
                yield from (one.name for part in one.name.split(".") if is_private(part))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] != "trysquare":
            for one in node.names:
                others[one.asname or one.name] = node.module.split(".")[0]
                if any(is_private(part) for part in [*node.module.split("."), one.name]):
                    yield f"{node.module}.{one.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and is_private(node.attr):
            owner = others.get(node.value.id)
            if owner not in (None, "trysquare") and (owner, node.attr) not in PUBLIC_IN_SPITE_OF_THE_NAME:
                yield f"{owner}.{node.attr}"


def test_no_private_name_of_another_package_is_used() -> None:
    found = {
        name: used
        for path in FILES
        if not (name := path.relative_to(SOURCE).as_posix()).startswith("debug/recorder/")
        and (used := sorted(set(private_names_of_others(parsed(path)))))
    }
    assert {name: used for name, used in found.items() if name not in PRIVATE_NAMES} == {}, "Use a public name."


def shape(node: object) -> object:
    """A statement without its names and values: what stays the same when it is copied and adapted."""
    if isinstance(node, ast.Name | ast.Constant):
        return type(node).__name__
    if isinstance(node, list):
        return tuple(map(shape, cast(list[object], node)))
    if not isinstance(node, ast.AST):
        return repr(node)
    hidden = {"ctx", "name", "attr", "arg", "asname", "module", "type_comment"}
    return (type(node).__name__, *(shape(value) for field, value in ast.iter_fields(node) if field not in hidden))


def statement_lists(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    """The bodies in which a run of statements may stand twice: of functions and blocks, and whole functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef):
            for one in node.body:
                if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield [one]
            continue
        for field in ("body", "orelse", "finalbody"):
            body: object = getattr(node, field, None)
            if isinstance(body, list):
                statements = cast(list[ast.stmt], body)
                yield [
                    one for one in statements if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
                ]


Run: TypeAlias = tuple[str, int, int]
"""The file of a run of statements, and its first and last line."""


def is_boilerplate(run: list[ast.stmt]) -> bool:
    """Whether a run only declares (imports, options, a raised error) or is long by its layout alone."""
    inner = [node for one in run for node in ast.walk(one) if isinstance(node, ast.stmt)]
    return len(inner) < FEWEST_STATEMENTS or all(
        isinstance(node, ast.Expr | ast.Raise | ast.FunctionDef | ast.Import | ast.ImportFrom) for node in inner
    )


def runs_of(path: Path) -> Iterator[tuple[object, Run]]:
    """Every run of statements that takes enough lines, with its shape and its place."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for body in statement_lists(parsed(path)):
        shapes = [shape(one) for one in body]
        for first in range(len(body)):
            for last in range(first, len(body)):
                start, end = body[first].lineno, cast(int, body[last].end_lineno)
                code = [line for line in lines[start - 1 : end] if line.strip() and not line.strip().startswith("#")]
                if len(code) >= SHORTEST_DUPLICATE and not is_boilerplate(body[first : last + 1]):
                    yield tuple(shapes[first : last + 1]), (path.relative_to(SOURCE).as_posix(), start, end)


def apart(runs: list[Run]) -> list[Run]:
    """The runs without those that overlap an earlier one."""
    chosen: list[Run] = []
    for name, start, end in runs:
        if not any(name == other and start <= last and first <= end for other, first, last in chosen):
            chosen.append((name, start, end))
    return chosen


# Files with runs of the same shape that do different things: one function for both would only hide that.
ALIKE_BY_CHANCE: set[tuple[str, ...]] = set()


def test_no_run_of_statements_stands_twice() -> None:
    places: dict[object, list[Run]] = defaultdict(list)
    for path in FILES:
        for run, place in runs_of(path):
            places[run].append(place)
    groups = [found for runs in places.values() if len(found := apart(runs)) > 1]
    twice = {
        files: ", ".join(f"{name}:{start}-{end}" for name, start, end in found)
        for found in groups
        if (files := tuple(sorted({name for name, _, _ in found}))) not in ALIKE_BY_CHANCE
    }
    assert sorted(twice.values()) == [], "Make one function serve these."


def imported_names(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The modules and names of Trysquare that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "trysquare":
            yield from ((node.module, one.name) for one in node.names)


def public_names() -> dict[str, set[str]]:
    """What each package exports, and `*` for the modules that are public as a whole."""
    packages = ["trysquare", *(f"trysquare.{path.parent.name}" for path in SOURCE.glob("*/__init__.py"))]
    exported = {name: set[str](getattr(import_module(name), "__all__", ())) for name in packages}
    return exported | {f"trysquare.{path.stem}": {"*"} for path in SOURCE.glob("*.py")}


@cache
def inner_imports() -> list[tuple[str, str, str]]:
    """The file, module and name of every import in the tests that does not go through a public module."""
    public = public_names()
    tests = [path for path in (ROOT / "tests").rglob("*.py") if "node_modules" not in path.parts]
    return [
        (path.relative_to(ROOT).as_posix(), module, name)
        for path in tests
        for module, name in imported_names(parsed(path))
        if not {name, "*"} & public.get(module, set())
    ]


def test_tests_import_through_public_modules() -> None:
    public = public_names()
    detours = [
        f"{path}: {name} from {package}"
        for path, module, name in inner_imports()
        for package in ("trysquare", ".".join(module.split(".")[:2]))
        if name in public[package] and getattr(import_module(package), name) is getattr(import_module(module), name)
    ]
    assert detours == [], "Import these from the package that exports them."


def test_tests_import_fewer_inner_modules() -> None:
    number = len(inner_imports())
    assert number <= MOST_INNER_IMPORTS, "Test through a public module; `trysquare.testing` has contexts and callers."


# Files that read or send a former spelling for one release, or have the name of a lint rule that users ignore by name.
FORMER_SPELLINGS = {
    "agents/definition.py",
    "catalog/lint/text_rules.py",
    "middleware/tracing.py",
    "server/http/jwt.py",
}


def former_words(text: str) -> set[str]:
    """The words of the former vocabulary in a text, also as parts of names such as `BotDesk`."""
    lowered = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower()
    endings = "(?:s|ed|ing|able)?"
    return {word for word in FORMER_WORDS if re.search(rf"(?<![a-z-])(?<!make ){word}{endings}(?![a-z-])", lowered)}


def test_words_of_the_former_vocabulary_do_not_come_back() -> None:
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "AGENTS.md", "CONTRIBUTING.md")),
    ]
    found = {
        f"{path.relative_to(ROOT).as_posix()}:{number}": sorted(f"{word} -> {FORMER_WORDS[word]}" for word in words)
        for path in [*(path for path in FILES if path.relative_to(SOURCE).as_posix() not in FORMER_SPELLINGS), *pages]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (words := former_words(line))
    }
    assert found == {}, "Use the word after the arrow."


def imported_packages(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def test_packages_are_imported_only_where_they_belong() -> None:
    found = {
        f"{name}: {package}"
        for path in FILES
        for package in set(imported_packages(parsed(path)))
        if not (name := path.relative_to(SOURCE).as_posix()).startswith(CONFINED.get(package, ""))
    }
    assert found == set(), "Call the module that wraps the package."


def test_programs_of_their_own_import_nothing_of_trysquare() -> None:
    assert [name for name in STANDALONE if "trysquare" in imported_packages(parsed(SOURCE / name))] == []
    imported = {
        module for path in (SOURCE / "debug/recorder").glob("*.py") for module, _ in imported_names(parsed(path))
    }
    assert {module for module in imported if not module.startswith("trysquare.debug.recorder")} == set()


def test_every_imported_package_is_declared_with_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [wanted for name, group in project["optional-dependencies"].items() if name != "all" for wanted in group]
    requirements = [*project["dependencies"], *extras]
    declared = {re.split(r"[^A-Za-z0-9._-]", wanted)[0].lower().replace("_", "-") for wanted in requirements}
    known = packages_distributions()
    imported = {name for file in FILES for name in imported_packages(ast.parse(file.read_text(encoding="utf-8")))}
    others = imported - set(sys.stdlib_module_names) - {"trysquare", *NOT_OURS}
    undeclared = {
        name
        for name in others
        if declared.isdisjoint(each.lower().replace("_", "-") for each in (name, *known.get(name, ())))
    }
    assert undeclared == set()
    assert [wanted for wanted in requirements if not wanted.startswith(CALENDAR_VERSIONS) and "<" not in wanted] == []


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
