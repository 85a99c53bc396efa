"""Terminal output and input: escaped streams, JSON, tables, colours, prompts, log set-up."""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import secrets
import shutil
import sys
import textwrap
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TextIO, cast

from trysquare.core.call import format_crash
from trysquare.core.content import Audio, Content, Image, ResourceContents, ResourceLink, Text
from trysquare.core.context import Answer, ElicitRequest, LogLevel
from trysquare.core.errors import ConfigurationError, NobodyToAsk
from trysquare.core.json import JsonObject
from trysquare.core.result import Result, render_text
from trysquare.core.untrusted import block, escaped_json, one_line

if TYPE_CHECKING:
    from trysquare.settings.load import Loaded

LONGEST_CELL = 20_000
LONGEST_MESSAGE = 4_000
LONGEST_LOG_LINE = 8 * 1024
LONGEST_TRACEBACK = 64 * 1024
"""Characters of each."""
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
TRACEBACK_VARIABLE = "TRYSQUARE_TRACEBACK"
HANDLER = "trysquare"
"""Name of the log handler on the root logger."""
YES, NO = frozenset({"y", "yes"}), frozenset({"n", "no"})
_NARROWEST, _MOST_LINES = 8, 4
"""Columns of a table's cell before rows are stacked, and lines of a cell before it is cut."""
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
# Random, so that no text from outside can contain the mark of our own control sequences.
_MARK = secrets.token_hex(8)


class SafeStream:
    """A text stream that escapes control and invisible characters.

    Printed text may come from outside: names and errors of servers, arguments of a model, the subject of a token.
    Escaping it here, once, covers every command. Control sequences of our own go through `control`.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if text.isascii() and text.isprintable():
            return self._stream.write(text)
        parts = _own_sequences().split(text)
        self._stream.write("".join(block(part) if at % 2 == 0 else part for at, part in enumerate(parts)))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@functools.cache
def _own_sequences() -> re.Pattern[str]:
    return re.compile(f"\x02{_MARK}(.*?)\x03")


def control(sequence: str, stream: TextIO) -> str:
    """Mark a control sequence as ours, so that a `SafeStream` lets it through."""
    return f"\x02{_MARK}{sequence}\x03" if isinstance(stream, SafeStream) else sequence


@contextmanager
def safe_streams() -> Generator[None]:
    """Escape everything that is written to stdout and stderr within the block."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        stream if isinstance(stream, SafeStream) else cast(TextIO, SafeStream(stream)) for stream in before
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    print(as_json(value))


def print_report(value: Any, otherwise: Callable[[], None], *, json: bool) -> None:
    """Print a value as JSON, or call the function that prints it for a reader."""
    print_json(value) if json else otherwise()


def as_json(value: Any) -> str:
    """Indented JSON with invisible characters escaped."""
    return escaped_json(json.dumps(value, ensure_ascii=False, indent=2))


def styled(text: str, style: str, *, stream: TextIO | None = None) -> str:
    """Style a text if the stream shows colours: on a terminal, unless NO_COLOR is set; elsewhere by FORCE_COLOR."""
    shown_on = stream or sys.stdout
    if not shows_colours(shown_on):
        return text
    begin, end = control(f"\x1b[{_STYLES[style]}m", shown_on), control("\x1b[0m", shown_on)
    return f"{begin}{text}{end}"


