"""`python -m evals [calls] [builder]`: how often local models call the right tool, and whether the builder builds."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from benchmarks.tables import Table
from evals.asking import Deadline, answered_in_all, ask_all
from evals.checking import is_right
from evals.kept import AnswerFile
from evals.page import print_tables, write_tables
from evals.projects import build_all, project_tables
from evals.questions import Question, read_questions
from evals.scores import score, score_tables, with_text_read
from evals.ways import Way, Weights, open_ways
from trysquare.models.local.install import weights_file
from trysquare.models.local.runtime import writing_threads

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks-agents.md"
ANSWERS = ROOT / ".trysquare" / "evals.jsonl"
PARTS = ("calls", "builder")
SMALL, FULL = ("smollm2-135m", 5), ("qwen2.5-coder-1.5b", 50)
"""The model, and how many questions of each set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What is measured."""

    parts: tuple[str, ...]
    model: str
    questions: int
    threads: int
    seconds: float | None
    answers: Path
    page: bool
    builder: str | None

    def command(self, part: str) -> str:
        """The command that measures a part again."""
        if part == "calls":
            return f'make eval EVAL="calls --model MODEL --questions {self.questions}"'
        seconds = f" --seconds {self.seconds:g}" if self.seconds else ""
        return f'make eval EVAL="builder --builder {self.builder}{seconds}"'


def main(words: list[str] | None = None) -> int:
    """Measure what was asked for, print it, and write it into the page where that is wanted."""
    plan = _plan(words)
    if "calls" in plan.parts:
        _show(plan, "calls", anyio.run(_measure_calls, plan))
    if "builder" in plan.parts and plan.builder is not None:
        _show(plan, "builder", anyio.run(_measure_builder, plan, plan.builder))
    return 0


def _show(plan: Plan, part: str, tables: list[Table]) -> None:
    print_tables(tables)
    if plan.page:
        write_tables(PAGE, part, plan.command(part), tables)
        print(f"\nWritten to {PAGE.relative_to(ROOT)}.")


async def _measure_calls(plan: Plan) -> list[Table]:
    file = Path(plan.model) if plan.model.endswith(".gguf") else weights_file(plan.model)
    if not file.exists():
        sys.exit(f"There are no weights at {file}. Run `trysquare models install {plan.model}`.")
    questions, kept = read_questions(plan.questions), AnswerFile(plan.answers)
    async with open_ways(Weights(file=file, threads=plan.threads)) as ways:
        await ask_all(plan.model, questions, ways, kept, Deadline.after(plan.seconds))
        return [table for model in kept.models for table in _tables(model, questions, ways, kept)]


def _tables(model: str, questions: Sequence[Question], ways: Sequence[Way], kept: AnswerFile) -> Iterator[Table]:
    """What is kept of a model, also of one that an earlier run asked."""
    answered = answered_in_all(model, questions, ways, kept)
    return score_tables(model, score(with_text_read(answered), is_right))


async def _measure_builder(plan: Plan, model: str) -> list[Table]:
    return list(project_tables(model, await build_all(model, seconds=plan.seconds or 3600)))


def _plan(words: list[str] | None) -> Plan:
    model, questions = FULL if os.environ.get("TRYSQUARE_FULL") == "1" else SMALL
    parser = argparse.ArgumentParser(prog="python -m evals", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"{' or '.join(PARTS)} (default: both, where --builder is given)"
    )
    parser.add_argument("--model", default=model, help=f"an installed model or a GGUF file (default: {model})")
    parser.add_argument("--questions", type=int, default=questions, help=f"of each set (default: {questions})")
    parser.add_argument("--threads", type=int, default=0, help="of the model (default: half of the processors)")
    parser.add_argument("--seconds", type=float, help="ask no further question after so long (default: no end)")
    parser.add_argument("--answers", type=Path, default=ANSWERS, help="where answers are kept, to go on from there")
    parser.add_argument(
        "--builder", metavar="MODEL", help="let this model build, such as local:NAME; without it nothing is built"
    )
    parser.add_argument("--page", action="store_true", help=f"write the tables into {PAGE.relative_to(ROOT)}")
    read = parser.parse_args(words)
    if unknown := set(read.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if "builder" in read.parts and read.builder is None:
        parser.error("the builder needs a model: --builder MODEL")
    return Plan(
        parts=tuple(read.parts) or PARTS,
        model=read.model,
        questions=read.questions,
        threads=read.threads or writing_threads(),
        seconds=read.seconds,
        answers=read.answers,
        page=read.page,
        builder=read.builder,
    )


if __name__ == "__main__":
    sys.exit(main())
