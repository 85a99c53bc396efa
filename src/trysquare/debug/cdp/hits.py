"""Hit conditions and log points for an inspector that has neither: as conditions that count and tell inside."""

from __future__ import annotations

import json
import re

from trysquare.debug.dap.client import RequestFailed
from trysquare.debug.debugger import BreakpointSpec

_HIT = re.compile(r"\s*(?P<sign>>=|<=|==|>|<|%)?\s*(?P<count>\d+)\s*")
_PARTS = re.compile(r"\{([^{}]+)\}")


def condition_of(spec: BreakpointSpec, number: int) -> str:
    """One JavaScript condition that does what the breakpoint asks for, or nothing where it asks for nothing."""
    parts: list[str] = []
    if spec.condition:
        parts.append(f"({spec.condition})")
    if spec.hit_condition:
        parts.append(_counted(spec.hit_condition, number))
    if spec.log_message:
        parts.append(f"(console.log({_told(spec.log_message)}), false)")
    return " && ".join(parts)


def _counted(text: str, number: int) -> str:
    found = _HIT.fullmatch(text)
    if found is None:
        raise RequestFailed("setBreakpoints", f"`{text}` is no hit condition: write 5, >=3 or %2.", {})
    name = f"globalThis.__trysquare_hits_{number}"
    counted = f"({name} = ({name} || 0) + 1)"
    sign, count = found["sign"] or "==", found["count"]
    return f"{counted} % {count} === 0" if sign == "%" else f"{counted} {'===' if sign == '==' else sign} {count}"


def _told(message: str) -> str:
    """A log message as JavaScript: its texts as texts, what is in braces as what it is."""
    pieces = _PARTS.split(message)
    return ", ".join(
        piece if index % 2 else json.dumps(piece.strip()) for index, piece in enumerate(pieces) if piece.strip()
    )
