"""Codes that a person types: short, without characters that look alike."""

from __future__ import annotations

import secrets

ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
_GROUP = 4


def new_code() -> str:
    """A fresh code, such as `7KQM-X2PD`: about 39 bits, enough for ten minutes and a few tries."""
    letters = "".join(secrets.choice(ALPHABET) for _ in range(2 * _GROUP))
    return f"{letters[:_GROUP]}-{letters[_GROUP:]}"


def normalized(typed: str) -> str:
    """A code as it is kept, however it was typed: small letters, spaces or no dash at all."""
    letters = "".join(letter for letter in typed.upper() if letter.isalnum())
    return f"{letters[:_GROUP]}-{letters[_GROUP:]}"
