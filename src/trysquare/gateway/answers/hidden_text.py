"""Hidden text: characters that a person does not see and a model reads. A fast scan of bytes first, cleaning second.

Emoji sequences, Persian and Indic joiners and the marks of right-to-left scripts are text like any other and stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeAlias

HiddenKind: TypeAlias = Literal["control", "zero-width", "bidirectional", "tag", "selector", "filler"]

# In this order: a colour sequence goes as a whole, and a flag made of tags is looked at before single tags are.
_HIDDEN = re.compile(
    r"(?P<sequence>\x1b\[[0-9;?]*[ -/]*[@-~])"
    r"|(?P<control>[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f])"
    r"|(?P<bidirectional>[\u202a-\u202e\u2066-\u2069])"
    r"|(?P<flag>\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f)"
    r"|(?P<tag>[\U000e0000-\U000e007f]+)"
    r"|(?P<selector>[\ufe00-\ufe0f\U000e0100-\U000e01ef]+)"
    r"|(?P<joiner>[\u200c\u200d]+)"
    r"|(?P<zero>[\u00ad\u034f\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb])"
    r"|(?P<filler>[\u115f\u1160\u3164\uffa0])"
)
_KINDS: dict[str, HiddenKind] = {
    "sequence": "control",
    "control": "control",
    "bidirectional": "bidirectional",
    "tag": "tag",
    "selector": "selector",
    "joiner": "zero-width",
    "zero": "zero-width",
    "filler": "filler",
}
_LEADS = (
    (b"\x7f", rb"\x7f"),
    (b"\xc2", rb"\xc2[\x80-\x9f\xad]"),
    (b"\xcd", rb"\xcd\x8f"),
    (b"\xe1", rb"\xe1(?:\x85[\x9f\xa0]|\xa0\x8e)"),
    (b"\xe2", rb"\xe2(?:\x80[\x8b-\x8d\xaa-\xae]|\x81[\xa0-\xaf])"),
    (b"\xe3", rb"\xe3\x85\xa4"),
    (b"\xef", rb"\xef(?:\xb8[\x80-\x8f]|\xbb\xbf|\xbe\xa0|\xbf[\xb9-\xbb])"),
    (b"\xf3", rb"\xf3\xa0[\x80-\x87]"),
)
# A search for fixed bytes is many times as fast as one for a pattern, and most results hold none of these at all.
_RAW = tuple((lead, re.compile(pattern)) for lead, pattern in _LEADS)
_ESCAPED = re.compile(
    rb"\\u(?:00(?:[017-9][0-9a-fA-F]|[aA][dD])|034[fF]|115[fF]|1160|180[eE]|20[0-6][0-9a-fA-F]|3164"
    rb"|[fF][eE]0[0-9a-fA-F]|[fF][eE][fF][fF]|[fF][fF][aA]0|[fF][fF][fF][9abAB]|[dD][bB]40)"
)
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|.)", re.DOTALL
)
_STAY_ESCAPED = frozenset({0x09, 0x0A, 0x0D, *range(0x20, 0x7F)})
_ESCAPE_CONTROL = 0x1B
"""It begins a colour sequence, which goes as a whole."""


def may_hide(data: bytes) -> bool:
    """Whether JSON bytes need a closer look. Quick, and never wrong when it says no."""
    if b"\\" in data and _has_suspect_escape(data):
        return True
    suspects = _RAW[:1] if data.isascii() else _RAW
    for lead, pattern in suspects:  # noqa: SIM110 - a loop takes half the time of any() with a generator
        if lead in data and pattern.search(data) is not None:
            return True
    return False


def _has_suspect_escape(data: bytes) -> bool:
    if b"\\b" in data or b"\\f" in data:
        return True
    return b"\\u" in data and _ESCAPED.search(data) is not None


def cleaned_json(data: bytes) -> tuple[bytes, int]:
    """JSON without hidden characters in its texts, and how many were taken out.

    The text is worked on as it stands: hidden characters occur only inside of strings, so that their going changes no
    structure, and no depth of nesting matters.
    """
    if not may_hide(data):
        return data, 0
    controls = 0

    def spelt_out(escape: re.Match[str]) -> str:
        nonlocal controls
        shown = _spelt_out(escape)
        controls += shown == ""
        return shown

    text = data.decode("utf-8", errors="replace")
    cleaned, count = _clean(_ESCAPE.sub(spelt_out, text))
    return (cleaned.encode(), count + controls) if count + controls else (data, 0)


def _spelt_out(escape: re.Match[str]) -> str:
    """An escaped character beyond ASCII as itself, a control as nothing, any other escape as it was."""
    high, low, single = escape.groups()
    if high is not None:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    if single is None:
        return "" if escape.group() in ("\\b", "\\f") else escape.group()
    code = int(single, 16)
    if code in _STAY_ESCAPED or 0xD800 <= code < 0xE000:
        return escape.group()
    return chr(code) if code >= 0x7F or code == _ESCAPE_CONTROL else ""


def cleaned_text(text: str) -> str:
    """The text without what cannot be seen."""
    return text if text.isascii() and text.isprintable() else _clean(text)[0]


def hidden_kinds(text: str) -> tuple[HiddenKind, ...]:
    """The kinds of hidden characters in a text, each once."""
    found: dict[HiddenKind, None] = {}
    for match in _HIDDEN.finditer(text):
        if not _is_writing(match):
            found[_KINDS[str(match.lastgroup)]] = None
    return tuple(found)


def shown(text: str) -> str:
    """The text with every hidden character written out, `<U+202E>`, so that a person sees it."""
    return _HIDDEN.sub(lambda match: match.group() if _is_writing(match) else _named(match.group()), text)


def _clean(text: str) -> tuple[str, int]:
    count = 0

    def kept(match: re.Match[str]) -> str:
        nonlocal count
        if _is_writing(match):
            return match.group()
        count += len(match.group())
        return ""

    return _HIDDEN.sub(kept, text), count


def _is_writing(match: re.Match[str]) -> bool:
    """Whether a character that could hide something is how its script, or an emoji, is written."""
    kind = str(match.lastgroup)
    judge = _JUDGES.get(kind)
    if judge is None:
        return False
    before = match.string[match.start() - 1 : match.start()]
    return judge(before, match.group(), match.string[match.end() : match.end() + 1])


def _joins(before: str, joiner: str, after: str) -> bool:
    return len(joiner) == 1 and _is_beyond_ascii(before) and _is_beyond_ascii(after)


def _selects(before: str, selector: str, after: str) -> bool:
    return len(selector) == 1 and (_is_beyond_ascii(before) or before in tuple("0123456789#*"))


def _is_beyond_ascii(letter: str) -> bool:
    return letter != "" and not letter.isascii()


_JUDGES: dict[str, Callable[[str, str, str], bool]] = {
    "flag": lambda before, flag, after: True,
    "joiner": _joins,
    "selector": _selects,
}


def _named(hidden: str) -> str:
    return "".join(f"<U+{ord(letter):04X}>" for letter in hidden)
