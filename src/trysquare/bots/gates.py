"""Gates: what it takes to leave an action or to leave the order, and the proof that a person agreed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trysquare.bots.definition import BotDefinition
from trysquare.bots.plan import Jump, Plan, Policy, Position
from trysquare.core.consent import Agreement, Approvals, ConsentRequest, arguments_digest
from trysquare.core.consent_check import agreed
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.types import JsonObject
from trysquare.files.sealed_folder import PathRefused, SealedFolder

_LARGEST = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Gates:
    """The gates of a bot in one run, which may be strict."""

    definition: BotDefinition
    strict: bool = False

    def needs_proof(self, position: Position) -> bool:
        """Whether only a human can close this action."""
        return self.strict or self.is_defined(position)

    def is_defined(self, position: Position) -> bool:
        """Whether the definition itself says so."""
        return self.definition.gate(position.behavior, position.action).proof

    def policy(self, position: Position) -> Policy:
        """When the action is done. What needs proof or clean rules is never done by itself."""
        policy = self.definition.gate(position.behavior, position.action).policy
        held = self.needs_proof(position) or self.requires_clean(position)
        return "manual" if policy == "auto" and held else policy

    def requires_clean(self, position: Position) -> bool:
        """Whether the rules must be without violations first."""
        return self.definition.gate(position.behavior, position.action).requires_clean


def check_jump(plan: Plan, jump: Jump, position: Position) -> bool:
    """Whether a person has to agree to open this action; raises where it may not be opened."""
    policy = plan.jump_policy(jump)
    if policy == "deny":
        raise ToolError(
            f"`{position.behavior}.{position.action}` is {_WORDS[jump]}, and this bot does not allow that.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Go on with the current action; `next` says how.",
            fields={"jump": jump},
        )
    return policy == "confirm"


_WORDS: dict[Jump, str] = {"in_order": "in order", "ahead": "out of order", "reopened": "done already"}


async def ask_person(
    tool: str, question: str, binding: JsonObject, *, approvals: Approvals | None, context: CallContext
) -> Agreement:
    """Have a person agree: through the client, or with a code in their own terminal."""
    if approvals is None:
        raise ToolError(
            "A person has to agree to this, and there is no state file to keep the receipt in.",
            code=ErrorCode.STATE_UNAVAILABLE,
        )
    request = ConsentRequest(
        tool=tool,
        principal=context.principal.subject,
        digest=arguments_digest(binding),
        question=question,
        arguments=binding,
    )
    return await agreed(request, approvals, context)


def file_digests(project: Path, paths: Iterable[str]) -> dict[str, str]:
    """The digest of each file that is there. What a person approved is these bytes and no others."""
    found: dict[str, str] = {}
    with SealedFolder(project) as folder:
        for path in paths:
            try:
                found[path] = hashlib.sha256(folder.read_bytes(path, limit=_LARGEST)).hexdigest()
            except NotFound:
                continue
            except PathRefused:
                found[path] = "unreadable"
    return found
