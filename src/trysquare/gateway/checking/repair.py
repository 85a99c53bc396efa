"""Repair: the inputs of a call, checked before anything is sent; mended where that is safe, told where it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.nearest import nearest
from trysquare.core.shortening import fits, short, short_repr
from trysquare.core.types import JsonObject
from trysquare.gateway.checking.checker import Checker, checker_of
from trysquare.gateway.checking.problem_text import named, place_text, problem_text
from trysquare.gateway.checking.signatures import signature
from trysquare.gateway.server import Definition

if TYPE_CHECKING:
    from trysquare.gateway.checking.checking import Problem
    from trysquare.gateway.checking.input_mending import InputMending

_MOST_TOLD = 12
_KEPT = "<as you sent it>"


class Checked(NamedTuple):
    """What came of checking the inputs of one call."""

    inputs: JsonObject
    """What to send: the very object that was given, where nothing had to be mended."""
    notes: tuple[str, ...] = ()
    """What was mended, and what looks like a slip. The caller should hear of it."""
    problems: tuple[str, ...] = ()
    """What is wrong. With any of these the call is not sent."""
    corrected: JsonObject | None = None
    """Inputs that fit once the open places are filled in; None if there are none to offer."""
    open_places: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Large inputs that the caller must put back into the corrected ones."""
    code: ErrorCode | None = None

    @property
    def is_sendable(self) -> bool:
        """Whether the inputs fit, as far as can be told here."""
        return not self.problems


def checked(definition: Definition, inputs: Any) -> Checked:
    """Check the inputs of a call against a tool's definition. Quick where they fit, which is nearly always."""
    checker = checker_of(definition)
    if type(inputs) is dict and checker.compiled.fits(inputs):
        given = cast(JsonObject, inputs)
        return Checked(inputs=given, notes=_doubtful_names(given, checker))
    from trysquare.gateway.checking.input_mending import InputMending

    return _repaired(InputMending(checker, inputs))


def refusal(
    definition: Definition, found: Checked, *, call: Callable[[JsonObject], JsonObject] | None = None
) -> InvalidArguments:
    """The error for inputs that do not fit: all that is wrong, the signature, and the corrected call.

    `call` makes the call that the client can send out of the corrected inputs: `{"tool": …, "arguments": {…}}`.
    """
    following = None if found.corrected is None or call is None else call(found.corrected)
    return InvalidArguments(
        " ".join(found.problems),
        code=found.code,
        instruction=_instruction(found, following is not None),
        next=following,
        fields={"signature": signature(definition)},
    )


def _instruction(found: Checked, has_next: bool) -> str:
    if not has_next:
        return "Correct the inputs by the signature and call again. Nothing was sent."
    steps = [f"fill in {named(found.open_places)}"] if found.open_places else []
    steps += [f"put {named(found.kept)} back as you sent it"] if found.kept else []
    todo = " and ".join(steps)
    first = f"{todo[0].upper()}{todo[1:]}, then send the call in `next`." if todo else "Send the call in `next`."
    return f"{first} Nothing was sent yet."


def _repaired(mending: InputMending) -> Checked:
    if not isinstance(mending.given, dict):
        text = f"The inputs must be an object of names and values; got {short_repr(mending.given)}."
        return Checked(inputs={}, problems=(text,), code=ErrorCode.VALIDATION_INVALID_REQUEST)
    problems = mending.mend()
    if problems:
        return _refused(mending, problems)
    notes = (*mending.notes, *_doubtful_names(mending.inputs, mending.checker))
    return Checked(inputs=mending.inputs, notes=notes)


def _refused(mending: InputMending, problems: list[Problem]) -> Checked:
    from trysquare.gateway.checking.corrected_inputs import Correction

    inputs, texts = mending.inputs.copy(), _texts(mending, problems)
    correction = Correction(mending)
    corrected, kept = _elided(correction.inputs(problems))
    return Checked(
        inputs=inputs,
        notes=tuple(mending.notes),
        problems=texts,
        corrected=corrected,
        open_places=tuple(place_text(place) for place in correction.open_places),
        kept=kept,
        code=_code(problems),
    )


def _texts(mending: InputMending, problems: list[Problem]) -> tuple[str, ...]:
    shown = problems[:_MOST_TOLD]
    texts = (problem_text(problem, mending.value_at(problem.place), mending.checker.whole) for problem in shown)
    more = [f"And {len(problems) - len(shown)} more."] if len(problems) > len(shown) else []
    return tuple(dict.fromkeys([*texts, *more]))


def _doubtful_names(inputs: JsonObject, checker: Checker) -> tuple[str, ...]:
    """Notes on names that the schema lets pass and that look misspelt. Nothing is changed."""
    if checker.is_open or inputs.keys() <= checker.names:
        return ()
    unknown = [name for name in inputs if name not in checker.names][:_MOST_TOLD]
    close = ((name, nearest(name, checker.names - inputs.keys())) for name in unknown)
    return tuple(
        f"`{short(name)}` is sent as it is, but the tool names no such input; `{short(meant[0])}` may be meant."
        for name, meant in close
        if meant
    )


def _elided(corrected: JsonObject | None) -> tuple[JsonObject | None, tuple[str, ...]]:
    """The corrected inputs without the large values, which the caller has, and the names of those."""
    if corrected is None:
        return None, ()
    large = tuple(name for name, value in corrected.items() if not fits(value))
    return {name: _KEPT if name in large else value for name, value in corrected.items()}, large


def _code(problems: list[Problem]) -> ErrorCode:
    keywords = {problem.keyword for problem in problems}
    if "additionalProperties" in keywords:
        return ErrorCode.VALIDATION_UNKNOWN_PARAM
    if "required" in keywords:
        return ErrorCode.VALIDATION_MISSING_PARAM
    return ErrorCode.VALIDATION_INVALID_PARAM
