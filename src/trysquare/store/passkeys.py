"""Passkeys of approvers: the committed file that lists them, and the verification of what they signed."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from trysquare.core.errors import ErrorCode, require_extra
from trysquare.core.json import JsonObject, as_object
from trysquare.files.edit import read_file, replace_file
from trysquare.store.signatures import InvalidSignature, read_time

PASSKEYS_FILE: Final = ".trysquare-passkeys"
"""The passkeys of a project's approvers, one a line in JSON, beside the file with their SSH keys."""
LOCAL: Final = "localhost"
"""The host of pages on this machine: browsers have no passkeys for addresses such as 127.0.0.1."""
_COUNTER: Final = slice(33, 37)
"""Where the authenticator's data has its counter."""
_PARTS: Final = ("authenticator_data", "client_data", "credential", "signature")


@dataclass(frozen=True, kw_only=True, slots=True)
class Passkey:
    """One passkey: whose it is, and the host of the pages that it signs for. Bytes are in base64url."""

    approver: str
    host: str
    credential: str
    public_key: str
    valid_before: str | None = None
    """When it ended, in ISO 8601: what it signed before stays valid."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PasskeySignature:
    """What a browser returns for a statement. Bytes are in base64url."""

    credential: str
    authenticator_data: str
    client_data: str
    signature: str

    @property
    def counter(self) -> int:
        """How often the passkey had signed, as it says; always 0 for one that does not count."""
        return int.from_bytes(from_base64url(self.authenticator_data)[_COUNTER])

    def to_text(self) -> str:
        """As it is stored with its statement."""
        return json.dumps(asdict(self), indent=1, sort_keys=True) + "\n"


def is_passkey_signature(text: str) -> bool:
    """Whether a stored signature is one of a passkey, and not of SSH."""
    return text.startswith("{")


def read_passkey_signature(text: str) -> PasskeySignature:
    """A stored signature, or `InvalidSignature`."""
    try:
        parts = json.loads(text)
        read = PasskeySignature(**{name: parts[name] for name in _PARTS})
        for name in _PARTS:
            from_base64url(getattr(read, name))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InvalidSignature("it is not the signature of a passkey") from None
    return read


def read_answer(text: str) -> PasskeySignature:
    """The signature in the JSON that a browser sends for a passkey, or `InvalidSignature`."""
    try:
        answer = as_object(json.loads(text))
        response = as_object(answer.get("response"))
    except (ValueError, RecursionError):
        answer, response = {}, {}
    given = {
        "credential": answer.get("id"), "authenticator_data": response.get("authenticatorData"),
        "client_data": response.get("clientDataJSON"), "signature": response.get("signature"),
    }  # fmt: skip
    return read_passkey_signature(json.dumps(given))


def read_passkeys(file: Path) -> tuple[Passkey, ...]:
    """The passkeys of a file; none where there is no file. Raises `InvalidSignature` for one that cannot be read."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSignature(f"the passkeys in {file.name} cannot be read: {error}") from None
    return tuple(_read_line(line, f"{file.name}:{number}") for number, line in enumerate(lines, 1) if line.strip())


def _read_line(line: str, where: str) -> Passkey:
    try:
        found = Passkey(**json.loads(line))
        from_base64url(found.credential)
        from_base64url(found.public_key)
        names = [each for each in (found.approver, found.host) if each.strip()]
    except (ValueError, TypeError, AttributeError, RecursionError):
        names, found = [], None
    if found is None or len(names) < 2:
        raise InvalidSignature(f"{where} is not a passkey")
    return found


def add_passkey(file: Path, passkey: Passkey) -> None:
    """Append a passkey to a file, which is written whole or not at all."""
    kept = read_file(file)
    shown = {name: value for name, value in asdict(passkey).items() if value is not None}
    separator = "" if kept.endswith("\n") or not kept else "\n"
    replace_file(file, kept, f"{kept}{separator}{json.dumps(shown)}\n", new_mode=0o644, keep_backup=False)


def challenge_of(text: str) -> bytes:
    """What a passkey signs for a statement: its digest."""
    return hashlib.sha256(text.encode("ascii")).digest()


def verify_passkey(text: str, fields: JsonObject, proof: PasskeySignature, known: Sequence[Passkey]) -> str:
    """The approver whose passkey signed a statement on the page that it names, or `InvalidSignature`."""
    passkey = next((each for each in known if each.credential == proof.credential), None)
    if passkey is None:
        raise InvalidSignature("it is not a signature by the passkey of a listed approver")
    page = str(fields.get("page"))
    if host_of(page) != passkey.host:
        raise InvalidSignature(f"the passkey is one for pages of {passkey.host}, and this was signed on {page}")
    if passkey.valid_before is not None and read_time(fields, "signed") >= _time(passkey.valid_before):
        raise InvalidSignature(f"the passkey of {passkey.approver} was valid before {passkey.valid_before}")
    require_extra("console", "webauthn", feature="Passkeys", code=ErrorCode.STATE_UNAVAILABLE)
    from cryptography.exceptions import UnsupportedAlgorithm
    from webauthn import verify_authentication_response
    from webauthn.helpers.exceptions import WebAuthnException

    try:
        verify_authentication_response(
            credential=_credential(proof),
            expected_challenge=challenge_of(text),
            expected_rp_id=passkey.host,
            expected_origin=page,
            credential_public_key=from_base64url(passkey.public_key),
            credential_current_sign_count=0,
            require_user_verification=True,
        )
    except WebAuthnException as error:
        raise InvalidSignature(f"the passkey's signature does not hold: {error}") from None
    # Bytes of a file that anybody can edit are read here as CBOR, JSON and keys.
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError, UnsupportedAlgorithm):
        raise InvalidSignature("the passkey's signature cannot be read") from None
    if json.loads(from_base64url(proof.client_data)).get("crossOrigin"):
        raise InvalidSignature("it was signed inside a page of another origin")
    return passkey.approver


def _credential(proof: PasskeySignature) -> dict[str, Any]:
    """The signature in the form of the browser's interface."""
    response = {
        "authenticatorData": proof.authenticator_data, "clientDataJSON": proof.client_data,
        "signature": proof.signature,
    }  # fmt: skip
    return {"id": proof.credential, "rawId": proof.credential, "type": "public-key", "response": response}


def host_of(page: str) -> str | None:
    """The host of an origin where browsers have passkeys: encrypted, or on this machine."""
    try:
        parts = urlsplit(page)
        is_origin = page == f"{parts.scheme}://{parts.netloc}" and parts.username is None
        host = parts.hostname or ""
    except ValueError:
        return None
    return host if is_origin and (parts.scheme == "https" or (parts.scheme, host) == ("http", LOCAL)) else None


def _time(text: str) -> datetime:
    return read_time({"valid_before": text}, "valid_before")


def from_base64url(text: str) -> bytes:
    """Bytes of base64url without padding. Raises `ValueError` for anything else."""
    found = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if to_base64url(found) != text:
        raise ValueError("not canonical base64url")
    return found


def to_base64url(data: bytes) -> str:
    """Bytes as base64url without padding."""
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")
