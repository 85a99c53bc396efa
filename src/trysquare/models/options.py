"""Options: what can be set about a model beside its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from trysquare.models.messages import Usage

Hold: TypeAlias = Literal["auto", "grammar", "guided", "native", "schema", "free"]
"""How a server's answers are to be held; `auto` finds out what it offers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """What a million tokens cost."""

    prompt: float
    completion: float

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """What so many tokens cost."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelOptions:
    """What can be set about a model beside its name."""

    key_variable: str | None = None
    """The environment variable that holds the key; each kind of server has its own default."""
    timeout: float = 120.0
    """Seconds that one request may take."""
    retries: int = 4
    """How often a request is sent again where the server is busy or gone."""
    context_tokens: int | None = None
    """How many tokens a dialogue may have; a default for each kind of model."""
    threads: int | None = None
    """Threads of a local model."""
    fast_forward: bool = True
    """Whether a local model is given what the grammar forces in one batch."""
    hold: Hold = "auto"
    prices: Prices | None = None

    def usage(self, prompt_tokens: int, completion_tokens: int, forced_tokens: int = 0) -> Usage:
        """The tokens with what they cost, where prices are known."""
        return Usage(
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            forced_tokens=forced_tokens,
            cost=self.prices.cost(prompt_tokens, completion_tokens) if self.prices else None,
        )


def model_options(
    *,
    prompt_price: float | None = None,
    completion_price: float | None = None,
    answer_tokens: int | None = None,
    **options: Any,
) -> ModelOptions:
    """Options as settings have them: the two prices stand among the others, and so does what requests are made with."""
    if prompt_price is None and completion_price is None:
        return ModelOptions(**options)
    return ModelOptions(prices=Prices(prompt=prompt_price or 0.0, completion=completion_price or 0.0), **options)
