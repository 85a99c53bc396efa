"""The blocks that no test runs, each with its reason. Every other block of the pages is run or parsed."""

from __future__ import annotations

NOT_RUN: dict[tuple[str, str], str] = {
    (
        "README.md",
        "$ make demo",
    ): "the demo has tests of its own, and this is a part of make test",
    ("README.md", '$ export PATH="$PWD/.venv/bin:$PATH"'): "the tests put the commands on the path themselves",
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
