"""initialize_project: settles in which folder the work is done."""

from __future__ import annotations

from trysquare.bots.actions.common import base_parts
from trysquare.bots.actions.work import Outcome, Work

LOCATION = "location"
"""The note of a run that holds the confirmed folder."""


def execute(work: Work) -> Outcome:
    """Tell where the project lies. Whether it must be confirmed is decided where the run is known."""
    return Outcome(parts=tuple(base_parts(work)), data={"project_location": str(work.project)})
