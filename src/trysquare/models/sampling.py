"""Sampling presets: how the next token is chosen, by what is to be written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from trysquare.core.errors import NotFound
from trysquare.core.nearest import nearest
from trysquare.models.model import Sampling

Held: TypeAlias = Literal["calls", "json", "nothing"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """A way to sample, with what it is for."""

    name: str
    about: str
    sampling: Sampling
    held: Held = "nothing"
    """What the answer is held to."""
    filtered: bool = False
    """Whether the safety filter reads the answer."""


_PRESETS = (
    Preset(
        name="tool_call",
        about="One tool call, held to the tools' grammar; the likeliest token each time.",
        sampling=Sampling(temperature=0.0, top_k=1),
        held="calls",
    ),
    Preset(
        name="json_strict",
        about="JSON that is held to a schema, with hardly any chance in it.",
        sampling=Sampling(temperature=0.1, top_k=40, top_p=0.9),
        held="json",
    ),
    Preset(
        name="json_loose",
        about="JSON that is held to a schema, with some freedom in its texts.",
        sampling=Sampling(temperature=0.5, top_k=40, top_p=0.95),
        held="json",
    ),
    Preset(
        name="safe_chat",
        about="Plain text that the safety filter reads.",
        sampling=Sampling(temperature=0.7, top_k=40, top_p=0.95),
        filtered=True,
    ),
    Preset(
        name="code_generation",
        about="Source code: few surprises, and nothing filtered.",
        sampling=Sampling(temperature=0.2, top_k=50, top_p=0.95),
    ),
    Preset(
        name="creative",
        about="Text that may surprise.",
        sampling=Sampling(temperature=0.8, top_k=100, top_p=0.95),
    ),
    Preset(
        name="deterministic",
        about="The likeliest token each time, from a fixed seed.",
        sampling=Sampling(temperature=0.0, top_k=1, seed=0),
    ),
)
PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in _PRESETS})


def find_preset(name: str) -> Preset:
    """The preset of a name."""
    if name in PRESETS:
        return PRESETS[name]
    near = nearest(name, PRESETS)
    meant = f" The nearest is `{near[0]}`." if near else ""
    raise NotFound(
        f"There is no sampling preset `{name}`.{meant}",
        instruction=f"Use one of {', '.join(PRESETS)}.",
    )
