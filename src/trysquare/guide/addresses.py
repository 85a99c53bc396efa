"""Addresses: where the guide's content is read as resources, and back."""

from __future__ import annotations

import re
from urllib.parse import quote

from trysquare.guide.document import DocumentId

SCHEME = "guide"


def document_uri(project: str, id: DocumentId) -> str:
    """The address of one document."""
    return f"{SCHEME}://{quote(project, safe='')}/{quote(id.category, safe='')}/{quote(id.name, safe='/')}"


_SPECIAL = re.compile(r"[,+&\[\]*]|^\s|\s$|\.md$")


def expression_for(id: DocumentId) -> str:
    """An expression that fetches a document: its id, with `?` for what has a meaning of its own in expressions."""
    return f"{id.category}/{_SPECIAL.sub(lambda found: '?' * len(found[0]), id.name)}"


DOCUMENT_TEMPLATE = f"{SCHEME}://{{project}}/{{category}}/{{name*}}"
EXPRESSION_TEMPLATE = f"{SCHEME}+get://{{project}}/{{expression*}}"
