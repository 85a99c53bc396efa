"""Wording: sentences in a definition that give a model orders instead of saying what a tool does."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, cast

from trysquare.core.untrusted import cleaned_text

_LONGEST_READ = 100_000
_DEEDS = r"(?:call|use|run|invoke|execute|read|include|send|append|pass|open|fetch|copy|put|ignore|act|attach|forward)"
_PATTERNS: tuple[tuple[str, str], ...] = (
    (
        "It tells the model to set instructions aside",
        r"\b(?:ignore|disregard|forget|override|bypass|supersedes?)\b.{0,60}"
        r"\b(?:instructions?|rules?|prompts?|polic(?:y|ies)|guidelines?|messages?|other tools?)\b",
    ),
    (
        "It tells the model to keep something from the person",
        r"\b(?:do not|don't|dont|never|without|no need to|avoid)\b.{0,30}"
        r"\b(?:tell|mention|inform|reveal|show|notify|warn|alert|disclos|ask)\w*\b.{0,40}"
        r"\b(?:users?|person|people|humans?|anyone|them|confirmation|permission|consent)\b",
    ),
    (
        "It tells the model what to do",
        rf"\byou (?:must|should|shall|need to|have to|are to)\b.{{0,25}}\b{_DEEDS}\b"
        rf"|\balways (?:first )?{_DEEDS}\b"
        r"|\b(?:before|after) (?:using|calling|running|invoking|answering|responding|every|any)\b"
        r"|\bwhenever\b.{0,40}\b(?:tool|user|asks?|calls?)\b"
        r"|\binstead of (?:the |any |every )?(?:other |existing )?\w+ tools?\b",
    ),
    (
        "It addresses the model",
        r"<\s*/?\s*(?:important|system|instructions?|secret|assistant|hidden|critical)\b|\[/?inst\]"
        r"|\b(?:important|critical|urgent|attention|note to (?:the )?(?:ai|assistant|model|llm))\s*[:!]"
        r"|\b(?:system|developer) (?:prompt|message|instruction)s?\b"
        r"|\b(?:ai|assistants?|llms?|language models?|the model|the agent)\b.{0,15}"
        r"\b(?:must|should|shall|has to|needs to)\b",
    ),
    (
        "It asks for secrets or for the conversation",
        r"~/\.|\.ssh\b|\bid_(?:rsa|ed25519)\b|(?<!\w)\.env\b|/etc/(?:passwd|shadow)|\.aws/|\bmcp\.json\b"
        r"|\b(?:api[ _-]?keys?|private keys?|access tokens?|credentials|passwords?|secrets)\b"
        r"|\b(?:conversation|chat|message) (?:history|so far|context)\b"
        r"|\b(?:full|entire|whole) (?:conversation|context)\b",
    ),
    (
        "It wants something sent away",
        r"\b(?:send|forward|post|upload|bcc|transmit|report|leak|exfiltrat|copy)\w*\b.{0,80}(?:https?://|\S@\w)",
    ),
    ("It holds text in a code", r"(?<![\w+/=])[\w+/]{80,}={0,2}"),
)
_COMPILED = tuple((reason, re.compile(pattern)) for reason, pattern in _PATTERNS)
_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n+")


def orders_in(texts: Iterable[str]) -> tuple[str, ...]:
    """Why some texts read like orders to a model, each reason once; empty where they do not."""
    plain = "\n".join(_plain(text) for text in texts)
    return tuple(reason for reason, pattern in _COMPILED if pattern.search(plain))


def sentences(text: str) -> list[str]:
    """A text, sentence by sentence, without blanks around."""
    return [part.strip() for part in _SENTENCES.split(text) if part.strip()]


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value: names, descriptions, choices, defaults."""
    waiting: list[Any] = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            for name, inner in cast(dict[str, Any], part).items():
                yield name
                waiting.append(inner)
        elif isinstance(part, list):
            waiting.extend(cast(list[Any], part))


def _plain(text: str) -> str:
    """A text as a model takes it in, whatever letters it was written with."""
    return " ".join(unicodedata.normalize("NFKC", cleaned_text(text[:_LONGEST_READ])).lower().split())
