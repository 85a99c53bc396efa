"""Records real commands in a terminal and writes them as docs/recording.svg: `python scripts/recording.py`.

`--check` records again and fails if the picture shows something else than what the commands print now.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "recording.svg"
SERVER = """\
from trysquare import Consent, Tools

tools = Tools("notes")
notes = {"shopping": "oat milk, bread"}


@tools.tool
def read_note(title: str) -> str:
    \"\"\"Read a note.\"\"\"
    return notes[title]


@tools.tool(consent=Consent(question="Delete the note {title}?"))
def delete_note(title: str) -> str:
    \"\"\"Delete a note for good.\"\"\"
    return f"Deleted {title}: {notes.pop(title)}"
"""
COMMANDS: tuple[tuple[str, str], ...] = (
    ("cat server.py", ""),
    ("trysquare call server.py read_note title=shopping", ""),
    ("trysquare call server.py read_note titel=shopping", ""),
    ("trysquare call server.py delete_note title=shopping", "no"),
)
"""Each command, and what is typed when it asks."""
COLUMNS, FONT, LINE, MARGIN, BAR = 84, 14, 20, 18, 34
WIDTH = COLUMNS * FONT * 0.602 + 2 * MARGIN
BACKGROUND, TEXT = "#14171f", "#d7dce5"
COLOURS = {31: "#ff8585", 32: "#8fd694", 33: "#f2cc60", 34: "#7fb4ff", 36: "#76d7e0"}
_SEQUENCE = re.compile(r"\x1b\[([0-9;]*)m")


@dataclass(frozen=True, kw_only=True)
class Span:
    """A piece of a line in one style."""

    text: str
    colour: str = TEXT
    bold: bool = False
    dim: bool = False


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of the screen, and when it appears."""

    spans: tuple[Span, ...]
    at: float

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


def main() -> int:
    """Record, and write the picture or compare it."""
    with tempfile.TemporaryDirectory(prefix="trysquare-recording-") as folder:
        lines = list(record(Path(folder)))
    picture = drawn(lines)
    if "--check" not in sys.argv:
        PICTURE.write_text(picture, encoding="utf-8")
        return 0
    if PICTURE.read_text(encoding="utf-8") != picture:
        sys.stderr.write("docs/recording.svg is out of date. Run `make recording`, and look at it.\n")
        return 1
    return 0


def record(folder: Path) -> Iterator[Line]:
    """Run the commands, and return what the terminal shows."""
    (folder / "server.py").write_text(SERVER, encoding="utf-8")
    at = 0.4
    for number, (command, typed) in enumerate(COMMANDS):
        if number:
            yield Line(spans=(), at=at)
        yield Line(spans=(Span(text="$ ", colour=COLOURS[32], bold=True), Span(text=command, bold=True)), at=at)
        at += 0.5
        for text in run(command, folder, typed).split("\n"):
            yield Line(spans=tuple(styled(text)), at=at)
            at += 0.04
        at += 1.1


def run(command: str, folder: Path, typed: str) -> str:
    """Run a command in a terminal of its own and answer its question; returns what it showed."""
    scripts = str(Path(sys.executable).parent)
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
    environment = {
        **kept, "PATH": f"{scripts}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": str(folder), "TERM": "xterm-256color",
        "COLUMNS": str(COLUMNS), "XDG_STATE_HOME": str(folder / "state"),
    }  # fmt: skip
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["sh", "-c", command], cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    written = bytearray()
    waiting = [f"{typed}\n".encode()] if typed else []
    try:
        while piece := os.read(ours, 65536):
            written += piece
            if waiting and written.endswith(b"] "):
                os.write(ours, waiting.pop())
    except OSError:  # The end of a terminal is an error where the end of a pipe is not.
        pass
    finally:
        os.close(ours)
        process.wait()
    return written.decode("utf-8").replace("\r\n", "\n").rstrip("\n")


def styled(text: str) -> Iterator[Span]:
    """A line with control sequences as spans."""
    colour, bold, dim = TEXT, False, False
    for number, part in enumerate(_SEQUENCE.split(text)):
        if number % 2 == 0:
            if part:
                yield Span(text=part, colour=colour, bold=bold, dim=dim)
            continue
        for code in (int(each or 0) for each in part.split(";")):
            if code == 0:
                colour, bold, dim = TEXT, False, False
            bold, dim = bold or code == 1, dim or code == 2
            colour = COLOURS.get(code, colour)


def drawn(lines: list[Line]) -> str:
    """The picture. Without animation, as in a viewer that has none, it shows the end."""
    height = BAR + MARGIN + len(lines) * LINE
    buttons = "".join(
        f'<circle cx="{MARGIN + 6 + 20 * place}" cy="{BAR / 2}" r="6" fill="{colour}"/>'
        for place, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    body = "\n".join(_line(line, BAR + MARGIN + number * LINE) for number, line in enumerate(lines) if line.text)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {height}" width="{WIDTH:.0f}" height="{height}" \
role="img" aria-label="A terminal: a tool is called, a mistake comes back corrected, and a deletion is refused">
<style>
text {{ font: {FONT}px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre }}
g {{ animation: appear 0.01s linear backwards }}
@keyframes appear {{ from {{ opacity: 0 }} to {{ opacity: 1 }} }}
@media (prefers-reduced-motion: reduce) {{ g {{ animation: none }} }}
</style>
<rect width="{WIDTH:.0f}" height="{height}" rx="9" fill="{BACKGROUND}"/>
{buttons}
{body}
</svg>
"""


def _line(line: Line, y: int) -> str:
    spans = "".join(_span(span) for span in line.spans)
    return (
        f'<g style="animation-delay:{line.at:.2f}s"><text x="{MARGIN}" y="{y}" xml:space="preserve">{spans}</text></g>'
    )


def _span(span: Span) -> str:
    weight = ' font-weight="bold"' if span.bold else ""
    faint = ' opacity="0.6"' if span.dim else ""
    return f'<tspan fill="{span.colour}"{weight}{faint}>{escape(span.text, quote=False)}</tspan>'


if __name__ == "__main__":
    sys.exit(main())
