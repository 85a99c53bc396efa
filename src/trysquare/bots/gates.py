"""Gates: what it takes to leave an action or the order, and the proof that a human agreed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trysquare.bots.definition.model import BotDefinition
from trysquare.bots.documents.store import expand, is_one_of
from trysquare.bots.workflow.machine import Jump, Plan, Policy, Position, RunState, StateConflict
from trysquare.core.approvals import Approvals, ConsentGrant, ConsentRequest, arguments_digest
from trysquare.core.consent import obtain_consent
from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, NotFound, ToolError
from trysquare.core.json import JsonObject
from trysquare.files.root import DirectoryRoot, PathNotAllowed

MAX_FILE = 64 * 1024 * 1024
_WORDS: dict[Jump, str] = {"in_order": "in order", "ahead": "out of order", "reopened": "completed already"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Gates:
    """The gates of a bot in one run, which may be strict."""

    definition: BotDefinition
    strict: bool = False
    waived: frozenset[Position] = frozenset()
    """Actions whose gates the run's preset takes away."""

    @staticmethod
    def of(definition: BotDefinition, state: RunState) -> Gates:
        return Gates(definition=definition, strict=state.strict, waived=state.waived)

    def needs_proof(self, position: Position) -> bool:
        """Whether only a human can close this action."""
        return (self.strict and position not in self.waived) or self.is_defined(position)

    def is_defined(self, position: Position) -> bool:
        """Whether the definition itself demands proof."""
        proofs = self.definition.proofs
        return bool(proofs) and position in proofs and position not in self.waived

    def policy(self, position: Position) -> Policy:
        """When the action is complete. What needs proof or clean rules never closes itself."""
        policy = self.definition.gates[position].policy
        gated = self.needs_proof(position) or self.requires_clean(position)
        return "manual" if policy == "auto" and gated else policy

    def requires_clean(self, position: Position) -> bool:
        """Whether the rules must have no violations first."""
        return self.definition.gates[position].requires_clean and position not in self.waived


def check_jump(plan: Plan, jump: Jump, position: Position) -> bool:
    """Whether a human has to agree before this action is opened; raises where it may not be opened."""
    policy = plan.jump_policy(jump)
    if policy == "deny":
        raise StateConflict(
            f"`{position}` is {_WORDS[jump]}, and this bot does not allow that.",
            instruction="Continue with the current action; send `next`.",
            fields={"jump": jump},
        )
    return policy == "confirm"


async def ask_human(
    tool: str,
    question: str,
    binding: JsonObject,
    *,
    approvals: Approvals | None,
    context: CallContext,
    gate: bool = False,
    strict: bool = False,
) -> ConsentGrant:
    """Obtain a human's consent, through the client or with a code in their own terminal.

    `gate` closes a gate of the run. In a `strict` run of a project with approvers, one of them has to sign.
    """
    if approvals is None:
        raise ToolError(
            "This needs a human's approval, and there is no database to store it in.", code=ErrorCode.STATE_UNAVAILABLE
        )
    request = ConsentRequest(
        tool=tool,
        principal=context.principal.subject,
        digest=arguments_digest(binding),
        question=question,
        arguments=binding,
        gate=gate,
        strict=strict,
    )
    return await obtain_consent(request, approvals, context)


def file_digests(project: Path, paths: Iterable[str]) -> dict[str, str]:
    """The digest of each existing file, and of each that a path with `*` means: an approval is bound to these bytes."""
    found: dict[str, str] = {}
    with DirectoryRoot(project) as folder:
        for path in (each for given in paths for each in expand(folder, given)):
            try:
                found[path] = hashlib.sha256(folder.read_bytes(path, limit=MAX_FILE)).hexdigest()
            except NotFound:
                continue
            except PathNotAllowed:
                found[path] = "unreadable"
    return found


def absent_paths(paths: Iterable[str], digests: Mapping[str, str]) -> tuple[str, ...]:
    """The paths that no file has."""
    return tuple(path for path in paths if not any(each == path or is_one_of(each, path) for each in digests))
