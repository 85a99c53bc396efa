"""All settings: types, defaults, descriptions, and the option or further variable that gives one.

A setting is declared here and nowhere else: its key in the file, its environment variable, its command-line option and
its line in the documentation follow from the declaration.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

LogLevelName = Literal["TRACE", "DEBUG", "INFO", "WARNING", "ERROR"]
ProfileName = Literal["full", "levels", "gateway", "search"]
PROFILE_NAMES: tuple[ProfileName, ...] = ("full", "levels", "gateway", "search")
OptionGroup = Literal["sources", "listing", "configuration"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CliOption:
    """The command-line option of a setting. Without `metavar` it is a switch."""

    group: OptionGroup
    help: str
    metavar: str | None = None
    flag: str | None = None
    """The flag, where it is not the setting's name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FromEnvironment:
    """How a setting is read from the environment, where that differs from the rule.

    `alias` is a variable that other MCP servers share; the own one wins. An empty variable counts as unset, as
    containers often leave it, unless `keep_empty`: a secret that did not arrive must not admit everybody.
    """

    alias: str | None = None
    keep_empty: bool = False


def _one_or_many(given: object) -> object:
    return (given,) if isinstance(given, (str, Path)) else given


def _upper(given: object) -> object:
    return given.upper() if isinstance(given, str) else given


def _profile(given: str) -> str:
    toolset, separator, profile = given.rpartition("=")
    if profile not in PROFILE_NAMES or (separator and not toolset):
        raise ValueError(f"expected [TOOLSET=] and one of {', '.join(PROFILE_NAMES)}")
    return given


DOCUMENTS = (".json", ".yaml", ".yml")
"""How the names of OpenAPI documents end."""
_WEB = ("http://", "https://")


def is_document(text: str) -> bool:
    """Whether a source of tools is an OpenAPI document: its file, or its address."""
    return text.lower().startswith(_WEB) or text.lower().endswith(DOCUMENTS)


def split_source(text: str) -> tuple[str, str, bool]:
    """The file or module of a source of tools, the name after its colon, and whether it is a file."""
    if is_document(text):
        return text, "", not text.lower().startswith(_WEB)
    place, separator, name = text.rpartition(":")
    if separator and place.endswith(".py"):
        return place, name, True
    if text.endswith(".py"):
        return text, "", True
    place, _, name = text.partition(":")
    return place, name, False


def _tools_name(given: str) -> str:
    if is_document(given):
        return given
    place, name, is_file = split_source(given)
    parts = [*([] if is_file else place.split(".")), *(name.split(".") if name or given.endswith(":") else [])]
    if not all(part.isidentifier() for part in parts):
        raise ValueError(
            "expected FILE.py or MODULE, with :NAME for one of its names, such as server.py:tools; or openapi.json"
        )
    return given


def _named_address(given: str) -> str:
    name, separator, address = given.partition("=")
    if not separator or not name.strip() or not address.strip().startswith(("http://", "https://")):
        raise ValueError("expected NAME=URL, such as news=https://example.org/feed")
    return given


def _web_address(given: str | None) -> str | None:
    if given is not None and not (given.startswith(_WEB) and given.partition("://")[2].strip("/")):
        raise ValueError("expected an address such as https://api.example.com/v1")
    return given


def _adapter_choice(given: str) -> str:
    name, _, wanted = given.partition("=")
    if not name.strip() or not wanted.strip():
        raise ValueError("expected NAME=VERSION or NAME=PATH, such as lldb-dap=18")
    return given


TextList = Annotated[tuple[str, ...], BeforeValidator(_one_or_many)]
PathList = Annotated[tuple[Path, ...], BeforeValidator(_one_or_many)]
SecretList = Annotated[tuple[SecretStr, ...], BeforeValidator(_one_or_many)]
ToolsList = Annotated[tuple[Annotated[str, AfterValidator(_tools_name)], ...], BeforeValidator(_one_or_many)]
ProfileList = Annotated[tuple[Annotated[str, AfterValidator(_profile)], ...], BeforeValidator(_one_or_many)]
AddressList = Annotated[tuple[Annotated[str, AfterValidator(_named_address)], ...], BeforeValidator(_one_or_many)]
AdapterList = Annotated[tuple[Annotated[str, AfterValidator(_adapter_choice)], ...], BeforeValidator(_one_or_many)]


