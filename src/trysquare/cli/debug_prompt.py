"""Prompt of a debug session in the terminal: one command per line, each a call of the debugger's tools."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from trysquare.core.call import call_tool
from trysquare.core.context import CallContext, Principal
from trysquare.core.json import JsonObject
from trysquare.core.result import Result
from trysquare.core.threads import run_in_thread
from trysquare.core.toolset import Toolset

PRINCIPAL = "terminal"
_PROMPT = "(debug) "


@dataclass(frozen=True, kw_only=True, slots=True)
class _Command:
    """A command of the prompt: its names, the call that it makes of the text after it, and its help."""

    names: tuple[str, ...]
    tool: str
    arguments: Callable[[str], JsonObject]
    help: str
    parameter: str = ""


def _fixed(**arguments: Any) -> Callable[[str], JsonObject]:
    return lambda text: arguments


_COMMANDS = (
    _Command(names=("n", "next"), tool="step", arguments=_fixed(action="over"), help="run this line"),
    _Command(names=("s", "step"), tool="step", arguments=_fixed(action="into"), help="step into the call"),
    _Command(names=("o", "out"), tool="step", arguments=_fixed(action="out"), help="run to the caller"),
    _Command(names=("c", "continue"), tool="execute", arguments=_fixed(), help="run to the next stop"),
    _Command(
        names=("p", "print"), tool="inspect", arguments=lambda text: {"target": "expression", "expression": text},
        help="show a value", parameter="EXPRESSION",
    ),
    _Command(names=("l", "locals"), tool="inspect", arguments=_fixed(target="locals"), help="show the variables"),
    _Command(names=("w", "where"), tool="inspect", arguments=_fixed(target="stack"), help="show the stack"),
    _Command(
        names=("b", "break"), tool="breakpoint", arguments=lambda text: {"location": text},
        help="stop at a line", parameter="FILE:LINE",
    ),
    _Command(
        names=("u", "until"), tool="run_until", arguments=lambda text: {"location": text},
        help="run to a line", parameter="FILE:LINE",
    ),
    _Command(names=("output",), tool="inspect", arguments=_fixed(target="output"), help="show what it wrote"),
    _Command(names=("restart",), tool="session", arguments=_fixed(action="restart"), help="start it again"),
)  # fmt: skip
_BY_NAME = {name: command for command in _COMMANDS for name in command.names}
_QUIT = ("q", "quit", "exit")
_HELP = ("h", "help", "?")


async def run_prompt(tools: Toolset, stop: Result[Any]) -> None:
    """Show a stop, and run commands until the input ends or `q`."""
    _show(stop)
    print("Commands: n s o c p l w b u, h for help, q to end the program.")
    while (line := await run_in_thread(_read_line)) is not None:
        word, _, rest = line.strip().partition(" ")
        if word in _QUIT:
            return
        if word in _HELP:
            _print_help()
        elif word in _BY_NAME:
            await _run(tools, _BY_NAME[word], rest.strip())
        elif word:
            print(f"Unknown command `{word}`. Send h for help.")


async def _run(tools: Toolset, command: _Command, text: str) -> None:
    if command.parameter and not text:
        print(f"Write {command.names[0]} {command.parameter}.")
        return
    context = CallContext(principal=Principal(subject=PRINCIPAL))
    _show(await call_tool(tools, command.tool, command.arguments(text), context))


def _read_line() -> str | None:
    """The next line of the input, or None at its end."""
    print(_PROMPT, end="", flush=True)
    line = sys.stdin.readline()
    if not line:
        print()
    return line or None


def _show(result: Result[Any]) -> None:
    if not result.success:
        print(result.error)
        return
    data = cast(JsonObject, result.fields.get("data") or {})
    print(result.fields.get("summary", ""))
    for warning in result.warnings:
        print(f"  note: {warning}")
    if code := cast(JsonObject, data.get("code_snapshot") or {}).get("formatted"):
        print(code)
    _print_values(data)
    if output := str(data.get("output") or "").rstrip():
        print(f"output:\n{output}")


def _print_values(data: JsonObject) -> None:
    changed = cast(JsonObject, data.get("changed") or {})
    for name in ("locals", "parts"):
        for each, text in cast(JsonObject, data.get(name) or {}).items():
            print(f"  {each} = {text}" + (f"   # was {_before(changed[each])}" if each in changed else ""))
    if "value" in data:
        print(f"  {data['value']}")
    for frame in cast(list[str], data.get("stack") or []):
        print(f"  {frame}")


def _before(change: Any) -> str:
    old, arrow, _ = str(change).partition(" -> ")
    return old if arrow else "not set"


def _print_help() -> None:
    for command in _COMMANDS:
        names = ", ".join(command.names) + (f" {command.parameter}" if command.parameter else "")
        print(f"  {names:<24}{command.help}")
    print(f"  {', '.join(_QUIT):<24}end the program and the session")
