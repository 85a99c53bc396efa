"""Registry of languages: one `Language` record each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.debug.adapters import delve, java, lldb, node, python, rdbg
from trysquare.debug.adapters.base import AdapterPackage, AdapterStatus
from trysquare.debug.expressions import ExpressionRules
from trysquare.debug.sessions.launch import DebugAdapter, Target


@dataclass(frozen=True, kw_only=True, slots=True)
class Framework:
    """An entry point that many projects share, as a target of session_start."""

    name: str
    target: str
    note: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Language:
    name: str
    package: AdapterPackage
    adapter: DebugAdapter
    suffixes: tuple[str, ...]
    sample: str
    """An example of a target."""
    expressions: tuple[ExpressionRules, ...] = ()
    """Expressions that run no code; without rules, every expression needs `allow_side_effects`."""
    renders_log_messages: bool = False
    """Whether log messages are parsed here and not by the debugger."""
    aliases: tuple[str, ...] = ()
    interpreters: tuple[str, ...] = ()
    """First words of a command that runs this language."""
    launch_types: tuple[str, ...] = ()
    """Values of `type` in launch.json."""
    frameworks: tuple[Framework, ...] = ()
    can_eval: bool = False
    """Whether statements can run in a frame."""
    can_explain: bool = False
    """Whether failures can be explained."""


_native = partial(Language, package=lldb.PACKAGE, adapter=lldb, expressions=lldb.EXPRESSIONS, can_explain=True)
_node = partial(
    Language, package=node.PACKAGE, adapter=node, expressions=node.EXPRESSIONS, renders_log_messages=True,
    can_eval=True, can_explain=True,
)  # fmt: skip
_PYTHON_FRAMEWORKS = (
    Framework(name="pytest", target="tests/test_x.py::test_y", note="explain says why it fails"),
    Framework(name="unittest", target="python -m unittest tests.test_x"),
    Framework(name="django", target="python manage.py runserver --noreload"),
    Framework(name="flask", target="python -m flask --app app run --no-reload"),
    Framework(name="fastapi", target="python -m uvicorn app:app"),
)
_NODE_FRAMEWORKS = (
    Framework(name="jest", target="node node_modules/jest/bin/jest.js --runInBand --testTimeout=600000 x.test.js"),
    Framework(
        name="vitest",
        target="node node_modules/vitest/vitest.mjs run --pool=threads --no-file-parallelism --testTimeout=0 x",
        note="tests run in a thread, which `session list` shows as a session of its own",
    ),
)
_JUNIT = Framework(
    name="junit",
    target="java -cp .:junit-platform-console-standalone.jar org.junit.platform.console.ConsoleLauncher -c XTest",
    note="the classes have to be compiled, with `javac -g`",
)
LANGUAGES = (
    Language(
        name="python", package=python.PACKAGE, adapter=python, suffixes=(".py",), sample="app.py", aliases=("py",),
        launch_types=("python", "debugpy"), frameworks=_PYTHON_FRAMEWORKS, renders_log_messages=True, can_eval=True,
        can_explain=True,
    ),
    _node(
        name="javascript", suffixes=(".js", ".mjs", ".cjs"), sample="app.js", aliases=("js", "node"),
        interpreters=("node", "nodejs"), launch_types=("node", "pwa-node"), frameworks=_NODE_FRAMEWORKS,
    ),
    _node(name="typescript", suffixes=(".ts", ".mts"), sample="app.ts", aliases=("ts",)),
    _native(name="c", suffixes=(".c",), sample="app.c", launch_types=("lldb", "lldb-dap", "cppdbg")),
    _native(name="cpp", suffixes=(".cc", ".cpp", ".cxx"), sample="app.cpp", aliases=("c++",)),
    _native(name="rust", suffixes=(".rs",), sample="app.rs"),
    Language(
        name="go", package=delve.PACKAGE, adapter=delve, expressions=delve.EXPRESSIONS, suffixes=(".go",),
        sample="main.go", aliases=("golang",), interpreters=("go",), launch_types=("go",),
    ),
    Language(
        name="ruby", package=rdbg.PACKAGE, adapter=rdbg, suffixes=(".rb",), sample="app.rb", interpreters=("ruby",),
        launch_types=("rdbg",), can_eval=True,
    ),
    Language(
        name="java", package=java.PACKAGE, adapter=java, expressions=java.EXPRESSIONS, suffixes=(".java", ".jar"),
        sample="Main.java", interpreters=("java",), launch_types=("java",), frameworks=(_JUNIT,),
    ),
)  # fmt: skip
ADAPTERS: Mapping[str, DebugAdapter] = {each.name: each.adapter for each in LANGUAGES}
NAMES = tuple(each.name for each in LANGUAGES)
LAUNCH_TYPES = {kind: each.name for each in LANGUAGES for kind in each.launch_types}
_ALIASES = {alias: each.name for each in LANGUAGES for alias in each.aliases}
_INTERPRETERS = {program: each.name for each in LANGUAGES for program in each.interpreters}
SUFFIXES = {suffix: each.name for each in LANGUAGES for suffix in each.suffixes}


def normalize_language(name: str) -> str:
    """The name of a language, from any of its aliases in any case."""
    return _ALIASES.get(name.lower(), name.lower())


def find_language(name: str) -> Language:
    wanted = normalize_language(name)
    for each in LANGUAGES:
        if each.name == wanted:
            return each
    raise InvalidArguments(f"Unknown language `{name}`.", instruction=f"Use one of {', '.join(NAMES)}.")


def language_of(target: Target, *, given: str | None = None) -> str:
    """The language of a target: the given one, or the one that its words imply."""
    if given is not None:
        return normalize_language(given)
    if target.is_python:
        return "python"
    first = Path(target.words[0])
    program = first.name.rstrip("0123456789.")
    if program in _INTERPRETERS:
        return _INTERPRETERS[program]
    for word in target.words[:2]:
        if (language := SUFFIXES.get(Path(word).suffix)) is not None:
            return language
    if _is_binary(first):
        return "c"
    raise InvalidArguments(
        f"Cannot infer the language of `{target}`.",
        code=ErrorCode.VALIDATION_MISSING_PARAM,
        instruction=f"Give `language`: one of {', '.join(NAMES)}.",
    )


def _is_binary(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) in (b"\x7fELF", b"\xcf\xfa\xed\xfe")
    except OSError:
        return False


def packages() -> Mapping[AdapterPackage, tuple[str, ...]]:
    found: dict[AdapterPackage, tuple[str, ...]] = {}
    for each in LANGUAGES:
        found[each.package] = (*found.get(each.package, ()), each.name)
    return found


async def check_packages(
    wanted: Iterable[AdapterPackage], chosen: Mapping[str, str] | None = None
) -> list[AdapterStatus]:
    """Find each debugger and its version, concurrently. `chosen` has versions and paths."""
    languages = {package.name: names for package, names in packages().items()}
    return list(await asyncio.gather(*(each.check(languages[each.name], chosen) for each in wanted)))
