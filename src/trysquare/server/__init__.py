"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.server.connection import Connection
    from trysquare.server.http.app import HttpApp, HttpOptions, http_app, serve_http
    from trysquare.server.http.auth import AnyVerifier, OAuthOptions, StaticTokens, StoredTokens, TokenVerifier
    from trysquare.server.http.limits import ConnectionLimits
    from trysquare.server.options import ServeOptions
    from trysquare.server.server import McpServer, build_server
    from trysquare.server.stdio import serve_stdio

__all__ = [
    "AnyVerifier", "Connection", "ConnectionLimits", "HttpApp", "HttpOptions", "McpServer", "OAuthOptions",
    "ServeOptions", "StaticTokens", "StoredTokens", "TokenVerifier", "build_server", "http_app", "serve_http",
    "serve_stdio",
]  # fmt: skip

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "connection": "Connection",
        "http.app": "HttpApp HttpOptions http_app serve_http",
        "http.auth": "AnyVerifier OAuthOptions StaticTokens StoredTokens TokenVerifier",
        "http.limits": "ConnectionLimits",
        "options": "ServeOptions",
        "server": "McpServer build_server",
        "stdio": "serve_stdio",
    },
)
