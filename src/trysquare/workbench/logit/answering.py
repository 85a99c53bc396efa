"""Answering: what each action of `logit` does."""

from __future__ import annotations

from typing import Any

from trysquare.core.context import CallContext
from trysquare.core.errors import ErrorCode, InvalidArguments
from trysquare.core.result import Result, dump_json
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.models.model import ToolOffer
from trysquare.models.sampling import PRESETS, Preset, find_preset
from trysquare.workbench.answers import answered, failed
from trysquare.workbench.logit.arguments import (
    AnalyzeVocabulary,
    Arguments,
    CheckConfiguration,
    Generate,
    GenerateStructured,
    GenerateToolCall,
    ListPresets,
    OfferedTool,
)
from trysquare.workbench.logit.config import LogitConfig
from trysquare.workbench.logit.constraints import HeldToGrammar, HeldToSchema
from trysquare.workbench.logit.generating import Generated, Wanted, call_constraint, check_schema
from trysquare.workbench.logit.vocabulary import analysed, local_vocabulary

MOST_RUNS = 50


async def answer_call(config: LogitConfig, args: Arguments, context: CallContext) -> Result[Any]:
    """What a call comes to."""
    match args:
        case ListPresets():
            return _presets()
        case AnalyzeVocabulary():
            return await _vocabulary(config, args)
        case CheckConfiguration():
            return await _tried(config, args, context)
        case Generate() | GenerateStructured() | GenerateToolCall():
            return await _written(config, args)


async def _written(config: LogitConfig, args: Generate | GenerateStructured | GenerateToolCall) -> Result[Any]:
    wanted = _wanted(args)
    async with config.opened() as model:
        generated = await wanted.generated(model, args.prompt)
    return _told(generated)


def _wanted(args: Generate | GenerateStructured | GenerateToolCall) -> Wanted:
    preset = find_preset(args.preset)
    if isinstance(args, Generate):
        held = None if args.grammar is None else HeldToGrammar(args.grammar)
        return Wanted(preset=preset, max_tokens=args.max_tokens, constraint=held)
    if isinstance(args, GenerateStructured):
        check_schema(args.json_schema)
        held = HeldToSchema(args.json_schema)
        return Wanted(preset=preset, max_tokens=args.max_tokens, constraint=held, schema=args.json_schema)
    offers = tuple(_offer(each) for each in args.available_tools)
    if len({offer.name for offer in offers}) < len(offers):
        raise InvalidArguments("Two of `available_tools` have the same name.")
    return Wanted(preset=preset, max_tokens=args.max_tokens, constraint=call_constraint(offers), tools=offers)


def _offer(given: OfferedTool) -> ToolOffer:
    check_schema(given.parameters)
    return ToolOffer(name=given.name, description=given.description, schema=given.parameters, flat=given.parameters)


def _told(generated: Generated) -> Result[Any]:
    text = generated.answer.text if generated.value is None else dump_json(generated.value)
    if generated.problem is not None:
        return failed(
            f"The model's text does not fit: {generated.problem}.",
            code=ErrorCode.MODEL_REFUSED,
            output=text,
            data=generated.report,
            instruction="Allow more tokens, ask in other words, or use a model that can be held to a grammar.",
        )
    data = generated.report if generated.value is None else {**generated.report, "value": generated.value}
    cut = ("The text was cut at max_tokens.",) if generated.answer.stop == "length" else ()
    removed = tuple(f"The safety filter removed {what}." for what in generated.removed)
    return answered(text, data=data, warnings=(*cut, *removed))


async def _tried(config: LogitConfig, args: CheckConfiguration, context: CallContext) -> Result[Any]:
    wanted = _wanted_for_trial(args)
    trials = [(prompt, seed) for prompt in args.test_prompts for seed in range(args.iterations)]
    lines: list[str] = []
    fitting = 0
    async with config.opened() as model:
        for number, (prompt, seed) in enumerate(trials, start=1):
            generated = await wanted.generated(model, prompt, seed=seed)
            problem = generated.problem or ("it was cut at max_tokens" if generated.answer.stop == "length" else None)
            fitting += problem is None
            lines.append(f"{number}. {problem or 'fits'}: {generated.answer.text[:200]!r}")
            await context.progress(number, len(trials), problem or "fits")
    data: JsonObject = {"runs": len(trials), "fitting": fitting}
    return answered("\n".join([f"{fitting} of {len(trials)} fit.", *lines]), data=data)


def _wanted_for_trial(args: CheckConfiguration) -> Wanted:
    if args.grammar is not None and args.json_schema is not None:
        raise InvalidArguments("Give either `grammar` or `json_schema`, not both.")
    if len(args.test_prompts) * args.iterations > MOST_RUNS:
        raise InvalidArguments(f"That is more than {MOST_RUNS} runs. Use fewer prompts or iterations.")
    preset = find_preset(args.preset)
    if args.json_schema is not None:
        check_schema(args.json_schema)
        held = HeldToSchema(args.json_schema)
        return Wanted(preset=preset, max_tokens=args.max_tokens, constraint=held, schema=args.json_schema)
    constraint = None if args.grammar is None else HeldToGrammar(args.grammar)
    return Wanted(preset=preset, max_tokens=args.max_tokens, constraint=constraint)


def _presets() -> Result[Any]:
    return answered("\n".join(map(_preset_line, PRESETS.values())), data={"presets": list(PRESETS)})


def _preset_line(preset: Preset) -> str:
    how = preset.sampling
    return f"- {preset.name} (temperature {how.temperature}, top_k {how.top_k}, top_p {how.top_p}): {preset.about}"


async def _vocabulary(config: LogitConfig, args: AnalyzeVocabulary) -> Result[Any]:
    spec = config.needed_spec()
    figures = await run_in_thread(lambda: analysed(local_vocabulary(spec), args.contains))
    return answered("\n".join(f"{name}: {figure}" for name, figure in figures.items()), data=figures)
