"""How many inputs each kind of fuzzing gets: ten thousand in all, a hundred thousand in the full size."""

from __future__ import annotations

from tests.support import size

SHARES = {
    "arbitrary arguments": 800,
    "arguments from schemas": 4200,
    "requests in memory": 1000,
    "frames over stdio": 2500,
    "requests over HTTP": 1500,
}


def share(kind: str) -> int:
    """How many inputs of one kind to make."""
    return size(SHARES[kind], SHARES[kind] * 10)
