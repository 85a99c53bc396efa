"""Records of a bot's runs for other programs: the export of `trysquare bot export`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from trysquare.bots.workflow.runs import WorkflowRuns
from trysquare.core.errors import ConfigurationError


def write_export(state: WorkflowRuns, runs: Iterable[str], output: Path | None) -> None:
    """Write every change of the runs, one JSON object a line. A file is written whole or not at all."""
    lines = (json.dumps(line, ensure_ascii=False) for run in runs for line in state.export(run))
    if output is None:
        for line in lines:
            sys.stdout.write(f"{line}\n")
        return
    try:
        count = _write_file(output, lines)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {output}: {error.strerror}.", where="bot export", hint="Name another file with --output."
        ) from None
    print(f"Wrote {count} lines to {output}.")


def _write_file(output: Path, lines: Iterator[str]) -> int:
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    count = 0
    try:
        with part.open("w", encoding="utf-8") as file:
            for line in lines:
                file.write(f"{line}\n")
                count += 1
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
    return count
