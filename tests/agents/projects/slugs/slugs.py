"""Titles as parts of addresses."""

import re


def slug(title):
    """Lower case, words joined by one dash, nothing else left."""
    return re.sub(r"[^a-z0-9]", "-", title.lower())
