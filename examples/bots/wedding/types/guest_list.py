"""A guest list as CSV: a document type of this bot, whose methods run in the sandbox."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from html import escape
from typing import Any

from trysquare.bots import DocumentError, DocumentType

COLUMNS = ("name", "table", "diet")
SEATS = 8


class GuestList(DocumentType):
    targets = ("guest",)
    builders = ("tables_svg",)

    def parse(self, text: str) -> Any:
        rows = list(csv.reader(io.StringIO(text)))
        if not rows or tuple(rows[0]) != COLUMNS:
            raise DocumentError(f"the first line is not `{','.join(COLUMNS)}`", 1)
        for line, row in enumerate(rows[1:], start=2):
            if len(row) != len(COLUMNS):
                raise DocumentError(f"this guest has {len(row)} values; expected {len(COLUMNS)}", line)
        return {"guests": [dict(zip(COLUMNS, row, strict=True)) for row in rows[1:]]}

    def lines(self, text: str) -> dict[tuple[str | int, ...], int]:
        return {("guests", index): index + 2 for index in range(len(text.splitlines()))}

    def dump(self, value: Any, text: str) -> str:
        written = io.StringIO()
        writer = csv.DictWriter(written, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(value["guests"])
        return written.getvalue()

    def problems(self, value: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
        taken = Counter[str]()
        for index, guest in enumerate(value["guests"]):
            taken[guest["table"]] += 1
            if taken[guest["table"]] > SEATS:
                yield ("guests", index), f"Table {guest['table']} has no seat left: it has {SEATS}."

    def select(self, kind: str, value: Any) -> Iterator[tuple[tuple[str | int, ...], Any, str]]:
        for index, guest in enumerate(value["guests"]):
            yield ("guests", index), guest, guest["name"]

    def value_schema(self) -> dict[str, Any]:
        guest = {"type": "object", "properties": {column: {"type": "string"} for column in COLUMNS}}
        return {"type": "object", "properties": {"guests": {"type": "array", "items": guest}}}

    def build(self, builder: str, value: Any) -> str:
        tables = sorted({guest["table"] for guest in value["guests"]})
        rows = [
            f'<text x="{20 + 160 * column}" y="{30 + 20 * row}">{escape(text)}</text>'
            for column, table in enumerate(tables)
            for row, text in enumerate([f"Table {table}", *_names(value, table)])
        ]
        size = f'width="{160 * len(tables) + 20}" height="{20 * (SEATS + 2) + 20}"'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(rows)}</svg>\n'


def _names(value: Any, table: str) -> list[str]:
    return [guest["name"] for guest in value["guests"] if guest["table"] == table]
