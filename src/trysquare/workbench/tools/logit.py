"""The `logit` tool: constrained generation with the configured model."""

from __future__ import annotations

from functools import partial
from typing import Any

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.json import JsonObject
from trysquare.core.metadata import Example
from trysquare.core.result import Result, answered, dump_json, failed
from trysquare.core.threads import run_in_thread
from trysquare.core.tool import Tool, tool
from trysquare.grammar import CallGrammar
from trysquare.models import ToolSpec
from trysquare.models.sampling import PRESETS, Preset, find_preset
from trysquare.workbench import generation

MAX_RUNS = 50


def _request(args: generation.Constrained) -> generation.GenerationRequest:
    request = partial(generation.GenerationRequest, preset=find_preset(args.preset), max_tokens=args.max_tokens)
    if isinstance(args, generation.GenerateToolCall):
        offers = tuple(_offer(each) for each in args.available_tools)
        if len({offer.name for offer in offers}) < len(offers):
            raise InvalidArguments("Two of `available_tools` have the same name.")
        return request(constraint=CallGrammar(offers), tools=offers)
    grammar = None if isinstance(args, generation.GenerateStructured) else args.grammar
    schema = None if isinstance(args, generation.Generate) else args.json_schema
    if schema is not None:
        generation.check_schema(schema)
        return request(constraint=generation.SchemaConstraint(schema), schema=schema)
    return request(constraint=None if grammar is None else generation.GrammarConstraint(grammar))


def _offer(given: generation.OfferedTool) -> ToolSpec:
    generation.check_schema(given.parameters)
    return ToolSpec(name=given.name, description=given.description, schema=given.parameters, flat=given.parameters)


def _response(generated: generation.Generated) -> Result[Any]:
    text = generated.answer.text if generated.value is None else dump_json(generated.value)
    if generated.problem is not None:
        return failed(
            f"The model's answer is invalid: {generated.problem}.",
            code=ErrorCode.MODEL_REFUSED,
            output=text,
            data=generated.report,
            instruction="Allow more tokens, rephrase the prompt, or use a model that supports grammars.",
        )
    data = generated.report if generated.value is None else {**generated.report, "value": generated.value}
    cut = ("The text was truncated at max_tokens.",) if generated.answer.stop == "length" else ()
    removed = tuple(f"The safety filter removed {what}." for what in generated.removed)
    return answered(text, data=data, warnings=(*cut, *removed))


async def _try_all(
    config: generation.LogitConfig, args: generation.CheckConfiguration, context: CallContext
) -> Result[Any]:
    if args.grammar is not None and args.json_schema is not None:
        raise InvalidArguments("Give either `grammar` or `json_schema`, not both.")
    if len(args.test_prompts) * args.iterations > MAX_RUNS:
        raise InvalidArguments(f"That is more than {MAX_RUNS} runs. Use fewer prompts or iterations.")
    request = _request(args)
    trials = [(prompt, seed) for prompt in args.test_prompts for seed in range(args.iterations)]
    lines: list[str] = []
    fitting = 0
    async with config.opened() as model:
        for number, (prompt, seed) in enumerate(trials, start=1):
            generated = await request.generated(model, prompt, seed=seed)
            cut = "it was truncated at max_tokens" if generated.answer.stop == "length" else None
            problem = generated.problem or cut
            fitting += problem is None
            lines.append(f"{number}. {problem or 'fits'}: {generated.answer.text[:200]!r}")
            await context.progress(number, len(trials), problem or "fits")
    data: JsonObject = {"runs": len(trials), "fitting": fitting}
    return answered("\n".join([f"{fitting} of {len(trials)} fit.", *lines]), data=data)


def _preset_line(preset: Preset) -> str:
    how = preset.sampling
    return f"- {preset.name} (temperature {how.temperature}, top_k {how.top_k}, top_p {how.top_p}): {preset.about}"


# Documented as in guide/tools/README.md.
def logit_tool(config: generation.LogitConfig) -> Tool:
    async def logit(args: generation.Arguments, context: CallContext) -> Result[Any]:
        """Generate text with the configured model, constrained to a form."""
        match args:
            case generation.ListPresets():
                return answered("\n".join(map(_preset_line, PRESETS.values())), data={"presets": list(PRESETS)})
            case generation.AnalyzeVocabulary():
                spec, text = config.require_spec(), args.contains
                figures = await run_in_thread(lambda: generation.analysed(generation.local_vocabulary(spec), text))
                return answered("\n".join(f"{name}: {figure}" for name, figure in figures.items()), data=figures)
            case generation.CheckConfiguration():
                return await _try_all(config, args, context)
            case generation.Generate() | generation.GenerateStructured() | generation.GenerateToolCall():
                request = _request(args)
                async with config.opened() as model:
                    return _response(await request.generated(model, args.prompt))

    return tool(
        logit,
        category="utility",
        toolset="workbench",
        read_only=True,
        open_world=True,
        result_limit=None,
        use_when="a text must have an exact form, or a grammar or schema is to be tried",
        avoid_when="you can write the text yourself",
        limits="Uses the setting `model`; nothing that it writes is run",
        examples=(
            Example(
                arguments={
                    "action": "generate",
                    "prompt": "Do bees sting? Answer yes or no.",
                    "grammar": 'root ::= "yes" | "no"',
                },
                explanation="Exactly one of two words.",
            ),
        ),
        trigger_words=("grammar", "gbnf", "json schema", "constrained", "sampling"),
    )
