"""Signing in to an API: the schemes of its document, with secrets that no model sees."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias
from urllib.parse import quote

from trysquare.core.errors import ConfigurationError, ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_object
from trysquare.openapi.document import Document, Unusable
from trysquare.openapi.operations import Operation
from trysquare.openapi.request import Request
from trysquare.store import SystemSecrets

SecretLookup: TypeAlias = Callable[[str], str | None]
"""The name of a secret -> its value, or None."""
_UNSAFE = re.compile(r"[^A-Z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def secret_name(scheme: str) -> str:
    """The environment variable of a scheme: `OPENAPI_` and its name in capitals."""
    words = _CAMEL.sub("_", scheme).upper()
    return f"OPENAPI_{_UNSAFE.sub('_', words).strip('_')}"


def stored_secret(name: str) -> str | None:
    """A secret of the environment, or one that `trysquare gateway secret` stored in the keyring."""
    found = os.environ.get(name)
    return SystemSecrets().read(name) if found is None else found


class Credentials:
    """The secrets of an API's security schemes, looked up when a call needs them. Methods may block."""

    def __init__(self, document: Document, given: Mapping[str, str], lookup: SecretLookup | None = None) -> None:
        schemes = as_object(as_object(document.root.get("components")).get("securitySchemes"))
        self._schemes: dict[str, JsonObject] = {}
        for name, scheme in schemes.items():
            try:
                self._schemes[name] = document.resolved(scheme)
            except Unusable:
                continue
        self._given, self._lookup = dict(given), lookup or stored_secret
        self._title = document.title

    @property
    def schemes(self) -> frozenset[str]:
        return frozenset(self._schemes)

    def sign(self, operation: Operation, request: Request) -> Request:
        """The request with what the first way to sign in for which all secrets are known asks for."""
        if not operation.security:
            return request
        # Without a sign-in only where that is one of the ways, and no other can be gone.
        ways = sorted(operation.security, key=lambda way: not way)
        for way in ways:
            found = {name: self._secret(name) for name in way}
            if all(found.values()):
                for name, secret in found.items():
                    request = self._signed(request, name, secret or "")
                return request
        missing = sorted({name for way in ways for name in way if not self._secret(name)})
        names = ", ".join(f"`{secret_name(name)}`" for name in missing)
        raise ToolError(
            f"`{operation.name}` needs a sign-in to {self._title}, and its secret is not set. Nothing was sent.",
            code=ErrorCode.CONFIG_INVALID,
            instruction=f"Ask the user to set the environment variable {names} and to start the server again, or to "
            "store it under that name with `trysquare gateway secret`.",
        )

    def _secret(self, scheme: str) -> str | None:
        found = self._given.get(scheme)
        if found is not None:
            return found
        try:
            return self._lookup(secret_name(scheme))
        except ConfigurationError as error:
            raise ToolError(
                f"The secret `{secret_name(scheme)}` cannot be read: {error.message} Nothing was sent.",
                code=ErrorCode.CONFIG_INVALID,
                instruction="Ask the user to unlock the keyring, or to set the secret in the environment.",
            ) from None

    def _signed(self, request: Request, name: str, secret: str) -> Request:
        scheme = self._schemes.get(name, {})
        kind, place, key = scheme.get("type"), scheme.get("in"), str(scheme.get("name", ""))
        if kind == "apiKey" and place == "query":
            return replace(request, query=(*request.query, f"{quote(key, safe='')}={quote(secret, safe='')}"))
        if kind == "apiKey" and place == "cookie":
            return replace(request, cookies=(*request.cookies, f"{key}={quote(secret, safe='')}"))
        if kind == "apiKey":
            return replace(request, headers={**request.headers, key: secret})
        if kind == "http" and str(scheme.get("scheme", "")).lower() == "basic":
            # Given as `user:password`.
            secret = base64.b64encode(secret.encode()).decode()
            return replace(request, headers={**request.headers, "Authorization": f"Basic {secret}"})
        word = str(scheme.get("scheme", "bearer")) if kind == "http" else "bearer"
        word = "Bearer" if word.lower() == "bearer" else word
        return replace(request, headers={**request.headers, "Authorization": f"{word} {secret}"})
