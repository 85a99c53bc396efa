"""The words about consent that every rendering of a tool's description keeps."""

from __future__ import annotations

from trysquare.core.metadata import Consent, ToolMetadata

CONSENT_MARK = "REQUIRES EXPLICIT USER INSTRUCTION"


def consent_warning(metadata: ToolMetadata) -> str | None:
    """The warning for a tool that needs a person's word, or None for a tool that does not."""
    if metadata.consent is None and metadata.consent_literal is None:
        return None
    called = _called(metadata.consent)
    sentences = [f"{CONSENT_MARK}: {called} only when the person has asked for it, never on your own or to try it."]
    if metadata.consent is not None:
        sentences.append("The person is asked before it runs, and only they can agree.")
    if metadata.consent_literal is not None:
        sentences.append(f'Send the text "{metadata.consent_literal}" only with their consent.')
    return " ".join(sentences)


def _called(consent: Consent | None) -> str:
    if consent is None or not consent.actions:
        return "call this"
    return f"use {', '.join(sorted(consent.actions))}"
