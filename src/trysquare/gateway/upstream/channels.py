"""Which channel leads to a server, by the transport of its entry."""

from __future__ import annotations

from trysquare.gateway.server import ServerConfig
from trysquare.gateway.upstream.channel import Channel
from trysquare.gateway.upstream.stdio import StdioChannel
from trysquare.processes.nursery import Nursery


def open_channel(config: ServerConfig, nursery: Nursery) -> Channel:
    """The channel to a server, not opened yet. Remote transports are imported when one is used."""
    if config.transport == "stdio":
        return StdioChannel(config, nursery)
    if config.transport == "sse":
        from trysquare.gateway.upstream.sse import SseChannel

        return SseChannel(config)
    from trysquare.gateway.upstream.http import HttpChannel

    return HttpChannel(config)
