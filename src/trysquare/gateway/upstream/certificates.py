"""The certificates that a connection trusts."""

from __future__ import annotations

import ssl
from functools import cache

import httpx2


@cache
def trusted_authorities() -> ssl.SSLContext:
    """Those that this system trusts. Made once, since that takes a while."""
    return httpx2.create_ssl_context()


@cache
def trusting_nobody() -> ssl.SSLContext:
    """For servers that are reached without encryption: no certificate has to be read, and none would be trusted."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
