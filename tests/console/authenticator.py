"""A passkey in software: it signs what a browser's would not, for the refusals."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path

import cbor2
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256

from trysquare.store.passkeys import Passkey, add_passkey, challenge_of, to_base64url

PRESENT, VERIFIED = 1, 4


@dataclass(kw_only=True)
class SoftPasskey:
    """One passkey of an approver for pages of a host."""

    approver: str = "ada@example.org"
    host: str = "localhost"
    counter: int = 0
    credential: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    key: EllipticCurvePrivateKey = field(default_factory=lambda: generate_private_key(SECP256R1()))

    def register(self, project: Path, *, valid_before: str | None = None) -> None:
        """List it among the passkeys of a project."""
        point = self.key.public_key().public_numbers()
        cose = {1: 2, 3: -7, -1: 1, -2: point.x.to_bytes(32), -3: point.y.to_bytes(32)}
        passkey = Passkey(
            approver=self.approver, host=self.host, credential=to_base64url(self.credential),
            public_key=to_base64url(cbor2.dumps(cose)), valid_before=valid_before,
        )  # fmt: skip
        add_passkey(project / ".trysquare-passkeys", passkey)

    def answer(
        self,
        text: str,
        *,
        page: str,
        host: str | None = None,
        flags: int = PRESENT | VERIFIED,
        kind: str = "webauthn.get",
        framed: bool = False,
    ) -> str:
        """What `navigator.credentials.get` returns for a statement, as JSON."""
        client = {"type": kind, "challenge": to_base64url(challenge_of(text)), "origin": page, "crossOrigin": framed}
        data = json.dumps(client).encode()
        signed = hashlib.sha256((host or self.host).encode()).digest() + bytes([flags]) + self.counter.to_bytes(4)
        signature = self.key.sign(signed + hashlib.sha256(data).digest(), ECDSA(SHA256()))
        response = {
            "clientDataJSON": to_base64url(data), "authenticatorData": to_base64url(signed),
            "signature": to_base64url(signature),
        }  # fmt: skip
        name = to_base64url(self.credential)
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})
