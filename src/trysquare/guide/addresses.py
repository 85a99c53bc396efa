"""Addresses: where the guide's content is read as resources, and back."""

from __future__ import annotations

from urllib.parse import quote

from trysquare.guide.document import DocumentId

SCHEME = "guide"


def document_uri(project: str, id: DocumentId) -> str:
    """The address of one document."""
    return f"{SCHEME}://{quote(project, safe='')}/{quote(id.category, safe='')}/{quote(id.name, safe='/')}"


DOCUMENT_TEMPLATE = f"{SCHEME}://{{project}}/{{category}}/{{name*}}"
EXPRESSION_TEMPLATE = f"{SCHEME}+get://{{project}}/{{expression*}}"
