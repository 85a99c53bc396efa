"""The engine for Java: a small bridge of our own, from the JDK's debug interface to the Debug Adapter Protocol."""

from __future__ import annotations

import hashlib
import os
import shlex
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trysquare.core.errors import InvalidArguments
from trysquare.core.types import JsonObject
from trysquare.debug.dap.debugger import DapDebugger
from trysquare.debug.engines import jdi
from trysquare.debug.engines.adapter import begun, built, found_program, speak_over_pipes, start_child
from trysquare.debug.engines.attaching import cannot_attach, require_pid_or_port
from trysquare.debug.launching import AttachSpec, Launched, LaunchSpec, SessionSpec, Surroundings
from trysquare.debug.session import Session

INSTALL = "apt-get install default-jdk-headless"
_SOURCES = Path(next(iter(jdi.__path__)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Program:
    """What the Java machine is to run."""

    main: str
    arguments: tuple[str, ...]
    class_path: str
    options: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class JavaEngine:
    """Starts Java programs under our bridge; a single source file is compiled first."""

    language = "java"

    async def launch(self, spec: LaunchSpec, session: Session, around: Surroundings) -> Launched:
        folder = tempfile.TemporaryDirectory(prefix="trysquare-")
        try:
            program = await _program(spec, Path(folder.name))
            wanted = {
                "main": shlex.join([program.main, *program.arguments]),
                "options": _quoted(["-cp", program.class_path, *program.options]),
            }
            java = spec.target.python or found_program(("java",), hint=INSTALL)
            return await _begun(java, "launch", wanted, spec, session, around, program.sources, folder.cleanup)
        except BaseException:
            folder.cleanup()
            raise

    async def attach(self, spec: AttachSpec, session: Session, around: Surroundings) -> Launched:
        require_pid_or_port(spec)
        if spec.pid is not None:
            option = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:PORT"
            instead = f"Start the program with `java {option}`, and give that `port`."
            raise cannot_attach(self.language, "a process by its number", instead)
        java = found_program(("java",), hint=INSTALL)
        wanted: JsonObject = {"host": spec.host, "port": spec.port}
        return await _begun(java, "attach", wanted, spec, session, around)


async def _begun(
    java: str,
    command: Literal["launch", "attach"],
    wanted: JsonObject,
    spec: SessionSpec,
    session: Session,
    around: Surroundings,
    sources: Sequence[str] = (),
    close: Callable[[], None] = lambda: None,
) -> Launched:
    """Start the bridge and let it start the program, or attach to it."""
    classes = await bridge_classes()
    roots = os.pathsep.join([*sources, *spec.source_paths, str(spec.root)])
    arguments = ["--add-modules", "jdk.jdi", f"-Dtrysquare.sources={roots}", "-cp", classes, "Bridge"]
    child = start_child(java, arguments, spec, around)
    debugger = DapDebugger(session.hear, adapter_id="java", language="java")
    stop_hearing = speak_over_pipes(debugger, child, session)

    def close_all() -> None:
        stop_hearing()
        close()

    try:
        await begun(debugger, command, wanted, session, child, spec)
        await debugger.set_exception_breakpoints(["uncaught"])
    except BaseException:
        stop_hearing()
        await around.nursery.end(child, grace=0.2)
        raise
    return Launched(debugger=debugger, child=child, close=close_all)


async def bridge_classes() -> str:
    """The folder of the compiled bridge: compiled once for each version of it, into the user's cache."""
    sources, cache = _bridge()
    if (cache / "Bridge.class").exists():
        return str(cache)
    javac = found_program(("javac",), hint=INSTALL)
    cache.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.parent) as folder:
        made = Path(folder) / "classes"
        command = [javac, "--add-modules", "jdk.jdi", "-d", str(made), *(str(source) for source in sources)]
        await built(command, cache.parent)
        # Moved whole, so that a second process sees all of it or nothing.
        if not cache.exists():
            made.rename(cache)
    return str(cache)


def _bridge() -> tuple[list[Path], Path]:
    """The bridge's sources, and where it belongs once it is compiled."""
    sources = sorted(_SOURCES.glob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return sources, home / "trysquare" / f"jdi-{digest}"


async def _program(spec: LaunchSpec, folder: Path) -> _Program:
    words = list(spec.target.words)
    if Path(words[0]).name == "java":
        words = words[1:]
    options, class_path, rest = _options(words)
    if not rest:
        raise InvalidArguments("There is no class to run.", instruction="Name a .java file, a .jar or a main class.")
    first, *arguments = rest
    named = (spec.root / first).resolve()
    if named.suffix == ".java":
        javac = found_program(("javac",), hint=INSTALL)
        await built([javac, "-g", "-d", str(folder), "-cp", class_path or ".", str(named)], spec.root)
        joined = os.pathsep.join(part for part in (str(folder), class_path) if part)
        return _Program(
            main=_main_class(named), arguments=tuple(arguments), class_path=joined, sources=(str(named.parent),)
        )
    return _Program(
        main=first, arguments=tuple(arguments), class_path=class_path or str(spec.root), options=tuple(options)
    )


def _options(words: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """The machine's own options, the class path among them, and what comes after."""
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
    """The name of a file's class, with the package that the file declares."""
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.strip().startswith("package "):
            return f"{line.strip()[8:].split(';')[0].strip()}.{file.stem}"
    return file.stem


def _quoted(words: Sequence[str]) -> str:
    """Options as the Java machine's launcher reads them: in double quotes where there is a blank."""
    return " ".join(f'"{word}"' if " " in word else word for word in words)
