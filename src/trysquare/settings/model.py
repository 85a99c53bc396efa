"""Settings: everything that a user can set, with its default and what it means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

LogLevelName = Literal["TRACE", "DEBUG", "INFO", "WARNING", "ERROR"]
ProfileName = Literal["full", "levels", "gateway", "search"]
PROFILE_NAMES: tuple[ProfileName, ...] = ("full", "levels", "gateway", "search")


def _one_or_many(given: object) -> object:
    return (given,) if isinstance(given, (str, Path)) else given


def _upper(given: object) -> object:
    return given.upper() if isinstance(given, str) else given


def _profile(given: str) -> str:
    room, separator, profile = given.rpartition("=")
    if profile not in PROFILE_NAMES or (separator and not room):
        raise ValueError(f"expected [ROOM=] and one of {', '.join(PROFILE_NAMES)}")
    return given


def _tools_name(given: str) -> str:
    module, separator, name = given.partition(":")
    parts = [*module.split("."), *(name.split(".") if separator else [])]
    if not all(part.isidentifier() for part in parts):
        raise ValueError("expected MODULE:NAME, such as my_module:tools")
    return given


def _named_address(given: str) -> str:
    name, separator, address = given.partition("=")
    if not separator or not name.strip() or not address.strip().startswith(("http://", "https://")):
        raise ValueError("expected NAME=URL, such as news=https://example.org/feed")
    return given


TextList = Annotated[tuple[str, ...], BeforeValidator(_one_or_many)]
PathList = Annotated[tuple[Path, ...], BeforeValidator(_one_or_many)]
SecretList = Annotated[tuple[SecretStr, ...], BeforeValidator(_one_or_many)]
ToolsList = Annotated[tuple[Annotated[str, AfterValidator(_tools_name)], ...], BeforeValidator(_one_or_many)]
ProfileList = Annotated[tuple[Annotated[str, AfterValidator(_profile)], ...], BeforeValidator(_one_or_many)]

AddressList = Annotated[tuple[Annotated[str, AfterValidator(_named_address)], ...], BeforeValidator(_one_or_many)]


class Section(BaseModel):
    """A table of settings: closed, so that a misspelt key is an error, and never changed once loaded."""

    # Built when first used, and then as one: building each table by itself costs every start some milliseconds.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class OAuthSettings(Section):
    """Where OAuth 2.1 access tokens come from, for HTTP."""

    issuer: str | None = Field(default=None, description="Address of the authorization server; turns OAuth on")
    audience: str | None = Field(
        default=None, description="What tokens must be issued for; default: this server's address"
    )
    jwks: str | None = Field(
        default=None, description="Address or file of the issuer's keys; default: asked of the issuer"
    )
    scopes: TextList = Field(default=(), description="Scopes that every token must carry")


class HttpSettings(Section):
    """How the server is reached over streamable HTTP."""

    host: str = Field(default="127.0.0.1", description="Address to listen on", min_length=1)
    port: int = Field(default=8000, description="Port to listen on; 0 takes a free one", ge=0, le=65535)
    path: str = Field(default="/mcp", description="Path of the MCP endpoint", pattern="^/")
    tokens: SecretList = Field(
        default=(), description="Bearer tokens beside those of `trysquare token`, with access to all"
    )
    allowed_hosts: TextList = Field(default=(), description="Host headers to accept beside the address itself")
    allowed_origins: TextList = Field(default=(), description="Origins of web pages that may call")
    stateless: bool = Field(default=False, description="Keep no sessions, so that any of several workers can answer")
    accept_local_state: bool = Field(
        default=False,
        description="Serve with a shared `database` although tokens, approvals and request keys stay on each machine",
    )
    state_keys: SecretList = Field(default=(), description="Keys that seal requestState; the first seals, all open")
    state_keys_file: Path | None = Field(default=None, description="File with such keys, one a line")
    oauth: OAuthSettings = Field(default_factory=lambda: OAuthSettings(), description="OAuth 2.1 resource server")


class LimitSettings(Section):
    """Bounds on calls and answers."""

    timeout: float | None = Field(default=None, description="Seconds a call may take where its tool says nothing", gt=0)
    result_characters: int | None = Field(
        default=None, description="Largest answer before it is paged, where its tool says nothing", ge=200
    )
    page_size: int = Field(
        default=200, description="Tools, prompts and resources in one page of a listing", ge=1, le=10_000
    )
    kept_bytes: int = Field(
        default=268_435_456, description="Bytes of long answers that are kept for further pages, in all", ge=1_000
    )
    kept_bytes_per_caller: int = Field(
        default=67_108_864, description="The same for each caller; the oldest answers are dropped first", ge=1_000
    )


class LintSettings(Section):
    """What `trysquare check` looks at."""

    ignore: TextList = Field(default=(), description="Rules that are not applied")
    first_line: int = Field(default=50, description="Characters of a description's first line", ge=1)
    description_characters: int = Field(default=1_024, description="Characters of a description", ge=1)
    tool_tokens: int = Field(default=700, description="Tokens that one tool may cost in a listing", ge=1)
    profile_tokens: int = Field(default=20_000, description="Tokens that a whole listing may cost", ge=1)
    listed_tools: int = Field(default=128, description="Tools in a listing", ge=1)
    parameters: int = Field(default=12, description="Parameters of one tool", ge=1)
    name_length: int = Field(default=50, description="Characters of a tool's name", ge=1)


class ServerSettings(Section):
    """What the server says of itself."""

    name: str = Field(default="trysquare", description="Name that clients show", min_length=1)
    instructions: str | None = Field(default=None, description="What a model should know of this server as a whole")


class ModelsSettings(Section):
    """How models are reached and run."""

    key_variable: str | None = Field(
        default=None,
        description="Environment variable that holds the key; default: OPENAI_API_KEY or ANTHROPIC_API_KEY",
        pattern="^[A-Za-z_][A-Za-z0-9_]*$",
    )
    timeout: float = Field(default=120.0, description="Seconds that one request may take", gt=0)
    retries: int = Field(
        default=4, description="How often a request is sent again where the server is busy or gone", ge=0, le=20
    )
    context_tokens: int | None = Field(
        default=None, description="Tokens that a dialogue may have; default: what the model has", ge=256
    )
    answer_tokens: int | None = Field(
        default=None,
        description="Tokens of one answer, thinking included; default: 4096, 1024 for a local model",
        ge=64,
        le=1_000_000,
    )
    threads: int | None = Field(
        default=None,
        description="Threads of a local model; default: half of the processors, all of them for prompts",
        ge=1,
        le=256,
    )
    fast_forward: bool = Field(
        default=True, description="Give a local model in one batch what the grammar forces, instead of asking for it"
    )
    hold: Literal["auto", "grammar", "guided", "native", "schema", "free"] = Field(
        default="auto", description="How a server's answers are held; `auto` finds out what it offers"
    )
    prompt_price: float | None = Field(default=None, description="Price of a million tokens that are read", ge=0)
    completion_price: float | None = Field(default=None, description="Price of a million tokens that are written", ge=0)


class ContentSettings(Section):
    """What the content tools of the workbench know and may reach."""

    feeds: AddressList = Field(default=(), description="Feeds that `rss_feed` reads by itself, NAME=URL")
    social_links: AddressList = Field(default=(), description="Where the author can be found, NAME=URL")
    custom_links: AddressList = Field(default=(), description="Other links under every text, NAME=URL")
    youtube_placeholder: str | None = Field(default=None, description="Text that stands for a video to come")
    allow_hosts: TextList = Field(default=(), description="Hosts with private addresses that may be fetched from")
    fetch_bytes: int = Field(default=5_000_000, description="Largest answer that is fetched, in bytes", ge=1)
    fetch_seconds: float = Field(default=30.0, description="Seconds that a fetch may take", gt=0)
    calendar: str = Field(default="primary", description="Google calendar that is meant where a call names none")
    google_token: SecretStr | None = Field(default=None, description="Access token for Google Calendar")
    google_client: str | None = Field(default=None, description="OAuth client, to get access tokens by itself")
    google_client_secret: SecretStr | None = Field(default=None, description="Secret of that OAuth client")
    google_refresh_token: SecretStr | None = Field(default=None, description="Refresh token of that OAuth client")
    google_url: str = Field(default="https://www.googleapis.com", description="Address of Google's APIs")
    google_token_url: str = Field(
        default="https://oauth2.googleapis.com/token", description="Where Google gives access tokens"
    )
    notion_token: SecretStr | None = Field(default=None, description="Token of a Notion integration")
    notion_page: str | None = Field(default=None, description="Notion page below which pages are published")
    notion_data_source: str | None = Field(default=None, description="Notion data source in which pages are published")
    notion_url: str = Field(default="https://api.notion.com", description="Address of Notion's API")


class Settings(Section):
    """Everything that a user can set."""

    tools: ToolsList = Field(default=(), description="Tools to serve, MODULE:NAME")
    bot: PathList = Field(default=(), description="Folders of workflow bots")
    gateway: PathList = Field(default=(), description="mcp.json files of servers behind the gateway")
    guide: PathList = Field(default=(), description="Folders of guide content")
    workbench: PathList = Field(default=(), description="Folders that the workbench may work in")
    hidden: TextList = Field(
        default=(), description="Paths that no tool of the workbench reads or names: [TOOL=]GLOB, such as .env"
    )
    profile: ProfileList = Field(default=(), description="What is listed: [ROOM=]full, levels, gateway or search")
    project: Path = Field(default=Path("."), description="Folder of the project: importable, and home of its state")
    database: SecretStr | None = Field(
        default=None,
        description="PostgreSQL URL that keeps the bots' runs and the agents' jobs; by default files in the project",
    )
    project_id: str | None = Field(
        default=None,
        description="Name of the project in that database, for checkouts that share runs; by default an own id",
        min_length=1,
        max_length=200,
    )
    debug: bool = Field(default=False, description="Serve the debugger's tools")
    debug_secrets: bool = Field(
        default=False, description="Let the debugger show values whose names say that they are secret"
    )
    agents: bool = Field(default=False, description="Serve agents as tools")
    model: str | None = Field(
        default=None,
        description="Model of the agents: openai:NAME@URL, anthropic:NAME, local:NAME or replay:FILE",
        min_length=3,
    )
    prefix: str | None = Field(default=None, description="Put before every tool's name; empty for none", max_length=32)
    strict: bool = Field(default=False, description="Proof at every gate; warnings of `check` are errors")
    include_example_tools: bool = Field(default=False, description="Serve the example tools too")
    log_level: Annotated[LogLevelName, BeforeValidator(_upper)] = Field(
        default="WARNING", description="Lowest level to log"
    )
    server: ServerSettings = Field(
        default_factory=lambda: ServerSettings(), description="What the server says of itself"
    )
    http: HttpSettings = Field(
        default_factory=lambda: HttpSettings(), description="How the server is reached over HTTP"
    )
    models: ModelsSettings = Field(
        default_factory=lambda: ModelsSettings(), description="How models are reached and run"
    )
    content: ContentSettings = Field(
        default_factory=lambda: ContentSettings(), description="What the content tools know and may reach"
    )
    limits: LimitSettings = Field(default_factory=lambda: LimitSettings(), description="Bounds on calls and answers")
    lint: LintSettings = Field(default_factory=lambda: LintSettings(), description="What `trysquare check` looks at")
