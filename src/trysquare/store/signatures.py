"""Statements that an approver signs, and their SSH signatures, which `ssh-keygen` makes and verifies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_object

NAMESPACE: Final = "trysquare"
"""Namespace of the signatures: one for git or a file is none for an approval."""
FORM: Final = "approval 1"
ENDS: Final = ("ends_workflow", "open_actions", "absent")
"""Fields of a gate's question that say what approving leads to."""
_PROGRAM: Final = "ssh-keygen"
_SECONDS: Final = 30.0
_MAX_TEXT: Final = 2 * 1024 * 1024


class InvalidSignature(Exception):
    """A signature or statement that proves nothing, with the reason."""


def write_statement(fields: Mapping[str, Any]) -> str:
    """The canonical text: one field a line, its value as JSON in ASCII, so that nothing in it is invisible."""
    lines = [f"trysquare: {_value(FORM)}", *(f"{name}: {_value(value)}" for name, value in fields.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=True)


def read_statement(text: str) -> JsonObject:
    """The fields of a statement in its canonical form, or `InvalidSignature`."""
    fields: JsonObject = {}
    try:
        for line in text.splitlines():
            name, _, value = line.partition(": ")
            fields[name] = json.loads(value)
    except (ValueError, RecursionError):
        raise InvalidSignature("the signed text is not a statement of Trysquare") from None
    if fields.pop("trysquare", None) != FORM or write_statement(fields) != text:
        raise InvalidSignature("the signed text is not a statement of Trysquare")
    return fields


def gate_fields(arguments: JsonObject) -> JsonObject:
    """What a statement says of a gate: the action, the run, its version, the files, and what closing leads to."""
    return {
        "gate": arguments.get("action"),
        "run": arguments.get("run"),
        "version": arguments.get("version"),
        "files": as_object(arguments.get("files")),
        "leads_to": {name: arguments[name] for name in ENDS if name in arguments},
    }


def sign_text(text: str, key: Path) -> str:
    """Sign with a private key, or with a public one whose private key is in the agent or on a FIDO token.

    The program asks for a passphrase or a touch itself, in the terminal of the caller.
    """
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory(prefix="trysquare-") as folder:
        file = Path(folder) / "statement"
        file.write_text(text, encoding="ascii")
        words = [_PROGRAM, "-Y", "sign", "-n", NAMESPACE, "-f", str(key.expanduser()), str(file)]
        try:
            signed = subprocess.run(words, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise _missing_program() from None
        if signed.returncode != 0:
            why = signed.stderr.strip().splitlines()[-1:] or [f"{_PROGRAM} ended with {signed.returncode}"]
            raise ToolError(
                f"Nothing was signed: {why[0][:300]}.",
                code=ErrorCode.CONSENT_REQUIRED,
                instruction="Name the key of an approver with --sign, such as --sign ~/.ssh/id_ed25519.",
            )
        return file.with_name("statement.sig").read_text(encoding="ascii")


def verify_signature(text: str, signature: str, signers: bytes, at: datetime) -> tuple[str, ...]:
    """The approvers whose valid signature this is at a time, by an `allowed_signers` file; else `InvalidSignature`."""
    import tempfile

    if len(text) > _MAX_TEXT or not text.isascii() or not signature.isascii():
        raise InvalidSignature("the signed text is not a statement of Trysquare")
    with tempfile.TemporaryDirectory(prefix="trysquare-") as folder:
        allowed, proof = Path(folder) / "signers", Path(folder) / "signature"
        allowed.write_bytes(signers)
        proof.write_text(signature, encoding="ascii")
        time = f"verify-time={at.astimezone(UTC):%Y%m%d%H%M%SZ}"
        status, found = _run("find-principals", "-O", time, "-f", str(allowed), "-s", str(proof))
        names = [line for line in found.splitlines() if line] if status == 0 else []
        if not names:
            raise InvalidSignature("it is not a signature by a listed approver")
        common = ("-O", time, "-f", str(allowed), "-n", NAMESPACE, "-s", str(proof))
        held = tuple(name for name in names if _run("verify", *common, "-I", name, given=text)[0] == 0)
    if not held:
        raise InvalidSignature("the signature does not match the text, the namespace or the approver's validity")
    return held


def _run(what: str, *options: str, given: str = "") -> tuple[int | None, str]:
    from trysquare.processes.worker import run_worker

    try:
        ran = run_worker([_PROGRAM, "-Y", what, *options], seconds=_SECONDS, given=given.encode("ascii"))
    except FileNotFoundError:
        raise _missing_program() from None
    except (OSError, TimeoutError) as error:
        raise InvalidSignature(f"{_PROGRAM} could not verify it: {error}") from None
    return ran.status, ran.output.decode("utf-8", "replace")


def _missing_program() -> ToolError:
    return ToolError(
        f"Signatures need the program `{_PROGRAM}`, which is not installed.",
        code=ErrorCode.STATE_UNAVAILABLE,
        instruction="Tell the user to install OpenSSH: `apt install openssh-client`, or the package of their system.",
    )


def shown_time(seconds: float) -> str:
    """A time in seconds since 1970 as it stands in a statement: UTC, ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_time(fields: JsonObject, name: str) -> datetime:
    """A time of a statement, or `InvalidSignature`."""
    try:
        read = datetime.fromisoformat(str(fields.get(name)))
    except ValueError:
        raise InvalidSignature(f"its `{name}` is not a time") from None
    if read.tzinfo is None:
        raise InvalidSignature(f"its `{name}` has no time zone")
    return read
