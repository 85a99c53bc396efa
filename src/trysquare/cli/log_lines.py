"""How a log record is written: one bounded line, whatever the text in it holds, and its traceback indented below."""

from __future__ import annotations

import logging

from trysquare.core.untrusted import block, one_line

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
LONGEST_LINE = 8 * 1024
LONGEST_TRACEBACK = 64 * 1024
"""Characters of each."""
_INDENT = "    "


class LineFormatter(logging.Formatter):
    """No message can begin a line of its own: a line that is not indented is one that we wrote."""

    def __init__(self) -> None:
        super().__init__(FORMAT)

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = one_line(record.message, LONGEST_LINE)
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        # Where the record has an exception, others may have left its text there, made by a formatter of theirs. Without
        # one, the text is the traceback itself, as of a crash whose secrets were masked.
        left = record.exc_text
        record.exc_text = None if record.exc_info or not left else _indented(left)
        try:
            return super().format(record)
        finally:
            record.exc_text = left

    def formatException(self, ei: logging._SysExcInfoType) -> str:  # pyright: ignore[reportPrivateUsage]
        return _indented(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:
        return _indented(super().formatStack(stack_info))


def _indented(text: str) -> str:
    """The end of a long traceback is kept too, since it says what happened."""
    if len(text) > LONGEST_TRACEBACK:
        half = LONGEST_TRACEBACK // 2
        text = f"{text[:half]}\n… ({len(text)} characters)\n{text[-half:]}"
    return "\n".join(_INDENT + line for line in block(text).split("\n"))