class Section(BaseModel):
    """A table of settings: closed, so that a misspelt key is an error, and never changed once loaded."""

    # Built when first used, and then as one: building each table by itself costs every start some milliseconds.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class OAuthSettings(Section):
    """OAuth 2.1 access tokens, for HTTP."""

    issuer: Annotated[str | None, FromEnvironment(keep_empty=True)] = Field(
        default=None, description="URL of the authorization server; enables OAuth"
    )
    audience: str | None = Field(default=None, description="Required audience of tokens; default: this server's URL")
    jwks: str | None = Field(
        default=None, description="URL or file of the issuer's keys; default: discovered from the issuer"
    )
    scopes: TextList = Field(default=(), description="Scopes that every token must have")


class HttpSettings(Section):
    """Streamable HTTP."""

    host: str = Field(default="127.0.0.1", description="Address to listen on", min_length=1)
    port: int = Field(default=8000, description="Port to listen on; 0 for any free port", ge=0, le=65535)
    path: str = Field(default="/mcp", description="Path of the MCP endpoint", pattern="^/")
    tokens: Annotated[SecretList, FromEnvironment(keep_empty=True)] = Field(
        default=(), description="Bearer tokens with full access, in addition to those of `trysquare token`"
    )
    allowed_hosts: TextList = Field(default=(), description="Host headers to accept in addition to the address itself")
    allowed_origins: TextList = Field(default=(), description="Origins of web pages that may call")
    stateless: bool = Field(default=False, description="Keep no sessions, so that any of several workers can answer")
    accept_local_state: bool = Field(
        default=False,
        description="Serve with a shared `database` although tokens, approvals and request keys stay on each machine",
    )
    state_keys: SecretList = Field(default=(), description="Keys that sign requestState; the first signs, all verify")
    state_keys_file: Path | None = Field(default=None, description="File with such keys, one per line")
    oauth: OAuthSettings = Field(default_factory=lambda: OAuthSettings(), description="OAuth 2.1 resource server")


class LimitSettings(Section):
    """Limits of calls and results."""

    timeout: float | None = Field(
        default=None, description="Timeout of a call in seconds, unless its tool sets one", gt=0
    )
    result_characters: int | None = Field(
        default=None, description="Largest result before it is paged, unless its tool sets one", ge=200
    )
    output_schemas: bool = Field(
        default=True, description="List what tools return as output schemas; false leaves all of them out"
    )
    page_size: int = Field(
        default=200, description="Tools, prompts and resources in one page of a list", ge=1, le=10_000
    )
    kept_bytes: int = Field(
        default=268_435_456, description="Maximum bytes of long results stored for further pages, in total", ge=1_000
    )
    kept_bytes_per_caller: int = Field(
        default=67_108_864, description="The same for each caller; the oldest results are dropped first", ge=1_000
    )
    tasks_per_caller: int = Field(
        default=64, description="Maximum tasks of a caller that have not ended; 0 answers every call directly", ge=0
    )
    ledger_characters: int = Field(
        default=0,
        description="Characters of a result's text, without secrets, that the ledger of the gateway keeps",
        ge=0,
        le=20_000,
    )
    approval_seconds: float = Field(
        default=600.0,
        description="Seconds in which a call must be approved, and then run; unanswered it does not run",
        ge=1,
        le=86_400,
    )
    job_question_seconds: float | None = Field(
        default=None,
        description="Seconds after which the unanswered question of a job is answered with `skip`; default: it waits",
        gt=0,
    )


class ApproversSettings(Section):
    """Approvers: whose signatures prove an approval in strict mode."""

    file: Path = Field(
        default=Path(".trysquare-approvers"),
        description="Approvers of the project, in the format of git's allowed_signers",
    )
    rules: TextList = Field(
        default=(), description="Who may approve what: bot:PATTERN=NAME, gate:PATTERN=NAME or tool:PATTERN=NAME"
    )


class LintSettings(Section):
    """Rules of `trysquare check`."""

    ignore: TextList = Field(default=(), description="Rules to skip")
    first_line: int = Field(default=50, description="Maximum characters of a description's first line", ge=1)
    description_characters: int = Field(default=1_024, description="Maximum characters of a description", ge=1)
    tool_tokens: int = Field(default=700, description="Maximum tokens of one tool in a list", ge=1)
    profile_tokens: int = Field(default=20_000, description="Maximum tokens of a whole list", ge=1)
    listed_tools: int = Field(default=128, description="Maximum tools in a list", ge=1)
    parameters: int = Field(default=12, description="Maximum parameters of one tool", ge=1)
    name_length: int = Field(default=50, description="Maximum characters of a tool's name", ge=1)


