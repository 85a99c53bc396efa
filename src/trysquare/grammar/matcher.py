"""CallMatcher: holds the tokens of an answer to calls, in two stages: the tool's name, then that tool's arguments.

One grammar of a thousand tools takes long to compile, and of all its arguments one tool's are needed. So a small
grammar of the names comes first. As soon as only one name is left, that tool's call is compiled, is given what has been
written, and takes over; from there on it is the exact grammar, so no token is lost at the border.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.grammar.call_lark import call_lark, names_lark
from trysquare.grammar.call_set import AFTER_NAME, BEFORE_NAME, CallSet
from trysquare.grammar.call_state import CallState, call_length, state_of, string_end
from trysquare.grammar.engines.engine import Engine, HeldText
from trysquare.grammar.pattern_examples import pattern_examples

if TYPE_CHECKING:
    from trysquare.grammar.engines.engine import Mask


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A stretch of an answer that one grammar holds."""

    held: HeldText
    tool: str | None
    """None while the name is not known."""
    first_token: int
    """How many tokens of the answer had been taken when the stage began; it was given them as bytes."""
    call_start: int
    """Where its call begins in the answer's bytes."""
    number: int
    """The number of its call, the first being 1."""


class CallMatcher:
    """An answer on its way, token by token."""

    def __init__(self, calls: CallSet, engine: Engine) -> None:
        self._calls, self._engine = calls, engine
        self._names = sorted(name.encode() for name in calls.written_names)
        self._tokens: list[int] = []
        self._lengths: list[int] = []
        self._text = bytearray()
        self._ended = False
        self._stages: list[Stage] = []
        self._stages.append(self._name_stage(call_start=len(calls.opening), number=1))
        self._enter_stages()

    @property
    def text(self) -> bytes:
        """What has been written."""
        return bytes(self._text)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens that were taken."""
        return tuple(self._tokens)

    @property
    def tool(self) -> str | None:
        """The tool that is being called; None while more than one is possible."""
        return self._stages[-1].tool

    @property
    def state(self) -> CallState:
        """How far the present call has come."""
        return CallState.COMPLETE if self.is_complete else state_of(self._call_text()[: self._call_end()])

    @property
    def is_complete(self) -> bool:
        """Whether only the end of the text may come."""
        return self._ended or self._stages[-1].held.is_complete()

    @property
    def has_ended(self) -> bool:
        """Whether the end of the text was taken."""
        return self._ended

    @property
    def vocabulary_size(self) -> int:
        """How many tokens there are."""
        return self._engine.vocabulary_size

    def bytes_of(self, token: int) -> bytes:
        """What a token writes."""
        return self._engine.bytes_of([token])

    def tokens_writing(self, texts: Iterable[bytes]) -> list[int]:
        """The tokens that write one of these texts by themselves, in their order."""
        found = map(self._engine.tokens_of, texts)
        return [tokens[0] for tokens in found if len(tokens) == 1]

    def tokens_of(self, text: str) -> list[int]:
        """Tokens that write a text."""
        return self._engine.tokens_of(text.encode())

    def would_take(self, tokens: Sequence[int]) -> bool:
        """Whether tokens may come next, one after another. Nothing changes."""
        try:
            take_all(self, tokens)
        except ToolError:
            return False
        self.take_back(len(tokens))
        return True

    def examples(self) -> tuple[str, ...]:
        """Short texts for the patterns of the present tool's arguments, as they stand in JSON."""
        return () if self.tool is None else pattern_examples(self._calls.tree(self.tool))

    def names_after(self, piece: bytes) -> tuple[str, ...]:
        """The tools that the present call may still name once this has been written too."""
        begun = self._call_text() + piece
        return tuple(
            name
            for written, name in self._calls.written_names.items()
            if _begins_alike(begun, f"{BEFORE_NAME}{written}{AFTER_NAME}".encode())
        )

    def fill(self, mask: Mask) -> None:
        """Write into the mask which tokens may come next; once the text has ended there are none."""
        if self._ended:
            mask.fill(0)
        else:
            self._stages[-1].held.fill(mask)

    def forced(self) -> list[int]:
        """The tokens that can only come next. Take them in one batch: no model needs to be asked for them."""
        return [] if self.is_complete else self._stages[-1].held.forced()

    def fast_forward(self) -> list[int]:
        """Take all tokens that are forced, across stages, and say which."""
        taken: list[int] = []
        while tokens := self.forced():
            for token in tokens:
                self.take(token)
            taken += tokens
        return taken

    def take(self, token: int) -> None:
        """Take a token. One that is not allowed is refused with GRAMMAR_REFUSED, and nothing has changed then."""
        if token in self._engine.end_tokens and self.is_complete and not self._ended:
            self._ended = True
        elif self._ended or not self._stages[-1].held.take([token]):
            raise self._refused(token)
        else:
            self._write(token)

    def take_back(self, count: int) -> None:
        """Undo the last tokens, the end of the text being one of them."""
        present = len(self._tokens) + self._ended
        if not 0 <= count <= present:
            raise ValueError(f"{count} tokens cannot be undone; {present} were taken")
        if not count:
            return
        left = present - count
        self._unwind(left)
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
            # A tool whose arguments cannot be held must not be called: the token that chose it is given back.
            self.take_back(1)
            raise

    def _unwind(self, left: int) -> None:
        present = len(self._tokens)
        while self._stages[-1].first_token > left:
            present = self._stages.pop().first_token
        self._stages[-1].held.take_back(present - left)

    def _enter_stages(self) -> None:
        while (stage := self._next_stage()) is not None:
            self._stages.append(stage)

    def _next_stage(self) -> Stage | None:
        present = self._stages[-1]
        if present.tool is None:
            written = self._chosen_name()
            return None if written is None else self._tool_stage(written)
        if not self._calls.parallel or self._call_text()[self._call_end() :][:1] != b",":
            return None
        start = present.call_start + self._call_end() + 1
        return self._name_stage(call_start=start, number=present.number + 1)

    def _chosen_name(self) -> str | None:
        """The only name that is left, as it is written in JSON."""
        call = self._call_text()
        end = string_end(call, len(BEFORE_NAME))
        if end is not None:
            return call[len(BEFORE_NAME) : end - 1].decode()
        begun = call[len(BEFORE_NAME) :]
        place = bisect_left(self._names, begun)
        others = self._names[place + 1 : place + 2]
        return None if others and others[0].startswith(begun) else self._names[place].decode()

    def _call_text(self) -> bytes:
        return bytes(self._text[self._stages[-1].call_start :])

    def _call_end(self) -> int:
        call = self._call_text()
        length = call_length(call)
        return len(call) if length is None else length

    def _name_stage(self, *, call_start: int, number: int) -> Stage:
        # The bracket before the first call is the only thing that is written before a name stage begins its work.
        before = self._calls.opening if number == 1 else ""
        held = self._engine.start(names_lark(self._calls.tools, before))
        return self._begun(held, tool=None, call_start=call_start, number=number)

    def _tool_stage(self, written: str) -> Stage:
        present, name = self._stages[-1], self._calls.written_names[written]
        before = self._calls.opening if present.number == 1 else ""
        lark = call_lark(name, self._calls.tools[name], before, self._calls.endings(present.number))
        return self._begun(self._engine.start(lark), tool=name, call_start=present.call_start, number=present.number)

    def _begun(self, held: HeldText, *, tool: str | None, call_start: int, number: int) -> Stage:
        start = 0 if number == 1 else call_start
        tokens = self._engine.tokens_of(bytes(self._text[start:]))
        if held.take(tokens) != len(tokens):
            raise AssertionError(f"the grammar of {tool!r} refuses what the stage before it allowed: {self.text!r}")
        return Stage(held=held, tool=tool, first_token=len(self._tokens), call_start=call_start, number=number)

    def _refused(self, token: int) -> ToolError:
        return ToolError(
            f"The token {token} ({self._engine.bytes_of([token])!r}) may not follow {self.text[-60:]!r}.",
            code=ErrorCode.GRAMMAR_REFUSED,
            instruction="Choose a token that the mask allows.",
        )


def _begins_alike(one: bytes, other: bytes) -> bool:
    same = min(len(one), len(other))
    return one[:same] == other[:same]


def take_all(matcher: CallMatcher, tokens: Sequence[int]) -> None:
    """Take several tokens, all or none."""
    for count, token in enumerate(tokens):
        try:
            matcher.take(token)
        except ToolError:
            matcher.take_back(count)
            raise
