"""What the tests of every transport assert of the transcripts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from tests.differential.compare import compare
from tests.differential.decisions import decisions, is_known_fault
from tests.differential.model import Era, Outcome, Transport
from tests.differential.runner import table
from tests.differential.schema import violations

FEWEST_EXCHANGES = 60
Record = Callable[[str, object], None]


def require_equal(
    ours: Mapping[str, Outcome], theirs: Mapping[str, Outcome], era: Era, transport: Transport, record: Record
) -> None:
    """Fail where our server and the reference differ; list where their texts do."""
    assert len(ours) >= FEWEST_EXCHANGES
    found = compare(ours, theirs, decisions(era, transport))
    record("shown", found.line(f"{era} {transport}"))
    lines = ["Other texts:", *found.texts, "Known faults:", *found.faults, *found.gone_faults]
    sys.stdout.write("\n".join(lines) + "\n")
    assert not found.failures, "\n".join([f"{len(found.failures)} differences:", *found.failures])


def require_schema(ours: Mapping[str, Outcome], era: Era, transport: Transport) -> None:
    """Fail where a message of our server does not fit the schema of its version."""
    exchanges = table(era, transport)
    wrong = [
        f"{name}: {line}"
        for name, outcome in ours.items()
        if not is_known_fault(name, era, transport)
        for line in violations(exchanges[name], outcome, era)
    ]
    assert not wrong, "\n".join(wrong)
