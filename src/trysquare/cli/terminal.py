"""TerminalCaller: the person at the terminal, who sees progress and answers questions."""

from __future__ import annotations

import json
import sys
from typing import Any, cast

from trysquare.core.context import Answer, LogLevel, Question
from trysquare.core.errors import ConfigurationError, NobodyToAsk
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import one_line

LONGEST_LOG = 4_000
YES, NO = frozenset({"y", "yes"}), frozenset({"n", "no"})


class TerminalCaller:
    """Asks on stderr and reads the answers from stdin, when both are a terminal: then a person sits there."""

    asks_by = "terminal"
    """How a receipt says that the person was asked."""

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        part = f"{done:g}/{total:g}" if total is not None else f"{done:g}"
        say(f"[{part}] {one_line(message or '', LONGEST_LOG)}".rstrip())

    async def log(self, level: LogLevel, message: str) -> None:
        # One line each, so that no text of a server looks like a line of ours.
        say(f"{level}: {one_line(message, LONGEST_LOG)}")

    def can_ask(self) -> bool:
        return sys.stdin.isatty() and sys.stderr.isatty()

    async def ask(self, question: Question) -> Answer:
        if not self.can_ask():
            raise NobodyToAsk(question.message, instruction="Run the command in a terminal.")
        return await run_in_thread(lambda: answer_question(question))


def answer_question(question: Question) -> Answer:
    """Put a question to the person and wait. An empty line to a needed answer takes the question back."""
    say(question.message)
    properties = cast(dict[str, JsonObject], question.schema.get("properties", {}))
    required = set(cast(list[str], question.schema.get("required", [])))
    if not properties:
        return _agreement()
    content: dict[str, Any] = {}
    for name, schema in properties.items():
        value = ask_value(name, schema, needed=name in required)
        if value is None and name in required:
            return Answer(action="cancel")
        if value is not None:
            content[name] = value
    return Answer(action="accept", content=content)


def _agreement() -> Answer:
    agreed = ask_yes_or_no("Agree?")
    return Answer(action="accept" if agreed else "decline")


def ask_yes_or_no(question: str) -> bool:
    """Ask until the person types yes or no; the end of the input means no."""
    while True:
        line = read_line(f"{question} [yes/no] ")
        if line is None or line.lower() in NO:
            return False
        if line.lower() in YES:
            return True
        say("Please type yes or no.")


def require_terminal(where: str, what: str) -> None:
    """Refuse to go on unless somebody sits at a terminal: a program's output must not answer for a human."""
    if not sys.stdin.isatty():
        raise ConfigurationError(
            f"only a human can {what}, and stdin is not a terminal.", where=where, hint="Run it in a terminal."
        )


def ask_value(name: str, schema: JsonObject, *, needed: bool) -> Any:
    """Ask for one field of a flat answer, until what is typed fits its type."""
    label = str(schema.get("title") or schema.get("description") or name)
    if schema.get("type") == "boolean":
        return ask_yes_or_no(label)
    choices = [str(choice) for choice in schema.get("enum", ())]
    hint = f" ({'/'.join(choices)})" if choices else "" if needed else " (optional)"
    while line := read_line(f"{label}{hint}: "):
        value = _fitting(line, schema, choices)
        if value is not None:
            return value
        say(f"Expected {' or '.join(choices) or schema.get('type', 'a text')}.")
    return schema.get("default")


def _fitting(line: str, schema: JsonObject, choices: list[str]) -> Any:
    if choices:
        return line if line in choices else None
    if schema.get("type") not in ("integer", "number"):
        return line
    try:
        number = json.loads(line)
    except json.JSONDecodeError:
        return None
    kinds = (int,) if schema["type"] == "integer" else (int, float)
    return number if isinstance(number, kinds) and not isinstance(number, bool) else None


def read_line(prompt: str) -> str | None:
    """One line that the person types, without its end; None at the end of the input."""
    # Not input(): it writes its prompt to stdout, which belongs to the answer.
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line.strip() if line else None


def say(text: str) -> None:
    """A line for the person, beside the answer."""
    print(text, file=sys.stderr, flush=True)
