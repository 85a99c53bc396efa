"""The descriptors of a client over stdio, kept for the protocol before anything else is loaded."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

from trysquare.core.errors import ConfigurationError
from trysquare.serve.early import is_open


@contextmanager
def diverted_output() -> Generator[tuple[int, int]]:
    """Keep stdin and stdout for the protocol: what anything prints goes to stderr, what anything reads is empty.

    The descriptors themselves are moved, so that it holds for libraries in C and for child processes as well.
    """
    require_open()
    private_in, private_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(nothing, 0)
        os.dup2(2 if is_open(2) else nothing, 1)
        yield private_in, private_out
    finally:
        # What was printed and not yet written belongs to stderr; where that is closed, nobody wants it.
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(private_in, 0)
        os.dup2(private_out, 1)
        for descriptor in (private_in, private_out, nothing):
            os.close(descriptor)


def require_open() -> None:
    """Refuse to serve where standard input or output is closed. Asked before anything else takes their numbers."""
    if not (is_open(0) and is_open(1)):
        raise ConfigurationError(
            "Standard input or output is closed, so no client can be served.",
            hint="Let an MCP client start this command, or serve over HTTP.",
        )
