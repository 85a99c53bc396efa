"""GBNF checking: what is wrong with a grammar that can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from trysquare.grammar.expressions import Choice, Expression, Grammar, Repeat, Rule, Sequence, Text, rules_named


@dataclass(frozen=True, kw_only=True, slots=True)
class GrammarFinding:
    """Something wrong with a rule."""

    kind: Literal["missing root", "undefined", "left recursion", "never ends", "unreachable"]
    rule: str
    text: str
    fatal: bool = True
    """Whether the grammar cannot be used as it is."""


def check_grammar(grammar: Grammar) -> tuple[GrammarFinding, ...]:
    """Everything wrong with a grammar, by rule."""
    return (
        *_missing_root(grammar),
        *_undefined(grammar),
        *_left_recursive(grammar),
        *_endless(grammar),
        *_unreachable(grammar),
    )


def _missing_root(grammar: Grammar) -> Iterable[GrammarFinding]:
    if grammar.root not in grammar.rules:
        text = f"There is no rule `{grammar.root}`, where a text starts."
        yield GrammarFinding(kind="missing root", rule=grammar.root, text=text)


def _undefined(grammar: Grammar) -> Iterable[GrammarFinding]:
    for name, rule in grammar.rules.items():
        for missing in sorted(rules_named(rule) - grammar.rules.keys()):
            text = f"The rule `{name}` refers to `{missing}`, which is nowhere defined."
            yield GrammarFinding(kind="undefined", rule=name, text=text)


def _left_recursive(grammar: Grammar) -> Iterable[GrammarFinding]:
    empty = _growing(grammar, lambda rule, known: _may_be_empty(rule, known))
    first = {name: _first_names(rule, empty) for name, rule in grammar.rules.items()}
    for name in grammar.rules:
        if name in _reached(first, first[name]):
            text = f"The rule `{name}` can begin with itself, so that reading it never ends."
            yield GrammarFinding(kind="left recursion", rule=name, text=text)


def _endless(grammar: Grammar) -> Iterable[GrammarFinding]:
    ending = _growing(grammar, lambda rule, known: _may_end(rule, known | (rules_named(rule) - grammar.rules.keys())))
    for name in grammar.rules:
        if name not in ending:
            text = f"No text fits the rule `{name}`: every way through it leads back to it."
            yield GrammarFinding(kind="never ends", rule=name, text=text)


def _unreachable(grammar: Grammar) -> Iterable[GrammarFinding]:
    inside = {name: rules_named(rule) for name, rule in grammar.rules.items()}
    reached = _reached(inside, inside.get(grammar.root, frozenset())) | {grammar.root}
    for name in grammar.rules:
        if name not in reached and grammar.root in grammar.rules:
            text = f"The rule `{name}` is never used."
            yield GrammarFinding(kind="unreachable", rule=name, text=text, fatal=False)


def _growing(grammar: Grammar, holds: Callable[[Expression, frozenset[str]], bool]) -> frozenset[str]:
    """The rules for which something holds, given those for which it is known to."""
    known: frozenset[str] = frozenset()
    while True:
        found = frozenset(name for name, rule in grammar.rules.items() if holds(rule, known))
        if found == known:
            return known
        known = found


def _may_be_empty(expression: Expression, empty: frozenset[str]) -> bool:
    match expression:
        case Text(text):
            return not text
        case Sequence(parts):
            return all(_may_be_empty(part, empty) for part in parts)
        case Choice(options):
            return any(_may_be_empty(option, empty) for option in options)
        case Repeat(part, fewest):
            return fewest == 0 or _may_be_empty(part, empty)
        case Rule(name):
            return name in empty
        case _:
            return False


def _may_end(expression: Expression, ending: frozenset[str]) -> bool:
    match expression:
        case Sequence(parts):
            return all(_may_end(part, ending) for part in parts)
        case Choice(options):
            return any(_may_end(option, ending) for option in options)
        case Repeat(part, fewest):
            return fewest == 0 or _may_end(part, ending)
        case Rule(name):
            return name in ending
        case _:
            return True


def _first_names(expression: Expression, empty: frozenset[str]) -> frozenset[str]:
    """The rules with which an expression can begin."""
    match expression:
        case Sequence(parts):
            found: frozenset[str] = frozenset()
            for part in parts:
                found |= _first_names(part, empty)
                if not _may_be_empty(part, empty):
                    break
            return found
        case Choice(options):
            return frozenset(name for option in options for name in _first_names(option, empty))
        case Repeat(part):
            return _first_names(part, empty)
        case Rule(name):
            return frozenset({name})
        case _:
            return frozenset()


def _reached(inside: Mapping[str, frozenset[str]], start: frozenset[str]) -> frozenset[str]:
    reached: set[str] = set()
    waiting = set(start)
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting |= inside.get(name, frozenset()) - reached
    return frozenset(reached)
