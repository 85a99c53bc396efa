"""Rendering: values as a model reads them: bounded, ranked by what matters now, secrets masked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trysquare.catalog.tokens import count_tokens
from trysquare.core.secrets import MASK
from trysquare.core.types import JsonObject
from trysquare.debug.debugger import Variable
from trysquare.debug.secret_names import mask_shown, names_secret

LONGEST = 160
_NAMED = 10
"""Names of values left out that are told."""
_QUOTES = ("'", '"')
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}")
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_OWN_NAMES = ("special variables", "function variables", "class variables", "return values", "(return)", "len()")


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """Values that fit a budget, and the names of those that did not."""

    values: Mapping[str, str]
    left_out: tuple[str, ...] = ()

    def about_left_out(self) -> JsonObject:
        """What a result says of values that it does not show."""
        if not self.left_out:
            return {}
        shown = len(self.values)
        return {
            "truncated": True,
            "total_variables": shown + len(self.left_out),
            "showing_variables": shown,
            "left_out": list(self.left_out[:_NAMED]),
        }


def text_of(variable: Variable, *, longest: int = LONGEST) -> str:
    """A value's text: secrets masked, without addresses, cut where it is long."""
    text = _ADDRESS.sub("", variable.value)
    if not variable.shows_all:
        if any(quote in text for quote in _QUOTES) and len(text) > 2 and names_secret(variable.name):
            return MASK
        text = mask_shown(text)
    if len(text) <= longest and not variable.is_cut:
        return text
    size = variable.size or (f"{variable.indexed} items" if variable.indexed else "")
    return f"{text[: longest - 1]}…{f' ({size})' if size else ''}"


def ranked(
    variables: Sequence[Variable], *, line: str = "", changed: frozenset[str] = frozenset(), error: str = ""
) -> list[Variable]:
    """Values by what they matter now: changed since the last stop, named on the current line, in the error's text."""
    on_line = set(_NAME.findall(line))
    in_error = set(_NAME.findall(error))

    def weight(variable: Variable) -> int:
        name = variable.name
        return (
            4 * (name in changed)
            + 3 * (name in on_line)
            + 2 * (name in in_error)
            - 2 * name.startswith("__")
            - 3 * _is_scenery(variable)
        )

    known = [variable for variable in variables if variable.name not in _OWN_NAMES]
    return sorted(known, key=lambda variable: -weight(variable))


def within_budget(variables: Sequence[Variable], budget: int) -> Shown:
    """As many of the values as fit the tokens, the first first; each gets a share, so that one cannot take all."""
    values: dict[str, str] = {}
    left = budget
    for index, variable in enumerate(variables):
        longest = LONGEST if left > budget // 3 else LONGEST // 3
        text = text_of(variable, longest=longest)
        cost = count_tokens(f"{variable.name}: {text}\n")
        if cost > left:
            return Shown(values=values, left_out=tuple(each.name for each in variables[index:]))
        values[variable.name] = text
        left -= cost
    return Shown(values=values)


def _is_scenery(variable: Variable) -> bool:
    """Modules, functions and classes: they are there, and hardly ever what one looks for."""
    kind = variable.type or ""
    return kind in ("module", "function", "type", "builtin_function_or_method", "ABCMeta", "Function", "Object")
