"""CallWalk: an answer of calls, piece by piece, for backends that append what is forced instead of sampling it."""

from __future__ import annotations

from typing import Any

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.grammar.answer_writing import AnswerWriter
from trysquare.grammar.call_set import CallSet
from trysquare.grammar.least import common_beginning
from trysquare.grammar.piece import Piece, choice_piece, free_piece, inside_piece, must_be_empty
from trysquare.grammar.piece_text import TextRefused, free_end, inside_end
from trysquare.grammar.wanted import Choice, Forced, Free, Inside, Option, Wanted

_PLENTY = 512
"""With so many tokens left, the schemas of all tools are not read to see whether the shortest call of each fits."""


class CallWalk:
    """One answer on its way. Ask for the next piece, then give what came for it."""

    def __init__(self, calls: CallSet) -> None:
        self._writer = AnswerWriter(calls)
        self._writing = self._writer.answer()
        self._wanted: Wanted | None = next(self._writing)
        self._ahead = ""
        """What stands of the text already, but has not been asked for by the writing yet."""
        self._owed = ""
        """Forced text that no piece has given out yet."""
        self._piece: Piece | None = None
        self._text = ""

    @property
    def text(self) -> str:
        """All that has been taken."""
        return self._text

    def next(self, *, tokens_left: int) -> Piece | None:
        """The next piece, made to fit into the tokens that are left; None once only the end of text may come."""
        self._settle(tokens_left)
        if self._owed:
            self._piece = Piece(forced=self._owed)
        elif self._wanted is None:
            self._piece = None
        else:
            self._piece = self._chosen(self._wanted, tokens_left)
        return self._piece

    def take(self, text: str) -> None:
        """What came for the piece, with the first bytes of what follows where a token held both."""
        piece, self._piece = self._piece, None
        try:
            self._take(piece, text)
            self._settle(None)
        except TextRefused as refusal:
            raise self._refused(text, str(refusal)) from refusal
        self._text += text

    def _take(self, piece: Piece | None, text: str) -> None:
        if piece is None:
            raise TextRefused("no piece was asked for, or the answer is complete")
        match self._wanted:
            case _ if piece.forced is not None:
                self._take_forced(piece.forced, text)
            case Choice():
                self._ahead += text
            case Inside() as wanted:
                end, self._owed = inside_end(text, wanted.shortest, wanted.longest)
                self._ahead = text[end:]
                self._go_on()
            case Free() as wanted:
                self._ahead = text[free_end(text, wanted.shape, self._writer.named) :]
                self._go_on()
            case _:
                raise TextRefused("the answer is complete")

    def _take_forced(self, forced: str, text: str) -> None:
        if text != forced:
            raise TextRefused(f"only {forced!r} may come")
        self._owed = ""

    def _settle(self, tokens_left: int | None) -> None:
        """Go on to where there is something to choose, gathering what is forced on the way."""
        while self._wanted is not None:
            left = None if tokens_left is None else tokens_left - len(self._owed.encode())
            match self._wanted:
                case Forced(text=text):
                    self._write(text)
                    self._go_on()
                case Choice() as choice if (number := self._decided(choice, left)) is not None:
                    self._go_on(number)
                case Inside() as wanted if left is not None and must_be_empty(wanted, left):
                    self._owed += '"'
                    self._go_on()
                case _:
                    return

    def _write(self, text: str) -> None:
        same = min(len(text), len(self._ahead))
        if text[:same] != self._ahead[:same]:
            raise TextRefused(f"only {text!r} may come")
        self._owed += text[same:]
        self._ahead = self._ahead[same:]

    def _go_on(self, number: int = 0) -> None:
        try:
            self._wanted = self._writing.send(number)
        except StopIteration:
            self._wanted = None
            if self._ahead:
                raise TextRefused("the answer is complete before the text ends") from None

    def _decided(self, choice: Choice, left: int | None) -> int | None:
        """The number of the option that is taken; None while there are several, whose common beginning is owed."""
        options = self._open_options(choice, left)
        if len(options) == 1:
            return choice.options.index(options[0])
        common = "" if choice.names else common_beginning(option.look for option in options)
        self._owed += common[len(self._ahead) :]
        self._ahead = max(common, self._ahead, key=len)
        return None

    def _open_options(self, choice: Choice, left: int | None) -> list[Option]:
        begun = self._ahead
        options = [each for each in choice.options if each.look.startswith(begun) or begun.startswith(each.look)]
        if not options:
            raise TextRefused("it begins none of the texts that may come")
        if left is None or (choice.names and left >= _PLENTY):
            return options
        fitting = [each for each in options if each.need() - len(begun.encode()) <= left]
        if not fitting:
            raise self._too_long(min(each.need() for each in options), left)
        return fitting

    def _chosen(self, wanted: Wanted, tokens_left: int) -> Piece:
        match wanted:
            case Choice():
                return choice_piece(self._open_options(wanted, tokens_left), len(self._ahead), tokens_left)
            case Inside(shortest=shortest, rest=rest):
                self._check_room(shortest + 1 + rest, tokens_left)
                return inside_piece(wanted, tokens_left)
            case Free(shape=shape, rest=rest):
                self._check_room(self._writer.least(shape) + rest, tokens_left)
                return free_piece(wanted, self._writer.named, tokens_left)
            case Forced():
                raise AssertionError("what is forced was gathered before")

    def _check_room(self, need: int, tokens_left: int) -> None:
        if need > tokens_left:
            raise self._too_long(need, tokens_left)

    def _refused(self, text: str, why: str) -> ToolError:
        return ToolError(
            f"The text {text!r} may not follow {self._text[-60:]!r}: {why}.",
            code=ErrorCode.GRAMMAR_REFUSED,
            instruction="Hold the model to the grammar of the piece, and give back exactly what it wrote.",
        )

    def _too_long(self, need: int, left: int) -> ToolError:
        fields: dict[str, Any] = {"needed": need, "left": left}
        return ToolError(
            f"No call fits into the {left} tokens that are left; the shortest may need {need}.",
            code=ErrorCode.GRAMMAR_REFUSED,
            instruction="Allow the answer more tokens, or offer a tool that needs fewer arguments.",
            fields=fields,
        )
