"""Public names of this package; each is imported when it is first used."""

from typing import TYPE_CHECKING

from trysquare.core.lazy import lazy_exports

if TYPE_CHECKING:
    from trysquare.server.http.app import HttpOptions, http_app, serve_http
    from trysquare.server.options import ServeOptions
    from trysquare.server.server import McpServer, build_server
    from trysquare.server.stdio import serve_stdio

__all__ = ["HttpOptions", "McpServer", "ServeOptions", "build_server", "http_app", "serve_http", "serve_stdio"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "http.app": "HttpOptions http_app serve_http",
        "options": "ServeOptions",
        "server": "McpServer build_server",
        "stdio": "serve_stdio",
    },
)
