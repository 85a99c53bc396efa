"""CallMatcher: constrains the tokens of a response to calls, in two stages: the tool's name, then its arguments.

One grammar of a thousand tools is slow to compile, and only one tool's arguments are needed. So a small grammar of the
names comes first. As soon as only one name is left, that tool's exact call grammar is compiled, receives the text so
far, and takes over.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.grammar.calls import call_set
from trysquare.grammar.engine import ConstrainedText, GrammarEngine

if TYPE_CHECKING:
    from trysquare.grammar.engine import Mask


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A part of a response under one grammar."""

    constrained: ConstrainedText
    tool: str | None
    first_token: int
    """Tokens of the response when the stage started; it received them as bytes."""
    call_start: int
    """Byte offset of its call."""
    number: int
    """Number of its call, from 1."""


class CallMatcher:
    """A response, token by token."""

    def __init__(self, calls: call_set.CallSet, engine: GrammarEngine) -> None:
        self._calls, self._engine = calls, engine
        self._names = sorted(name.encode() for name in calls.written_names)
        self._tokens: list[int] = []
        self._lengths: list[int] = []
        self._text = bytearray()
        self._ended = False
        self._stages = [self._name_stage(call_start=len(calls.opening), number=1)]
        self._enter_stages()

    @property
    def text(self) -> bytes:
        return bytes(self._text)

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(self._tokens)

    @property
    def tool(self) -> str | None:
        """The called tool; None while more than one is possible."""
        return self._stages[-1].tool

    @property
    def state(self) -> call_set.CallState:
        """State of the current call."""
        if self.is_complete:
            return call_set.CallState.COMPLETE
        return call_set.state_of(self._call_text()[: self._call_end()])

    @property
    def is_complete(self) -> bool:
        """Whether only the end of text may come."""
        return self._ended or self._stages[-1].constrained.is_complete()

    @property
    def has_ended(self) -> bool:
        return self._ended

    @property
    def vocabulary_size(self) -> int:
        return self._engine.vocabulary_size

    def bytes_of(self, token: int) -> bytes:
        return self._engine.bytes_of([token])

    def names_after(self, piece: bytes) -> tuple[str, ...]:
        """The tools that the current call may still name after this piece."""
        begun = self._call_text() + piece
        starts = (
            (name, f"{call_set.BEFORE_NAME}{written}{call_set.AFTER_NAME}".encode())
            for written, name in self._calls.written_names.items()
        )
        return tuple(name for name, start in starts if start.startswith(begun) or begun.startswith(start))

    def fill(self, mask: Mask) -> None:
        """Write into the mask which tokens may come next; none after the end."""
        if self._ended:
            mask.fill(0)
        else:
            self._stages[-1].constrained.fill(mask)

    def forced(self) -> list[int]:
        """The forced next tokens, which need no evaluation of the model."""
        return [] if self.is_complete else self._stages[-1].constrained.forced()

    def fast_forward(self) -> list[int]:
        """Take all forced tokens, across stages, and return them."""
        taken: list[int] = []
        while tokens := self.forced():
            for token in tokens:
                self.take(token)
            taken += tokens
        return taken

    def take(self, token: int) -> None:
        """Take a token. One that is not allowed raises GRAMMAR_REFUSED and changes nothing."""
        if token in self._engine.end_tokens and self.is_complete and not self._ended:
            self._ended = True
        elif self._ended or not self._stages[-1].constrained.take([token]):
            raise ToolError(
                f"The token {token} ({self._engine.bytes_of([token])!r}) may not follow {self.text[-60:]!r}.",
                code=ErrorCode.GRAMMAR_REFUSED,
                instruction="Choose a token that the mask allows.",
            )
        else:
            self._write(token)

    def take_back(self, count: int) -> None:
        """Undo the last tokens, including the end of text."""
        present = len(self._tokens) + self._ended
        if not 0 <= count <= present:
            raise ValueError(f"cannot undo {count} of {present} tokens")
        if not count:
            return
        left = present - count
        written = len(self._tokens)
        while self._stages[-1].first_token > left:
            written = self._stages.pop().first_token
        self._stages[-1].constrained.take_back(written - left)
        self._ended = False
        del self._tokens[left:], self._lengths[left:]
        del self._text[self._lengths[-1] if left else 0 :]

    def _write(self, token: int) -> None:
        self._tokens.append(token)
        self._text += self._engine.bytes_of([token])
        self._lengths.append(len(self._text))
        try:
            self._enter_stages()
        except ToolError:
            # A tool with arguments that no grammar can express must not be called: its token is undone.
            self.take_back(1)
            raise

    def _enter_stages(self) -> None:
        while (stage := self._next_stage()) is not None:
            self._stages.append(stage)

    def _next_stage(self) -> Stage | None:
        present = self._stages[-1]
        if present.tool is None:
            written = self._chosen_name()
            return None if written is None else self._tool_stage(self._calls.written_names[written])
        if not self._calls.parallel or self._call_text()[self._call_end() :][:1] != b",":
            return None
        start = present.call_start + self._call_end() + 1
        return self._name_stage(call_start=start, number=present.number + 1)

    def _chosen_name(self) -> str | None:
        """The only name left, as JSON writes it."""
        call = self._call_text()
        end = call_set.string_end(call, len(call_set.BEFORE_NAME))
        if end is not None:
            return call[len(call_set.BEFORE_NAME) : end - 1].decode()
        begun = call[len(call_set.BEFORE_NAME) :]
        index = bisect_left(self._names, begun)
        others = self._names[index + 1 : index + 2]
        return None if others and others[0].startswith(begun) else self._names[index].decode()

    def _call_text(self) -> bytes:
        return bytes(self._text[self._stages[-1].call_start :])

    def _call_end(self) -> int:
        call = self._call_text()
        length = call_set.call_length(call)
        return len(call) if length is None else length

    def _name_stage(self, *, call_start: int, number: int) -> Stage:
        lark = call_set.names_lark(self._calls.tools, self._before(number))
        return self._begun(lark, tool=None, call_start=call_start, number=number)

    def _tool_stage(self, name: str) -> Stage:
        number = self._stages[-1].number
        schema, endings = self._calls.tools[name], self._calls.endings(number)
        lark = call_set.call_lark(name, schema, self._before(number), endings)
        return self._begun(lark, tool=name, call_start=self._stages[-1].call_start, number=number)

    def _before(self, number: int) -> str:
        """What precedes a call: only the bracket before the first one."""
        return self._calls.opening if number == 1 else ""

    def _begun(self, lark: str, *, tool: str | None, call_start: int, number: int) -> Stage:
        constrained = self._engine.start(lark)
        start = 0 if number == 1 else call_start
        tokens = self._engine.tokens_of(bytes(self._text[start:]))
        if constrained.take(tokens) != len(tokens):
            raise AssertionError(f"the grammar of {tool!r} rejects what the previous stage allowed: {self.text!r}")
        return Stage(
            constrained=constrained, tool=tool, first_token=len(self._tokens), call_start=call_start, number=number
        )
