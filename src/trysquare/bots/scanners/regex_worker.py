"""Standalone program: match a pattern. It imports nothing of this package and starts quickly."""

from __future__ import annotations

import json
import re
import sys

MAX_HITS = 200

Span = tuple[int, int, int]
"""Index of the text, start, end."""


def find_spans(pattern: str, flags: int, texts: list[str], first_only: bool) -> list[Span]:
    """Matches of a pattern, at most one per line, up to a limit."""
    compiled = re.compile(pattern, flags)
    spans: list[Span] = []
    for index, text in enumerate(texts):
        line_end = -1
        for match in compiled.finditer(text):
            if match.start() <= line_end:
                continue
            spans.append((index, match.start(), match.end()))
            if first_only or len(spans) >= MAX_HITS:
                break
            line_end = _end_of_line(text, match.start())
    return spans


def _end_of_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


if __name__ == "__main__":
    json.dump(find_spans(**json.load(sys.stdin)), sys.stdout)
