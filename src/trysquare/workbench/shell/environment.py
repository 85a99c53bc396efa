"""Environment: the few variables that a command gets. Secrets live in the others, so those that pass are named."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "USER", "LOGNAME", "SHELL")
HOME = "/tmp/home"
"""The home of a command, in the sandbox's own /tmp: it is empty, and gone when the command is."""


def clean_environment(own: Mapping[str, str] = os.environ, *, passed: Sequence[str] = ()) -> dict[str, str]:
    """The environment of a command."""
    kept = {name: own[name] for name in (*PASSED, *passed) if name in own}
    # A folder that is not named from the root on is another one wherever a command runs.
    places = [place for place in kept.get("PATH", "").split(os.pathsep) if place.startswith("/")]
    kept["PATH"] = os.pathsep.join(places) or os.defpath
    return {**kept, "TERM": "dumb", "NO_COLOR": "1", "GIT_TERMINAL_PROMPT": "0"}
