"""Counting: an estimate of a text's tokens where a model's own tokenizer cannot be asked."""

from __future__ import annotations

import math

_BYTES_A_TOKEN = 3.5
"""On the safe side: English prose has about four bytes a token, code and JSON fewer."""


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has, rather too many than too few."""
    return math.ceil(len(text.encode("utf-8", errors="surrogatepass")) / _BYTES_A_TOKEN)
