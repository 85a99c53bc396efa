"""Prompts, resources and templates of servers, as ours. A server runs only when one of them is used."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from trysquare.catalog.schema_parts import as_list, as_object
from trysquare.core.content import ResourceContents
from trysquare.core.context import CallContext
from trysquare.core.errors import DeclarationError, ErrorCode, ToolError
from trysquare.core.prompt import Complete, Prompt, PromptArgument, PromptMessage
from trysquare.core.resource import Read, Resource, ResourceTemplate
from trysquare.core.threads import run_in_thread
from trysquare.core.toolset import Toolset
from trysquare.core.types import JsonObject
from trysquare.core.untrusted import cleaned_text
from trysquare.gateway.addresses import Addresses, address_at, beginning_of, claims_of, may_claim
from trysquare.gateway.answers.setting_aside import RESOURCE, resource_contents
from trysquare.gateway.definitions.catalogue import OfferKind
from trysquare.gateway.naming import space_of, upstream_name
from trysquare.gateway.server import ServerConfig
from trysquare.gateway.servers import Servers
from trysquare.gateway.upstream_content import contents_of, messages_of, optional_text

FORM = "uriTemplate"

logger = logging.getLogger("trysquare.gateway")


class UpstreamOffers:
    """What servers offer beside tools, by what the catalogue knows of it."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._catalogue = servers.catalogue
        self.addresses = Addresses({})
        self._servers_by_name: dict[str, ServerConfig] = {}

    def prompts(self, server: ServerConfig) -> Iterator[Prompt]:
        """The prompts of a server, named as its tools are, each once."""
        for entry in self._catalogue.offer(server.name, "prompts"):
            if name := optional_text(entry, "name"):
                yield self._prompt(server, name, entry)

    def use_addresses(self, servers: Sequence[ServerConfig], own: Toolset | None) -> None:
        """Take in what every server claims now, and which addresses are our own already."""
        claims = {
            server.name: claims_of(self._texts(server, "resources", "uri"), self._texts(server, "templates", FORM))
            for server in servers
        }
        if own is None:
            self.addresses = Addresses(claims)
        else:
            self.addresses = Addresses(
                claims,
                is_own=lambda address: own.find_resource(address) is not None,
                own_beginnings=[beginning_of(one.uri_template) for one in own.templates()],
            )
        self._servers_by_name = {server.name: server for server in servers}

    def resources(self, server: ServerConfig) -> Iterator[Resource]:
        """The resources of a server, at the addresses that it gives them where they are its alone."""
        listed: set[str] = set()
        for entry in self._catalogue.offer(server.name, "resources"):
            uri = optional_text(entry, "uri") or ""
            if may_claim(uri) and uri not in listed:
                listed.add(uri)
                yield self._resource(server, uri, entry)

    def templates(self, server: ServerConfig) -> Iterator[ResourceTemplate]:
        """The templates of a server, as it writes them where no address of theirs can be another's."""
        listed: set[str] = set()
        for entry in self._catalogue.offer(server.name, "templates"):
            form = optional_text(entry, FORM) or ""
            if not may_claim(beginning_of(form)) or form in listed:
                continue
            listed.add(form)
            try:
                yield self._template(server, form, entry)
            except DeclarationError as error:
                logger.warning("a template of %s is left out: %s", server.name, error)

    def find(self, uri: str) -> Resource | None:
        """The resource at an address, read from the server that lists it and from no other."""
        if (named := self.addresses.named(uri)) is not None:
            return self._at(*named)
        if self.addresses.is_ours(uri):
            return None
        claimants = self.addresses.claimants(uri)
        if len(claimants) > 1:
            return _contested(uri, claimants)
        return self._at(claimants[0], uri) if claimants else None

    def _at(self, server: str, uri: str) -> Resource:
        """A resource of a server by its own address: from the list, else by a template that begins alike."""
        listed = [one for one in self._catalogue.offer(server, "resources") if one.get("uri") == uri]
        forms = [
            one
            for one in self._catalogue.offer(server, "templates")
            if uri.startswith(beginning_of(optional_text(one, FORM) or ""))
        ]
        return self._resource(self._servers_by_name[server], uri, next(iter((*listed, *forms)), JsonObject()))

    def _texts(self, server: ServerConfig, kind: OfferKind, name: str) -> list[str]:
        return [text for entry in self._catalogue.offer(server.name, kind) if (text := optional_text(entry, name))]

    def _resource(self, server: ServerConfig, uri: str, entry: JsonObject) -> Resource:
        size = entry.get("size")
        return Resource(
            uri=self.addresses.shown(server.name, uri),
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
            uri_template=self.addresses.shown_form(server.name, form),
            name=optional_text(entry, "name") or form,
            read=self._reading(server),
            title=optional_text(entry, "title"),
            description=optional_text(entry, "description"),
            mime_type=optional_text(entry, "mimeType"),
            complete=self._completing(server, {"type": "ref/resource", "uri": form}),
            follow=lambda uri: self._servers.follow(server, self._inner(uri)),
        )

    def _inner(self, uri: str) -> str:
        """An address as its server knows it."""
        named = self.addresses.named(uri)
        return uri if named is None else named[1]

    def _reading(self, server: ServerConfig) -> Read:
        async def read(uri: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
            inner = self._inner(uri)
            found = contents_of(
                await self._servers.request(server, "resources/read", {"uri": inner}, context, about=inner)
            )
            # What it sends along must not pass for another's either.
            return [replace(one, uri=self.addresses.shown(server.name, one.uri)) for one in found]

        return read

    def _completing(self, server: ServerConfig, reference: JsonObject) -> Complete:
        async def complete(argument: str, typed: str, others: dict[str, str]) -> Sequence[str]:
            params: JsonObject = {"ref": reference, "argument": {"name": argument, "value": typed}}
            if others:
                params["context"] = {"arguments": others}
            answer = await self._servers.request(server, "completion/complete", params)
            values = as_list(as_object(answer.get("completion")).get("values"))
            return [cleaned_text(value) for value in values if isinstance(value, str)]

        return complete


def _contested(uri: str, claimants: Sequence[str]) -> Resource:
    """What several servers say is theirs: it is read from none of them, and tells where each is read."""
    addresses = [address_at(server, uri) for server in claimants]

    async def read(address: str, values: dict[str, str], context: CallContext) -> Sequence[ResourceContents]:
        raise ToolError(
            f"`{uri[:200]}` is an address of several servers: {', '.join(f'`{one}`' for one in claimants)}.",
            code=ErrorCode.STATE_CONFLICT,
            instruction="Read the one that is meant at one of `addresses`.",
            fields={"addresses": addresses},
        )

    return Resource(uri=uri, name=uri, read=read)


def _argument(entry: JsonObject) -> PromptArgument:
    return PromptArgument(
        name=optional_text(entry, "name") or "",
        description=optional_text(entry, "description"),
        required=entry.get("required") is True,
    )
