"""Prompts, resources and templates of servers, as ours. A server runs only when one of them is used."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial

from trysquare.catalog.schema_parts import as_list, as_object
from trysquare.core.content import ResourceContents
from trysquare.core.context import CallContext
from trysquare.core.errors import DeclarationError
from trysquare.core.prompt import Complete, Prompt, PromptArgument, PromptMessage
from trysquare.core.resource import Read, Resource, ResourceTemplate
from trysquare.core.threads import run_in_thread
from trysquare.core.types import JsonObject
from trysquare.gateway.answers.setting_aside import RESOURCE, resource_contents
from trysquare.gateway.naming import space_of, upstream_name
from trysquare.gateway.server import ServerConfig
from trysquare.gateway.servers import Servers
from trysquare.gateway.upstream_content import contents_of, messages_of, optional_text

logger = logging.getLogger("trysquare.gateway")


class UpstreamOffers:
    """What servers offer beside tools, by what the catalogue knows of it."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._catalogue = servers.catalogue

    def prompts(self, server: ServerConfig) -> Iterator[Prompt]:
        """The prompts of a server, named as its tools are."""
        for entry in self._catalogue.offer(server.name, "prompts"):
            if name := optional_text(entry, "name"):
                yield self._prompt(server, name, entry)

    def resources(self, server: ServerConfig) -> Iterator[Resource]:
        """The resources of a server, at the addresses that it gives them: its answers link to those."""
        for entry in self._catalogue.offer(server.name, "resources"):
            if uri := optional_text(entry, "uri"):
                yield self.resource(server, uri, entry)

    def templates(self, server: ServerConfig) -> Iterator[ResourceTemplate]:
        """The templates of a server, as it writes them."""
        for entry in self._catalogue.offer(server.name, "templates"):
            if form := optional_text(entry, "uriTemplate"):
                try:
                    yield self._template(server, form, entry)
                except DeclarationError as error:
                    logger.warning("a template of %s is left out: %s", server.name, error)

    def resource(self, server: ServerConfig, uri: str, entry: JsonObject) -> Resource:
        """One resource of a server."""
        size = entry.get("size")
        return Resource(
            uri=uri,
            name=optional_text(entry, "name") or uri,
            read=self._reading(server),
            title=optional_text(entry, "title"),
            description=optional_text(entry, "description"),
            mime_type=optional_text(entry, "mimeType"),
            size=size if isinstance(size, int) else None,
            follow=partial(self._servers.follow, server, uri),
        )

    def kept_results(self) -> ResourceTemplate:
        """Large results, for clients that read resources: each belongs to whoever called."""

        async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
            results, owner = self._servers.results, context.principal.subject
            return [await run_in_thread(lambda: resource_contents(results, values["handle"], principal=owner))]

        return ResourceTemplate(
            uri_template=f"{RESOURCE}{{handle}}",
            name="gateway-result",
            title="A large result of a server",
            description="The whole of a result that a server behind the gateway gave and that was too large to pass on",
            read=read,
        )

    def by_form(self, uri: str, servers: Sequence[ServerConfig]) -> Resource | None:
        """A resource of whichever server has a template that begins alike: it may write forms that we cannot read."""
        for server in servers:
            for entry in self._catalogue.offer(server.name, "templates"):
                start = (optional_text(entry, "uriTemplate") or "").partition("{")[0]
                if start and uri.startswith(start):
                    return self.resource(server, uri, entry)
        return None

    def _prompt(self, server: ServerConfig, name: str, entry: JsonObject) -> Prompt:
        async def render(given: dict[str, str], context: CallContext) -> Sequence[PromptMessage]:
            params = {"name": name, "arguments": given}
            return messages_of(await self._servers.request(server, "prompts/get", params, context, about=name))

        return Prompt(
            name=upstream_name(space_of(server.tool_name), name),
            title=optional_text(entry, "title"),
            description=optional_text(entry, "description") or "",
            arguments=tuple(_argument(as_object(each)) for each in as_list(entry.get("arguments"))),
            render=render,
            complete=self._completing(server, {"type": "ref/prompt", "name": name}),
        )

    def _template(self, server: ServerConfig, form: str, entry: JsonObject) -> ResourceTemplate:
        return ResourceTemplate(
            uri_template=form,
            name=optional_text(entry, "name") or form,
            read=self._reading(server),
            title=optional_text(entry, "title"),
            description=optional_text(entry, "description"),
            mime_type=optional_text(entry, "mimeType"),
            complete=self._completing(server, {"type": "ref/resource", "uri": form}),
            follow=partial(self._servers.follow, server),
        )

    def _reading(self, server: ServerConfig) -> Read:
        async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
            return contents_of(await self._servers.request(server, "resources/read", {"uri": uri}, context, about=uri))

        return read

    def _completing(self, server: ServerConfig, reference: JsonObject) -> Complete:
        async def complete(argument: str, typed: str, others: dict[str, str]) -> Sequence[str]:
            params: JsonObject = {"ref": reference, "argument": {"name": argument, "value": typed}}
            if others:
                params["context"] = {"arguments": others}
            answer = await self._servers.request(server, "completion/complete", params)
            values = as_list(as_object(answer.get("completion")).get("values"))
            return [value for value in values if isinstance(value, str)]

        return complete


def _argument(entry: JsonObject) -> PromptArgument:
    return PromptArgument(
        name=optional_text(entry, "name") or "",
        description=optional_text(entry, "description"),
        required=entry.get("required") is True,
    )
