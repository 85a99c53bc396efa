"""Secret names: which of a program's own names say that their values are secrets, and texts of values without them.

Arguments of tools have a rule of their own (`core/secrets.py`), which rather masks too much. Here a value masked
without need blinds whoever debugs, so a name is judged by its words.
"""

from __future__ import annotations

import re

from trysquare.core.secrets import MASK

SECRET_NAME = (
    r"(passw[a-z]*|pwd|passphrases?|secrets?|token|(access|api|auth|bearer|csrf|id|oauth|refresh|session)_?tokens"
    r"|credentials?|authori[sz]ation|cookies?|(api|private|access|signing|encryption)_?keys?)(?=_|[0-9]|$)"
)
"""Names of secrets, as their words in lower case with `_` between. The patterns also go into the program."""
MEASURE_NAME = (
    r"(^|_)(age|bytes|class|columns?|count|counter|counts|expires|expiry|fields?|file|index|kinds?|len|length|limit"
    r"|max|min|n|names?|num|number|path|pattern|policy|regex|remaining|size|total|ttl|types?|url|used)(_|$)"
)
"""Names that are about a secret, and not it: `cookie_count`, `max_tokens`, `token_type`."""
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_SHOWN = re.compile(r"""([A-Za-z_][\w-]*)(["']?\s*(?:=>|[:=])\s*)("(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?)""")


def names_secret(name: str) -> bool:
    """Whether a program's own name, of a variable, a key or an attribute, says that its value is a secret."""
    words = _WORDS.sub("_", name).lower()
    return re.search(SECRET_NAME, words) is not None and re.search(MEASURE_NAME, words) is None


def mask_shown(text: str) -> str:
    """The text of a value, such as `{user: "ann", password: "x"}`, with the texts that stand under names of secrets."""
    return _SHOWN.sub(lambda found: found[1] + found[2] + MASK if names_secret(found[1]) else found[0], text)
