"""Descriptions: one line on what a tool does, and a few of the words that call for it."""

from __future__ import annotations

from collections.abc import Iterable

from trysquare.bots.definition import BotDefinition

MOST_TRIGGERS = 5
_LONGEST = 1_000


def described(purpose: str, triggers: Iterable[str], *, most: int = MOST_TRIGGERS) -> str:
    """The purpose, and at most five trigger patterns, as a list of tools shows them."""
    chosen = list(dict.fromkeys(triggers))[:most]
    lines = [purpose]
    if chosen:
        lines.append("Trigger patterns: " + ", ".join(chosen))
    return "\n".join(lines)[:_LONGEST]


def bot_purpose(bot: BotDefinition) -> str:
    """What the bot tool is for."""
    return f"Continue {bot.name} at its current action."


def behavior_purpose(behavior: str) -> str:
    """What a behavior's tool is for."""
    return f"Continue {behavior} at its current action."


def action_purpose(behavior: str, action: str) -> str:
    """What the tool of an action is for."""
    return f"{action.replace('_', ' ').capitalize()} for {behavior}."
