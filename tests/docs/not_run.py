"""The blocks that no test runs, each with its reason. Every other block of the pages is run or parsed."""

from __future__ import annotations

_INSTALLS = "test_package.py walks this page with the built wheel, in an environment of its own"
NOT_RUN: dict[tuple[str, str], str] = {
    ("README.md", "$ pip install trysquare"): _INSTALLS,
    ("docs/start/first-server.md", "$ pip install trysquare"): _INSTALLS,
    (
        "docs/gateway/elysia.md",
        "from elysia import Tree",
    ): "it needs a model; tests/integrations/elysia runs trees in Elysia's own environment",
    ("docs/gateway/elysia.md", "from elysia_gateway import Tree"): "it needs a model, as the one before",
    (
        "docs/agents/models.md",
        "from trysquare.grammar import CallGrammar",
    ): "it needs weights that no test fetches; tests/models/test_local.py does the same with a tiny model",
}
"""(page, first line of the block) -> why it is not run here."""
