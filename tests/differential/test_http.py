"""Our server and the SDK's give equal answers over streamable HTTP, in both eras, with sessions and without."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.differential.http_client import connected
from tests.differential.judges import require_equal, require_schema
from tests.differential.model import ERAS, HTTP, Era, Outcome, Transport
from tests.differential.runner import transcript
from tests.differential.serving import Side, served

eras = pytest.mark.parametrize("era", ERAS)
transports = pytest.mark.parametrize("transport", HTTP)


async def played(side: Side, era: Era, transport: Transport) -> dict[str, Outcome]:
    async with served(side, stateless=transport == "stateless") as port:
        return await transcript(partial(connected, port), era, transport)


@eras
@transports
async def test_our_server_answers_like_the_reference(
    era: Era, transport: Transport, record_property: Callable[[str, object], None]
) -> None:
    ours, theirs = await played("ours", era, transport), await played("reference", era, transport)
    require_equal(ours, theirs, era, transport, record_property)


@eras
@transports
async def test_our_messages_fit_the_schema_of_their_version(era: Era, transport: Transport) -> None:
    require_schema(await played("ours", era, transport), era, transport)
