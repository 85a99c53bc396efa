"""Java debug adapter: a bridge in Java from the JDK's debug interface to the Debug Adapter Protocol."""

from __future__ import annotations

import hashlib
import os
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trysquare.core.errors import InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.debug.adapters import base, jdi
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.expressions import ExpressionRules
from trysquare.debug.sessions.launch import AttachSpec, LaunchedProgram, LaunchEnvironment, LaunchSpec, SessionSpec

PACKAGE = base.AdapterPackage(name="jdi", programs=("javac",), install=base.debian("default-jdk-headless"))
EXPRESSIONS = (ExpressionRules(),)
_SOURCES = sorted(Path(next(iter(jdi.__path__))).glob("*.java"))


async def launch(spec: LaunchSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    directory = tempfile.TemporaryDirectory(prefix="trysquare-")
    try:
        main, options, sources = await _build(spec, Path(directory.name), environment.chosen)
        # The Java launcher reads double quotes where there is a space.
        quoted = " ".join(f'"{word}"' if " " in word else word for word in options)
        wanted: JsonObject = {"main": main, "options": quoted, "stdin": spec.stdin, "stopOnEntry": spec.stop_on_entry}
        return await _begin(wanted, spec, environment, sources, directory.cleanup)
    except BaseException:
        directory.cleanup()
        raise


async def attach(spec: AttachSpec, environment: LaunchEnvironment) -> LaunchedProgram:
    if spec.pid is not None:
        option = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:PORT"
        instruction = f"Start the program with `java {option}`, and give that `port`."
        raise base.cannot_attach(environment.session.language, "a process id", instruction)
    return await _begin({"host": spec.host, "port": spec.port}, spec, environment)


async def _begin(
    wanted: JsonObject,
    spec: SessionSpec,
    environment: LaunchEnvironment,
    sources: Sequence[str] = (),
    close: Callable[[], None] = lambda: None,
) -> LaunchedProgram:
    """Start the bridge, which starts the program or attaches to it."""
    named = spec.target.python if isinstance(spec, LaunchSpec) else ""
    java = named or base.find_program(("java",), hint=PACKAGE.install_command)
    classes = await bridge_classes(environment.chosen)
    roots = os.pathsep.join([*sources, *spec.source_paths, str(spec.root)])
    arguments = ["--add-modules", "jdk.jdi", f"-Dtrysquare.sources={roots}", "-cp", classes, "Bridge"]
    child = base.start_child(java, arguments, spec, environment)
    debugger = DapDebugger(environment.session.receive, adapter_id="java", expressions=EXPRESSIONS)
    launched = await base.begin_over_pipes(
        debugger, child, wanted, spec, environment, close=close, exceptions=("uncaught",)
    )
    if not isinstance(spec, LaunchSpec) or spec.stdin is not None:
        return launched

    def send_input(text: str) -> None:
        _, answer = debugger.client.send("input", {"text": text})
        # The program may be gone before it reads; nothing awaits the answer.
        answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())

    return replace(launched, send_input=send_input)


async def bridge_classes(chosen: Mapping[str, str] | None = None) -> str:
    """The directory of the compiled bridge: compiled once per version, into the user's cache."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in _SOURCES)).hexdigest()[:16]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = home / "trysquare" / f"jdi-{digest}"
    if (cache / "Bridge.class").exists():
        return str(cache)
    javac = PACKAGE.program(chosen or {})
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent) as directory:
        made = Path(directory) / "classes"
        command = [javac, "--add-modules", "jdk.jdi", "-d", str(made), *(str(source) for source in _SOURCES)]
        await base.compile_source(command, cache.parent)
        # Renamed atomically, so that another process never sees a part of it.
        if not cache.exists():
            made.rename(cache)
    return str(cache)


async def _build(spec: LaunchSpec, directory: Path, chosen: Mapping[str, str]) -> tuple[str, list[str], list[str]]:
    """The main class with its arguments, the options of the JVM, and the directories of its sources."""
    words = list(spec.target.words)
    if Path(words[0]).name == "java":
        words = words[1:]
    options, class_path, rest = _options(words)
    if not rest:
        raise InvalidArguments("No class to run.", instruction="Give a .java file, a .jar or a main class.")
    first, *arguments = rest
    source = (spec.root / first).resolve()
    if source.suffix != ".java":
        return shlex.join(rest), ["-cp", class_path or str(spec.root), *options], []
    javac = PACKAGE.program(chosen)
    await base.compile_source([javac, "-g", "-d", str(directory), "-cp", class_path or ".", str(source)], spec.root)
    joined = os.pathsep.join(part for part in (str(directory), class_path) if part)
    return shlex.join([_main_class(source), *arguments]), ["-cp", joined], [str(source.parent)]


def _options(words: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """The options of the JVM, the class path among them, and the words after them."""
    options: list[str] = []
    class_path = ""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in ("-cp", "-classpath", "--class-path") and rest:
            class_path = rest.pop(0)
        else:
            options.append(option)
    return options, class_path, rest


def _main_class(file: Path) -> str:
    """The qualified name of a file's class."""
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.strip().startswith("package "):
            return f"{line.strip()[8:].split(';')[0].strip()}.{file.stem}"
    return file.stem
