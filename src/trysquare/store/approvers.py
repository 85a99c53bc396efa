"""Approvers of a project: whose signatures count, for what, and the receipts that travel with the project."""

from __future__ import annotations

import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from trysquare.core.approvals import SignedStatement
from trysquare.core.errors import ConfigurationError
from trysquare.core.json import JsonObject, as_object
from trysquare.store.passkeys import (
    PASSKEYS_FILE,
    Passkey,
    is_passkey_signature,
    read_passkey_signature,
    read_passkeys,
    verify_passkey,
)
from trysquare.store.signatures import InvalidSignature, read_statement, read_time, verify_signature

APPROVERS_FILE: Final = ".trysquare-approvers"
"""The approvers of a project, in the format of git's `allowed_signers`."""
RECEIPTS: Final = "workflow_receipts"
"""Directory of the signed receipts of gates, committed with the state file."""
SIGNATURE: Final = "signature"
"""How a signed approval was given."""
_KINDS: Final = ("bot", "gate", "tool")
_MAX_RECEIPT: Final = 4 * 1024 * 1024
_MAX_VERIFIED: Final = 4_096


@dataclass(frozen=True, kw_only=True, slots=True)
class ApprovalRule:
    """Who may approve: `kind` and a pattern of names with `*`, and the principals."""

    kind: str
    pattern: str
    principals: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> ApprovalRule:
        """Read `gate:release.*=ada@example.org,bob@example.org`; raises `ValueError`."""
        subject, equals, names = text.partition("=")
        kind, colon, pattern = subject.strip().partition(":")
        principals = tuple(name.strip() for name in names.split(",") if name.strip())
        if not equals or not colon or kind not in _KINDS or not pattern or not principals:
            raise ValueError("expected KIND:PATTERN=APPROVER, such as gate:release.*=ada@example.org; KIND is "
                             "bot, gate or tool")  # fmt: skip
        return ApprovalRule(kind=kind, pattern=pattern, principals=principals)

    def covers(self, fields: JsonObject) -> bool:
        gate = fields.get("gate")
        names = {"gate": gate, "bot": str(gate).partition(".")[0] if gate is not None else None}
        name = fields.get("tool") if self.kind == "tool" else names[self.kind]
        pattern = re.escape(self.pattern).replace(r"\*", ".*")
        return isinstance(name, str) and re.fullmatch(pattern, name, re.DOTALL) is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Approvers:
    """The approvers of one project and their rules. Without rules each of them may approve everything."""

    root: Path
    """The project's directory."""
    file: Path
    demanded: bool = False
    """Whether the settings name approvers, so that a missing file means that nobody can approve."""
    rules: tuple[ApprovalRule, ...] = ()
    project_id: str | None = None
    _verified: OrderedDict[str, tuple[str, ...]] = field(
        default_factory=OrderedDict[str, tuple[str, ...]], repr=False, compare=False
    )

    def is_configured(self) -> bool:
        """Whether strict mode demands a signature in this project."""
        return self.demanded or bool(self.rules) or self.file.exists() or self.passkeys_file.exists()

    @property
    def passkeys_file(self) -> Path:
        """The passkeys of the approvers, beside their SSH keys."""
        return self.file.with_name(PASSKEYS_FILE)

    def sign_command(self, code: str, *, project: str = "") -> str:
        """The command with which an approver signs the call of a code; with passkeys only, they need the page."""
        place = f" --project {project}" if project else ""
        if self.passkeys_file.exists() and not self.file.exists():
            return f"trysquare console{place}"
        return f"trysquare approve {code}{place} --sign KEY"

    def passkeys(self, host: str | None) -> tuple[Passkey, ...]:
        """The passkeys that sign on pages of a host. Raises `InvalidSignature` where their file cannot be read."""
        return tuple(each for each in read_passkeys(self.passkeys_file) if each.host == host)

    def project_name(self, root: Path | None = None) -> str:
        """What a statement calls the project: its configured id, else the name of its directory."""
        root = (root or self.root).resolve()
        return self.project_id if self.project_id and root == self.root.resolve() else root.name

    def verify(self, signed: SignedStatement) -> tuple[str, JsonObject]:
        """The approver who signed, and the fields of the statement, or `InvalidSignature`."""
        fields = read_statement(signed.text)
        at = read_time(fields, "signed")
        if not read_time(fields, "asked") <= at <= read_time(fields, "expires"):
            raise InvalidSignature("it was signed when the question had expired")
        if is_passkey_signature(signed.signature):
            proof, known = read_passkey_signature(signed.signature), read_passkeys(self.passkeys_file)
            return self._allowed((verify_passkey(signed.text, fields, proof, known),), fields), fields
        data = self._signers()
        key = hashlib.sha256(json.dumps([signed.text, signed.signature]).encode() + data).hexdigest()
        names = self._verified.get(key)
        if names is None:
            names = verify_signature(signed.text, signed.signature, data, at)
            self._verified[key] = names
            while len(self._verified) > _MAX_VERIFIED:
                self._verified.popitem(last=False)
        return self._allowed(names, fields), fields

    def _signers(self) -> bytes:
        try:
            return self.file.read_bytes()
        except OSError as error:
            raise InvalidSignature(f"the approvers in {self.file.name} cannot be read: {error.strerror}") from None

    def _allowed(self, names: Sequence[str], fields: JsonObject) -> str:
        """The first signer whom a rule lets approve this, or `InvalidSignature`."""
        if not self.rules:
            return names[0]
        allowed = {who for rule in self.rules if rule.covers(fields) for who in rule.principals}
        found = next((name for name in names if name in allowed), None)
        if found is None:
            what = fields.get("gate") or fields.get("tool")
            raise InvalidSignature(f"no rule lets {names[0]} approve {what}")
        return found


def read_rules(texts: Sequence[str], where: str) -> tuple[ApprovalRule, ...]:
    """The rules of the settings."""
    try:
        return tuple(map(ApprovalRule.parse, texts))
    except ValueError as error:
        raise ConfigurationError(f"approvers.rules: {error}.", where=where) from None


def receipt_path(signed: SignedStatement) -> str:
    """The path of a receipt in its project. Its name is its digest, so that two branches merge without a conflict."""
    return f"{RECEIPTS}/{hashlib.sha256(signed.text.encode('ascii')).hexdigest()[:32]}.json"


def receipt_bytes(signed: SignedStatement) -> bytes:
    """A receipt as it is committed: readable, one line for each line of the statement."""
    document = {"statement": signed.text.splitlines(), "signature": signed.signature.splitlines()}
    return (json.dumps(document, indent=2) + "\n").encode("ascii")


def read_receipt(data: bytes) -> SignedStatement:
    """The receipt of a file, or `InvalidSignature`."""
    try:
        document = as_object(json.loads(data[:_MAX_RECEIPT]))
        text, signature = ("".join(f"{line}\n" for line in document[name]) for name in ("statement", "signature"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidSignature("the file is not a receipt") from None
    return SignedStatement(text=text, signature=signature)
