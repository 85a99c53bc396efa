"""logit: lets the configured model write under control: held to a grammar, a schema or a tool's arguments."""

from __future__ import annotations

from typing import Any

from trysquare.core.context import CallContext
from trysquare.core.metadata import Example
from trysquare.core.result import Result
from trysquare.core.tool import Tool, tool
from trysquare.workbench.logit.arguments import (
    AnalyzeVocabulary,
    CheckConfiguration,
    Generate,
    GenerateStructured,
    GenerateToolCall,
    ListPresets,
)
from trysquare.workbench.logit.config import LogitConfig


def logit_tool(config: LogitConfig) -> Tool:
    """The tool over one model."""

    async def logit(
        args: Generate | GenerateStructured | GenerateToolCall | CheckConfiguration | ListPresets | AnalyzeVocabulary,
        context: CallContext,
    ) -> Result[Any]:
        """Let the configured model write, held to a form."""
        # Grammars and validators take long to import, so they are when somebody first wants them.
        from trysquare.workbench.logit.answering import answer_call

        return await answer_call(config, args, context)

    return tool(
        logit,
        category="utility",
        room="workbench",
        read_only=True,
        open_world=True,
        result_limit=None,
        use_when="a text must have an exact form, or a grammar or schema is to be tried",
        avoid_when="you can write the text yourself",
        limits="The model of the setting `model`; nothing that it writes is run",
        examples=(
            Example(
                arguments={
                    "action": "generate",
                    "prompt": "Do bees sting? Answer yes or no.",
                    "grammar": 'root ::= "yes" | "no"',
                },
                explanation="One of two words, whatever the model would rather say.",
            ),
        ),
        trigger_words=("grammar", "gbnf", "json schema", "constrained", "sampling"),
    )
