"""Descriptions: one line on what a tool does, and a few of the words that call for it."""

from __future__ import annotations

from collections.abc import Iterable

from trysquare.bots.definition import BotDefinition

MOST_TRIGGERS = 5
_LONGEST = 1_000
_LONGEST_LINE = 80


def described(purpose: str, triggers: Iterable[str], *, most: int = MOST_TRIGGERS) -> str:
    """The purpose, and at most five trigger patterns, as a list of tools shows them."""
    chosen = list(dict.fromkeys(triggers))[:most]
    lines = [purpose]
    if chosen:
        lines.append("Trigger patterns: " + ", ".join(chosen))
    return "\n".join(lines)[:_LONGEST]


def bot_purpose(bot: BotDefinition) -> str:
    """What the bot tool is for."""
    return _short(f"Continue {bot.name} where it stands: the current action's instructions.")


def behavior_purpose(bot: BotDefinition, behavior: str) -> str:
    """What a behavior's tool is for."""
    return f"Continue {behavior} of {bot.name} at its current action."


def action_purpose(behavior: str, action: str) -> str:
    """What the tool of an action is for."""
    return f"{action.replace('_', ' ').capitalize()} for {behavior}."


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_LINE else text[: _LONGEST_LINE - 1] + "…"
