"""Gateway over upstream MCP servers; each name is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.gateway.config.entries import TRANSPORTS
    from trysquare.gateway.config.launch import LaunchPins, UnapprovedServer, secret_positions
    from trysquare.gateway.config.load import GatewayConfig, add_server, read_config, remove_server, written_entries
    from trysquare.gateway.definitions.registry import DefinitionRegistry, PendingChange
    from trysquare.gateway.models import InvalidServer, ServerConfig, ServerEntry
    from trysquare.gateway.provider import open_gateway
    from trysquare.gateway.service import GatewayService
    from trysquare.gateway.toolset import GatewayToolset
    from trysquare.gateway.upstream.oauth import login_name, sign_in
    from trysquare.gateway.upstream.stdio import withheld

__all__ = [
    "TRANSPORTS",
    "DefinitionRegistry",
    "GatewayConfig",
    "GatewayService",
    "GatewayToolset",
    "InvalidServer",
    "LaunchPins",
    "PendingChange",
    "ServerConfig",
    "ServerEntry",
    "UnapprovedServer",
    "add_server",
    "login_name",
    "open_gateway",
    "read_config",
    "remove_server",
    "secret_positions",
    "sign_in",
    "withheld",
    "written_entries",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "config.entries": "TRANSPORTS",
        "config.launch": "LaunchPins UnapprovedServer secret_positions",
        "config.load": "GatewayConfig add_server read_config remove_server written_entries",
        "definitions.registry": "DefinitionRegistry PendingChange",
        "models": "InvalidServer ServerConfig ServerEntry",
        "provider": "open_gateway",
        "service": "GatewayService",
        "toolset": "GatewayToolset",
        "upstream.oauth": "login_name sign_in",
        "upstream.stdio": "withheld",
    },
)