class ServerSettings(Section):
    """Server info."""

    name: str | None = Field(
        default=None, description="Name that clients show; default: that of `Tools`, or trysquare", min_length=1
    )
    instructions: str | None = Field(
        default=None, description="Instructions for models about the server as a whole; default: those of `Tools`"
    )


class ModelsSettings(Section):
    """Access to models."""

    key_variable: str | None = Field(
        default=None,
        description="Environment variable with the API key; default: OPENAI_API_KEY or ANTHROPIC_API_KEY",
        pattern="^[A-Za-z_][A-Za-z0-9_]*$",
    )
    timeout: float = Field(default=120.0, description="Timeout of one request in seconds", gt=0)
    retries: int = Field(default=4, description="Retries while the server is busy or unreachable", ge=0, le=20)
    context_tokens: int | None = Field(
        default=None, description="Maximum tokens of a conversation; default: the model's limit", ge=256
    )
    answer_tokens: int | None = Field(
        default=None,
        description="Maximum tokens of one answer, thinking included; default: 4096, 1024 for a local model",
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
        default=True, description="Feed what the grammar forces to a local model in one batch instead of sampling it"
    )
    hold: Literal["auto", "grammar", "guided", "native", "schema", "free"] = Field(
        default="auto", description="How a server's answers are constrained; `auto` detects what it supports"
    )
    prompt_price: float | None = Field(default=None, description="Price of a million prompt tokens", ge=0)
    completion_price: float | None = Field(default=None, description="Price of a million completion tokens", ge=0)


class SearchSettings(Section):
    """Search for tools and documents."""

    encoder: Literal["auto", "off"] = Field(
        default="auto",
        description="`auto` also compares meanings, with `embeddings_url` or the installed minilm; `off` words alone",
    )
    embeddings_url: str | None = Field(
        default=None,
        description="URL of an OpenAI-compatible API whose `/embeddings` is the encoder",
        pattern="^https?://",
    )
    embeddings_model: str | None = Field(default=None, description="Name of the model there", min_length=1)
    key_variable: str = Field(
        default="OPENAI_API_KEY",
        description="Environment variable with the API key for it, if it takes one",
        pattern="^[A-Za-z_][A-Za-z0-9_]*$",
    )
    learn: bool = Field(
        default=False,
        description="Rank tools a little higher that were called after such a search; kept in the project's state",
    )


class ContentSettings(Section):
    """Content tools of the workbench."""

    feeds: AddressList = Field(default=(), description="Feeds that `rss_feed` reads by default, NAME=URL")
    social_links: AddressList = Field(default=(), description="Profiles of the author, NAME=URL")
    custom_links: AddressList = Field(default=(), description="Other links under every text, NAME=URL")
    youtube_placeholder: str | None = Field(default=None, description="Placeholder text for a future video")
    allow_hosts: TextList = Field(default=(), description="Hosts with private addresses that may be fetched from")
    fetch_bytes: int = Field(default=5_000_000, description="Largest response to fetch, in bytes", ge=1)
    fetch_seconds: float = Field(default=30.0, description="Timeout of a fetch in seconds", gt=0)
    calendar: str = Field(default="primary", description="Default Google calendar")
    google_token: SecretStr | None = Field(default=None, description="Access token for Google Calendar")
    google_client: str | None = Field(default=None, description="OAuth client that gets access tokens")
    google_client_secret: SecretStr | None = Field(default=None, description="Secret of that OAuth client")
    google_refresh_token: SecretStr | None = Field(default=None, description="Refresh token of that OAuth client")
    google_url: str = Field(default="https://www.googleapis.com", description="URL of Google's APIs")
    google_token_url: str = Field(
        default="https://oauth2.googleapis.com/token", description="URL of Google's token endpoint"
    )
    notion_token: SecretStr | None = Field(default=None, description="Token of a Notion integration")
    notion_page: str | None = Field(default=None, description="Notion page below which pages are published")
    notion_data_source: str | None = Field(default=None, description="Notion data source in which pages are published")
    notion_url: str = Field(default="https://api.notion.com", description="URL of Notion's API")


def _source(help: str, metavar: str | None = None) -> CliOption:
    return CliOption(group="sources", help=help, metavar=metavar)


