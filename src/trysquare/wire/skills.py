"""Skills as clients see them."""

from __future__ import annotations

from trysquare.core.resource import Resource
from trysquare.core.types import JsonObject


def skill_to_wire(resource: Resource) -> JsonObject:
    """The entry of a skill: where it is, its front matter as written, and every file with its digest."""
    assert resource.skill is not None
    return {
        "uri": resource.uri,
        "frontmatter": resource.skill.frontmatter,
        "resources": [
            {"uri": file.uri, "digest": f"sha256:{file.digest}", "size": file.size} for file in resource.skill.files
        ],
    }