def shows_colours(stream: TextIO) -> bool:
    """Whether the stream is to be coloured."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def print_problem(text: str) -> None:
    """Print a line to stderr that says what is wrong."""
    print(f"{styled('trysquare:', 'red', stream=sys.stderr)} {text}", file=sys.stderr, flush=True)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns. On a terminal, all but the first are wrapped to its width."""
    table = [headings, *([one_line(cell, LONGEST_CELL) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(headings))]
    limit = terminal_width() if sys.stdout.isatty() else None
    if limit is not None and sum(widths) + 2 * len(widths) - 2 > limit:
        left = limit - widths[0] - 2 * len(widths) + 2
        if left < _NARROWEST * (len(widths) - 1):
            _print_stacked(table, limit)
            return
        widths[1:] = _shared_out(widths[1:], left)
    else:
        widths[-1] = LONGEST_CELL
    for number, row in enumerate(table):
        cells = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        for line in zip_longest(*cells, fillvalue=""):
            padded = [part.ljust(width) for part, width in zip(line[:-1], widths[:-1], strict=True)]
            text = "  ".join([*padded, line[-1]]).rstrip()
            print(styled(text, "bold") if number == 0 else text)


def _shared_out(wanted: Sequence[int], space: int) -> list[int]:
    """Share the space among columns: narrow ones get what they want, the others the same width each."""
    found = [0] * len(wanted)
    for done, column in enumerate(sorted(range(len(wanted)), key=lambda at: wanted[at])):
        found[column] = min(wanted[column], space // (len(wanted) - done))
        space -= found[column]
    return found


def _wrapped(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    lines = textwrap.wrap(cell, width, break_on_hyphens=False)
    return (
        lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], f"{lines[_MOST_LINES - 1][: width - 1]}…"]
    )


def wrapped(text: str, indent: int) -> list[str]:
    """A text in lines that fit a terminal behind an indent; elsewhere one line."""
    width = terminal_width() - indent if sys.stdout.isatty() else len(text)
    return textwrap.wrap(text, max(width, 20), break_on_hyphens=False) or [""]


def _print_stacked(table: Sequence[Sequence[str]], limit: int) -> None:
    """Print each row as its name, and below it the other cells with their headings."""
    headings, *rows = table
    width = max(map(len, headings[1:]))
    for row in rows:
        print(styled(row[0], "bold"))
        for heading, cell in zip(headings[1:], row[1:], strict=True):
            lines = _wrapped(cell, max(_NARROWEST, limit - width - 4)) if cell else []
            for number, line in enumerate(lines):
                print(f"  {(heading.lower() if number == 0 else '').ljust(width)}  {line}")


def print_result(result: Result[Any], *, json: bool) -> None:
    """Print what a tool returned: the whole envelope as JSON, or as text with images and files named."""
    if json:
        print_json(result.to_json())
        return
    envelope, blocks = result.to_json(), [block_text(block) for block in result.opened().content]
    value = envelope.get("value")
    if isinstance(value, (dict, list)) and sys.stdout.isatty():
        envelope = {**envelope, "value": as_json(value)}
    text = "" if blocks and envelope == {"success": True} else render_text(envelope)
    print_lines([*text.splitlines(), *blocks])


def print_lines(lines: Iterable[str]) -> None:
    """Print the lines of a result, styled by how they begin."""
    for line in lines:
        style = next((style for start, style in _RESULT_STYLES.items() if line.startswith(start)), None)
        if style is not None:
            print(styled(line, style))
        elif _BLOCK.fullmatch(line):
            print(styled(line, "dim"))
        elif (key := _KEY.match(line)) is not None:
            print(f"{key[1]}{styled(key[2], 'blue')}{line[key.end() :]}")
        else:
            print(line)


_RESULT_STYLES = {"Error": "red", "Warning:": "yellow", "Instruction:": "cyan", "Next:": "cyan"}
"""By how a line begins."""
_KEY = re.compile(r'( +)("(?:[^"\\]|\\.)*":)')
"""The name of a member in indented JSON."""
_BLOCK = re.compile(r"\[[^\]]+, \d+ bytes?\]")
"""An image or file, as `block_text` names it."""


def block_text(block: Content) -> str:
    """A content block for a reader: text as it is, an image as `[image/png, 9 bytes]`."""
    match block:
        case Text(text=text):
            return text
        case Image(data=data, mime_type=kind) | Audio(data=data, mime_type=kind):
            return f"[{kind}, {count(_decoded_size(data), 'byte')}]"
        case ResourceLink(uri=uri, name=name):
            return f"[{name}: {uri}]"
        case ResourceContents(text=str() as text):
            return text
        case ResourceContents(uri=uri, mime_type=kind, blob=blob):
            return f"[{kind or uri}, {count(_decoded_size(blob or ''), 'byte')}]"


def _decoded_size(base64: str) -> int:
    return len(base64) * 3 // 4 - base64[-2:].count("=")


def print_listing(
    report: Any, headings: Sequence[str], rows: Sequence[Sequence[str]], *, json: bool, empty: str = "", then: str = ""
) -> None:
    """Print a list as JSON or as a table with a closing line; `empty` stands for a table without rows."""
    if json:
        print_json(report)
    elif empty and not rows:
        print(empty)
    else:
        print_table(headings, rows)
        if then:
            print(f"\n{then}")


def terminal_width() -> int:
    """Columns of the terminal, or 120."""
    return shutil.get_terminal_size((120, 24)).columns


def count(number: int, word: str) -> str:
    """A number and its noun: `1 tool`, `2 tools`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def say(text: str) -> None:
    """Print a line to stderr, apart from the answer on stdout."""
    print(text, file=sys.stderr, flush=True)


class TerminalCaller:
    """The caller at this terminal: progress and questions on stderr, answers from stdin if both are terminals."""

    asks_by = "terminal"
    """How a receipt names this way of asking."""

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        part = f"{done:g}/{total:g}" if total is not None else f"{done:g}"
        say(f"[{part}] {one_line(message or '', LONGEST_MESSAGE)}".rstrip())

    async def log(self, level: LogLevel, message: str) -> None:
        # One line each, so that no text of a server looks like output of this program.
        say(f"{level}: {one_line(message, LONGEST_MESSAGE)}")

    def can_ask(self) -> bool:
        return sys.stdin.isatty() and sys.stderr.isatty()

    async def ask(self, question: ElicitRequest) -> Answer:
        if not self.can_ask():
            raise NobodyToAsk(question.message, instruction="Run the command in a terminal.")
        from trysquare.core.threads import run_in_thread

        return await run_in_thread(lambda: answer_question(question))


def answer_question(question: ElicitRequest) -> Answer:
    """Ask a question and wait for the answer. An empty line for a required field cancels it."""
    say(question.message)
    properties = cast(dict[str, JsonObject], question.schema.get("properties", {}))
    required = set(cast(list[str], question.schema.get("required", [])))
    if not properties:
        return Answer(action="accept" if ask_yes_or_no("Agree?") else "decline")
    content: dict[str, Any] = {}
    for name, schema in properties.items():
        value = ask_value(name, schema, needed=name in required)
        if value is None and name in required:
            return Answer(action="cancel")
        if value is not None:
            content[name] = value
    return Answer(action="accept", content=content)


def ask_yes_or_no(question: str) -> bool:
    """Ask until yes or no is typed; the end of the input means no."""
    while True:
        line = read_line(f"{question} [yes/no] ")
        if line is None or line.lower() in NO:
            return False
        if line.lower() in YES:
            return True
        say("Please type yes or no.")


def require_terminal(where: str, what: str, is_terminal: bool | None = None) -> None:
    """Fail unless stdin is a terminal: the output of a program must not answer for a human."""
    if not (sys.stdin.isatty() if is_terminal is None else is_terminal):
        raise ConfigurationError(
            f"only a human can {what}, and stdin is not a terminal.", where=where, hint="Run it in a terminal."
        )


def ask_value(name: str, schema: JsonObject, *, needed: bool) -> Any:
    """Ask for one field of a flat answer until the text fits its type."""
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
    """Read one line without its end; None at the end of the input."""
    # Not input(): it writes its prompt to stdout, which belongs to the answer.
    print(prompt, end="", file=sys.stderr, flush=True)
    line = sys.stdin.readline()
    return line.strip() if line else None


class LineFormatter(logging.Formatter):
    """Log records as one bounded line each, tracebacks indented: an unindented line is always the start of a record."""

    def __init__(self) -> None:
        super().__init__(LOG_FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = one_line(record.message, LONGEST_LOG_LINE)
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        # With an exception, this may be the text of another formatter. Without one, it is the traceback itself, as of a
        # crash whose secrets were masked.
        left = record.exc_text
        record.exc_text = None if record.exc_info or not left else _indented(left)
        try:
            return super().format(record)
        finally:
            record.exc_text = left

    def formatException(self, ei: Any) -> str:
        return _indented(format_crash(ei[1], whole=logging.getLogger("trysquare.tools").isEnabledFor(logging.DEBUG)))

    def formatStack(self, stack_info: str) -> str:
        return _indented(super().formatStack(stack_info))


def wants_traceback() -> bool:
    """Whether this process was asked for whole tracebacks."""
    return "--debug-traceback" in sys.argv or os.environ.get(TRACEBACK_VARIABLE) == "1"


def _indented(text: str) -> str:
    """Indent a traceback. The end of a long one is preserved, because it names the error."""
    if len(text) > LONGEST_TRACEBACK:
        half = LONGEST_TRACEBACK // 2
        text = f"{text[:half]}\n… ({len(text)} characters)\n{text[-half:]}"
    return "\n".join("    " + line for line in block(text).split("\n"))


def start_logging(loaded: Loaded) -> None:
    """Log to stderr at the configured level, and log the notes of the configuration there."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    root = logging.getLogger()
    for old in [known for known in root.handlers if known.name == HANDLER]:
        root.removeHandler(old)
    handler.name = HANDLER
    handler.setLevel(loaded.settings.log_level)
    root.addHandler(handler)
    root.setLevel(loaded.settings.log_level)
    # The level at which a crash is written with all its frames.
    level = logging.DEBUG if wants_traceback() else logging.NOTSET
    for name in ("trysquare.call", "trysquare.tools"):
        logging.getLogger(name).setLevel(level)
    for note in loaded.notes:
        logging.getLogger("trysquare.settings").warning("%s", note)