class Settings(Section):
    """All settings."""

    tools: Annotated[ToolsList, _source("tools of a Python file or module", "SOURCE")] = Field(
        default=(),
        description="Tools to serve: FILE.py or MODULE, and :NAME for one of several, or an OpenAPI document",
    )
    openapi_url: Annotated[
        str | None,
        AfterValidator(_web_address),
        CliOption(group="sources", metavar="URL", help="address of the API of an OpenAPI document"),
    ] = Field(default=None, description="Address of the API, instead of the one that its OpenAPI document names")
    bot: Annotated[PathList, _source("a workflow bot", "FOLDER")] = Field(
        default=(), description="Directories of workflow bots"
    )
    gateway: Annotated[PathList, _source("MCP servers behind one gateway", "MCP_JSON")] = Field(
        default=(), description="mcp.json files of servers behind the gateway"
    )
    guide: Annotated[PathList, _source("guide content", "FOLDER")] = Field(
        default=(), description="Directories of guide content"
    )
    workbench: Annotated[PathList, _source("a directory to work in", "FOLDER")] = Field(
        default=(), description="Directories that the workbench may work in"
    )
    providers: TextList = Field(
        default=(), description="Installed providers of tools to open, by the names of their entry points"
    )
    hidden: TextList = Field(
        default=(), description="Paths that no tool of the workbench reads or names: [TOOL=]GLOB, such as .env"
    )
    profile: Annotated[
        ProfileList,
        CliOption(group="listing", metavar="[TOOLSET=]full|levels|gateway|search", help="the tools that are listed"),
    ] = Field(default=(), description="Tools that are listed: [TOOLSET=]full, levels, gateway or search")
    project: Annotated[
        Path, CliOption(group="configuration", metavar="FOLDER", help="the project (default: the working directory)")
    ] = Field(default=Path("."), description="Directory of the project: importable, and home of its state")
    database: SecretStr | None = Field(
        default=None,
        description="PostgreSQL URL for the bots' runs, the agents' jobs and tasks; default: files in the project",
    )
    project_id: str | None = Field(
        default=None,
        description="Name of the project in that database, for checkouts that share runs; default: a generated id",
        min_length=1,
        max_length=200,
    )
    debugger: Annotated[bool, CliOption(group="sources", help="the debugger's tools")] = Field(
        default=False, description="Serve the debugger's tools"
    )
    debug_secrets: bool = Field(default=False, description="Let the debugger show values whose names suggest a secret")
    debug_adapters: AdapterList = Field(
        default=(), description="Debuggers to use: NAME=VERSION or NAME=PATH, such as lldb-dap=18"
    )
    agents: Annotated[bool, _source("agents as tools")] = Field(default=False, description="Serve agents as tools")
    model: str | None = Field(
        default=None,
        description="Model of the agents: openai:NAME@URL, anthropic:NAME, local:NAME or replay:FILE",
        min_length=3,
    )
    prefix: Annotated[
        str | None,
        CliOption(group="listing", metavar="TEXT", help="prefix of every tool's name"),
        FromEnvironment(alias="MCP_TOOL_PREFIX", keep_empty=True),
    ] = Field(default=None, description="Prefix of every tool's name; empty for none", max_length=32)
    strict: Annotated[
        bool,
        CliOption(
            group="listing",
            help="require a human's approval at every gate, and treat lint warnings as errors",
        ),
    ] = Field(default=False, description="Require a human's approval at every gate, and treat lint warnings as errors")
    include_example_tools: Annotated[bool, FromEnvironment(alias="MCP_INCLUDE_EXAMPLE_TOOLS")] = Field(
        default=False, description="Serve the example tools too"
    )
    log_level: Annotated[
        LogLevelName,
        BeforeValidator(_upper),
        CliOption(group="configuration", metavar="LEVEL", help="TRACE, DEBUG, INFO, WARNING or ERROR"),
    ] = Field(default="WARNING", description="Lowest level to log")
    server: ServerSettings = Field(default_factory=lambda: ServerSettings(), description="Server info")
    http: HttpSettings = Field(default_factory=lambda: HttpSettings(), description="Streamable HTTP")
    models: ModelsSettings = Field(default_factory=lambda: ModelsSettings(), description="Access to models")
    search: SearchSettings = Field(default_factory=lambda: SearchSettings(), description="Search for tools")
    content: ContentSettings = Field(default_factory=lambda: ContentSettings(), description="Content tools")
    limits: LimitSettings = Field(default_factory=lambda: LimitSettings(), description="Limits of calls and results")
    approvers: ApproversSettings = Field(
        default_factory=lambda: ApproversSettings(), description="Approvers, whose signatures count in strict mode"
    )
    lint: LintSettings = Field(default_factory=lambda: LintSettings(), description="Rules of `trysquare check`")
