"""Scanners that the tests of rules name by their dotted path."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any


def shouting(value: Any) -> Iterator[str]:
    if str(value.get("name")).isupper():
        yield f"{value['name']} shouts"


def long_lines(value: str, *, longest: int) -> list[tuple[int, str]]:
    print("scanners may print")  # noqa: T201
    return [(at, "") for at, line in enumerate(value.splitlines(), start=1) if len(line) > longest]


def failing(value: Any) -> list[str]:
    raise RuntimeError("this scanner is broken")


def endless(value: Any) -> None:
    Event().wait()
