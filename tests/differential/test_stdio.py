"""Our server and the SDK's give equal answers over stdio, in both eras."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.differential.judges import require_equal, require_schema
from tests.differential.model import ERAS, Era, Outcome
from tests.differential.runner import transcript
from tests.differential.serving import Side
from tests.differential.stdio_client import hosted

eras = pytest.mark.parametrize("era", ERAS)


async def played(side: Side, era: Era) -> dict[str, Outcome]:
    async with hosted(side) as host:
        return await transcript(host.connected, era, "stdio")


@eras
async def test_our_server_answers_like_the_reference(era: Era, record_property: Callable[[str, object], None]) -> None:
    ours, theirs = await played("ours", era), await played("reference", era)
    require_equal(ours, theirs, era, "stdio", record_property)


@eras
async def test_our_messages_fit_the_schema_of_their_version(era: Era) -> None:
    require_schema(await played("ours", era), era, "stdio")
