"""Passkeys in the page: what a browser is asked to sign, and how an approver's passkey is registered."""

from __future__ import annotations

import hmac
import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trysquare.core.errors import ErrorCode, InvalidArguments, ToolError, require_extra
from trysquare.core.json import JsonObject, as_object
from trysquare.store.passkeys import (
    Passkey,
    add_passkey,
    challenge_of,
    from_base64url,
    host_of,
    read_passkeys,
    to_base64url,
)
from trysquare.store.signatures import InvalidSignature

LINK_SECONDS = 600.0
"""How long the link that registers a passkey is valid."""


def signing_options(text: str, passkeys: Sequence[Passkey]) -> JsonObject:
    """What `navigator.credentials.get` is asked: one of these passkeys, with the user verified, over this text."""
    return {
        "challenge": to_base64url(challenge_of(text)),
        "rpId": passkeys[0].host,
        "allowCredentials": [{"type": "public-key", "id": each.credential} for each in passkeys],
        "userVerification": "required",
    }


@dataclass(kw_only=True)
class Registration:
    """The one passkey that may be registered, by whoever has the link of the terminal."""

    approver: str
    file: Path
    on_registered: Callable[[Passkey], None] = lambda passkey: None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._key: str | None = secrets.token_urlsafe(32)
        self._challenge = secrets.token_bytes(32)
        self._until = self.clock() + LINK_SECONDS

    @property
    def link(self) -> str | None:
        """The path of the link, until a passkey was registered by it."""
        return None if self._key is None else f"/passkey?key={self._key}"

    def holds(self, key: str) -> bool:
        """Whether this is the key of the link, and the link is valid."""
        if self._key is None or self.clock() > self._until:
            return False
        return hmac.compare_digest(self._key.encode(), key.encode("utf-8", "replace"))

    def options(self, page: str) -> JsonObject:
        """What `navigator.credentials.create` is asked on this page. Raises `ToolError` where there are no passkeys."""
        from webauthn import generate_registration_options, options_to_json
        from webauthn.helpers.structs import (
            AttestationConveyancePreference,
            AuthenticatorSelectionCriteria,
            PublicKeyCredentialDescriptor,
            ResidentKeyRequirement,
            UserVerificationRequirement,
        )

        known = [each for each in read_passkeys(self.file) if each.host == require_host(page)]
        made = generate_registration_options(
            rp_id=require_host(page),
            rp_name="Trysquare",
            user_name=self.approver,
            challenge=self._challenge,
            attestation=AttestationConveyancePreference.NONE,
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.PREFERRED,
                user_verification=UserVerificationRequirement.REQUIRED,
            ),
            exclude_credentials=[PublicKeyCredentialDescriptor(id=from_base64url(each.credential)) for each in known],
        )
        return as_object(json.loads(options_to_json(made)))

    def register(self, page: str, answer: str) -> Passkey:
        """Add the passkey that a browser made to the file of the project. Raises `ToolError` for any other."""
        from webauthn import verify_registration_response
        from webauthn.helpers.exceptions import WebAuthnException

        try:
            made = verify_registration_response(
                credential=answer,
                expected_challenge=self._challenge,
                expected_rp_id=require_host(page),
                expected_origin=page,
                require_user_verification=True,
            )
        except (WebAuthnException, ValueError, TypeError, KeyError) as error:
            raise InvalidArguments(
                f"The passkey was not registered: {error}", instruction="Open the link again, and try once more."
            ) from None
        passkey = Passkey(
            approver=self.approver,
            host=require_host(page),
            credential=to_base64url(made.credential_id),
            public_key=to_base64url(made.credential_public_key),
        )
        add_passkey(self.file, passkey)
        self._key = None
        self.on_registered(passkey)
        return passkey


def open_registration(approver: str, file: Path) -> Registration:
    """The registration of an approver's passkey. Raises `ToolError` where the file or the name cannot be used."""
    require_extra("console", "webauthn", feature="Passkeys", code=ErrorCode.CONFIG_INVALID)
    if not approver.isprintable() or not approver.strip() or any(each in approver for each in ' ,*?!"'):
        raise InvalidArguments(
            f"`{approver}` is not the name of an approver.", instruction="Name one, such as ada@example.org."
        )
    try:
        read_passkeys(file)
    except InvalidSignature as error:
        raise InvalidArguments(str(error), instruction=f"Correct {file}, then try again.") from None
    return Registration(approver=approver, file=file)


def require_host(page: str) -> str:
    """The host of a page that can have passkeys. Raises `ToolError` for any other."""
    host = host_of(page)
    if host is None:
        raise ToolError(
            f"Browsers have no passkeys for pages at {page}.",
            code=ErrorCode.VALIDATION_INVALID_PARAM,
            instruction="Open the page at http://localhost, or at a name with HTTPS.",
        )
    return host
