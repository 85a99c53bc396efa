"""Formats: the names of string formats, as patterns.

JSON Schema calls a format a note by default. Those that a pattern can hold a text to are held to; those that describe
how something is stored change nothing; any other is refused, so that none is dropped in silence.
"""

from __future__ import annotations

_YEAR = r"(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_DAY = (
    r"(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    r"|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_DATE = rf"(?:{_YEAR}-{_DAY}|{_LEAP}-02-29)"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
_TIME = rf"{_CLOCK}(?:[Zz]|[+\-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*"
_WITHOUT_SPACE = r"[^\x00-\x20\"<>\\^`{|}\x7f\s]"

PATTERNS = {
    "date": rf"^{_DATE}$",
    "time": rf"^{_TIME}$",
    "date-time": rf"^{_DATE}[Tt]{_TIME}$",
    "uuid": r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
    "ipv4": rf"^(?:{_BYTE}\.){{3}}{_BYTE}$",
    "email": rf"^[A-Za-z0-9!#$%&'*+/=?\^_`{{|}}~\-]+(?:\.[A-Za-z0-9!#$%&'*+/=?\^_`{{|}}~\-]+)*@{_HOST}$",
    "hostname": rf"^{_HOST}$",
    "uri": rf"^[A-Za-z][A-Za-z0-9+.\-]*:{_WITHOUT_SPACE}*$",
    "uri-reference": rf"^{_WITHOUT_SPACE}*$",
}
STORED = frozenset({"float", "double", "decimal", "password", "binary", "byte", "textarea", "string", "text"})
"""Formats of OpenAPI and others that say how a value is kept or shown, and nothing about its text."""
WHOLE = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
