"""Policy of a run: allow, ask or deny a call by tool, path and command."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from pydantic import ConfigDict

from trysquare.core.errors import ErrorCode, ToolError
from trysquare.core.json import JsonObject, as_list, as_object, choices_of, properties_of
from trysquare.core.text import truncate
from trysquare.files.globs import is_under, matches, path_matches
from trysquare.models import ToolSpec
from trysquare.workbench.context import KIND

_PLAIN = r"[A-Za-z0-9_./:=,@%+-]"
_QUOTED = r"'[^'\x00-\x1f\x7f]*'|\"[^\"$`\\!\x00-\x1f\x7f]*\""
_WORD = re.compile(rf"(?:{_PLAIN}|{_QUOTED})+")
_PIECE = re.compile(rf"{_PLAIN}+|{_QUOTED}")
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
_PROGRAM = re.compile(rf"{_NAME}|(?:/{_NAME})+")
"""A program by name or absolute path: a relative one could be another program."""
_PLACED = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*")

_WIDER = rf"(?:{_PLAIN}|[*?\[\]~^]|{_QUOTED})+"
_JOINED = re.compile(rf"[ \t]*(?:(?P<word>{_WIDER})|(?P<redirect>\d*(?:>>|>|<)(?:&\d+|[ \t]*{_WIDER})|&>[ \t]*{_WIDER})"
                     r"|(?P<end>&&|\|\||[;|&\n]))")  # fmt: skip
_RESERVED = frozenset(
    {"if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in",
     "function", "time", "coproc"}
)  # fmt: skip
"""Words that start a compound command in bash."""

_BORDERS = re.compile(r"[;&|\n()`]+")
_BLANKS = re.compile(r"[\s<>{}$!]+")
_QUOTES = str.maketrans("", "", "'\"\\")


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandLine:
    """A shell command line, as far as rules understand it.

    An allow rule matches one simple command: plain words and quotes without expansion. Deny and ask rules match any
    word that may be a program. They prevent mistakes and are not a barrier: a program can run others unnamed, so what a
    command can reach is limited by the sandbox.
    """

    words: tuple[str, ...] | None
    """Program and arguments of one simple command; None for anything else."""
    is_clear: bool
    """Whether the line is a sequence of simple commands, so that no program is hidden in it."""
    mentioned: tuple[tuple[str, ...], ...]
    """Words of each part of the line, unquoted: any of them may be a program."""

    def is_allowed_by(self, patterns: Iterable[str]) -> bool:
        if self.words is None:
            return False
        line = " ".join(map(_as_word, self.words))
        return any(_allows(pattern, line) for pattern in patterns)

    def mentions(self, patterns: Iterable[str]) -> bool:
        wanted = [pattern.split() for pattern in patterns if pattern.split()]
        return any(_mentions(pattern, words) for pattern in wanted for words in self.mentioned)


def read_command(line: str) -> CommandLine:
    mentioned = (tuple(filter(None, _BLANKS.split(part))) for part in _BORDERS.split(line.translate(_QUOTES)))
    return CommandLine(words=_simple(line), is_clear=_is_clear(line), mentioned=tuple(filter(None, mentioned)))


def _simple(line: str) -> tuple[str, ...] | None:
    words: list[str] = []
    rest = line.strip(" \t")
    while rest:
        word = _WORD.match(rest)
        if word is None or rest[word.end() : word.end() + 1] not in ("", " ", "\t"):
            return None
        words.append(word[0])
        rest = rest[word.end() :].lstrip(" \t")
    if not words or _PROGRAM.fullmatch(words[0]) is None or words[0] in _RESERVED:
        return None
    return tuple(map(_unquoted, words))


def _unquoted(word: str) -> str:
    return "".join(piece[1:-1] if piece[0] in "'\"" else piece for piece in _PIECE.findall(word))


def _as_word(word: str) -> str:
    """A word as patterns see it: quoted unless plain, so that it stays one word."""
    return word if word and re.fullmatch(f"{_PLAIN}+", word) else f"'{word}'"


def _is_clear(line: str) -> bool:
    """Accept simple commands in sequence, with redirections and globs."""
    at, first = 0, True
    rest = line.rstrip(" \t\n")
    while at < len(rest):
        token = _JOINED.match(rest, at)
        if token is None:
            return False
        if token["end"]:
            first = True
        elif token["word"]:
            if first and (_PLACED.fullmatch(_unquoted(token["word"])) is None or token["word"] in _RESERVED):
                return False
            first = False
        at = token.end()
    return bool(rest)


def _allows(pattern: str, line: str) -> bool:
    """`ls*` allows `ls` and `ls -l`, but not `lsof`."""
    if re.search(r"[A-Za-z0-9]\*$", pattern) and not pattern.endswith("**"):
        return matches(line, pattern[:-1]) or matches(line, f"{pattern[:-1]} *")
    return matches(line, pattern)


def _mentions(pattern: list[str], words: tuple[str, ...]) -> bool:
    """Whether the words contain those of a pattern in order; options may stand between them."""
    return any(
        _begins(pattern[0], word, first=at == 0) and _follow(pattern[1:], words[at + 1 :])
        for at, word in enumerate(words)
    )


def _begins(pattern: str, word: str, *, first: bool) -> bool:
    bare = word.rsplit("/", 1)[-1]
    if matches(word, pattern) or matches(bare, pattern):
        # After the first word most are arguments, so a trailing star matches no further letters there.
        return first or not pattern.endswith("*") or pattern.strip("*") in ("", word, bare)
    return False


def _follow(patterns: list[str], words: tuple[str, ...]) -> bool:
    for pattern in patterns:
        if pattern.strip("*") == "":
            continue
        found = next((at for at, word in enumerate(words) if matches(word, pattern)), None)
        if found is None:
            return False
        words = words[found + 1 :]
    return True


Effect: TypeAlias = Literal["deny", "ask", "allow"]
_ORDER: tuple[Effect, ...] = ("deny", "ask", "allow")
PATH_ARGUMENTS = frozenset({"path", "paths", "file", "files", "directory", "folder", "source", "destination", "target"})
PATH_KINDS = frozenset({"existing_file", "workspace_path"})
_MAX_PATH = 4_096
COMMAND_ARGUMENTS = frozenset({"command", "commands", "script"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """Effect of the calls that match; a part that is left out matches all."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    effect: Effect
    tool: str = "*"
    actions: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    why: str | None = None

    @property
    def hides(self) -> bool:
        """Whether its paths are denied to every action, so that results must not show them either."""
        return self.effect == "deny" and bool(self.paths) and not self.commands and not self.actions


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    effect: Effect
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """Rules of one run. Nothing that a model, a file or a result says can change them."""

    default: Effect = "deny"
    rules: tuple[Rule, ...] = field(default=())
    root: Path | None = None

    def decide(self, tool: str, arguments: JsonObject, schema: JsonObject | None = None) -> Decision:
        """Decide about a call; the tool's schema, if known, marks the arguments that are paths."""
        call = _Call.read(tool, arguments, self.root, schema or {})
        if call.outside is not None:
            return Decision(effect="deny", why=f"`{truncate(call.outside)}` is outside the directory of this run")
        decision = self._match_rules(call)
        return self._unclear_command(call) or decision if decision.effect == "allow" else decision

    def _match_rules(self, call: _Call) -> Decision:
        for effect in _ORDER:
            for rule in (rule for rule in self.rules if rule.effect == effect):
                if _matches_name(rule, call) and _matches_paths(rule, call) and _matches_commands(rule, call):
                    return Decision(effect=effect, why=rule.why or _describe(rule))
        return Decision(effect=self.default, why=f"no rule matches, and the default is {self.default}")

    def _unclear_command(self, call: _Call) -> Decision | None:
        """Ask about a command line that a deny or ask rule cannot analyse."""
        for rule in self.rules:
            checks = rule.effect != "allow" and rule.commands and _matches_name(rule, call)
            if checks and not all(line.is_clear for line in _lines(rule, call)):
                return Decision(effect="ask", why="the command line is too complex to check against the rules")
        return None

    def require(self, tool: str, arguments: JsonObject, schema: JsonObject | None = None) -> Decision:
        decision = self.decide(tool, arguments, schema)
        if decision.effect == "deny":
            raise ToolError(
                f"The policy of this run denies this call of `{tool}`: {decision.why}.",
                code=ErrorCode.POLICY_DENIED,
                instruction="Do not send the call again. Use what is allowed, or give up with the reason.",
            )
        return decision

    def may_offer(self, tool: str, action: str | None = None) -> bool:
        """Whether any call of a tool, or of one of its actions, may not be denied."""
        general = (rule for rule in self.rules if rule.effect == "deny" and not rule.paths and not rule.commands)
        if any(_covers(rule, tool, action) for rule in general):
            return False
        others = (rule for rule in self.rules if rule.effect != "deny")
        return self.default != "deny" or any(_touches(rule, tool, action) for rule in others)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Call:
    """The parts of a call that rules match."""

    tool: str
    action: str | None = None
    paths: tuple[str, ...] = ()
    """Paths that the call certainly names."""
    perhaps: tuple[str, ...] = ()
    """Paths that it may name: enough to deny or ask, not to allow."""
    commands: tuple[CommandLine, ...] = ()
    texts: tuple[CommandLine, ...] = ()
    """Every string of the call as a command line, if no argument is known to be one."""
    outside: str | None = None

    @classmethod
    def read(cls, tool: str, arguments: JsonObject, root: Path | None, schema: JsonObject) -> _Call:
        action = arguments.get("action")
        marked = frozenset(_marked(schema))
        inside = [(text, _normalize(text, root)) for text in _texts(arguments, PATH_ARGUMENTS | marked)]
        commands = tuple(read_command(text) for text in _texts(arguments, COMMAND_ARGUMENTS))
        words = [word for line in commands for part in line.mentioned for word in part]
        # Without marks any argument may be a path or a command.
        every = [] if marked else list(_leaves(arguments))
        return cls(
            tool=tool,
            action=action if isinstance(action, str) else None,
            paths=tuple(path for _, path in inside if path is not None),
            perhaps=tuple(_resolve_paths([*(text for text, _ in inside), *words, *every], root)),
            commands=commands,
            texts=() if commands else tuple(map(read_command, every)),
            outside=next((text for text, path in inside if path is None), None),
        )


def _marked(schema: JsonObject) -> Iterator[str]:
    """Names of arguments that a schema marks as paths, at any depth."""
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            for name, part in as_object(value).items():
                if any(kind in _kinds(as_object(part)) for kind in PATH_KINDS):
                    yield name
        for part in as_list(value) or [value]:
            yield from _marked(as_object(part))


def _kinds(schema: JsonObject) -> Iterator[Any]:
    yield schema.get(KIND)
    for part in (schema.get("items"), *schema.get("anyOf", ()), *schema.get("oneOf", ())):
        if isinstance(part, dict):
            yield from _kinds(as_object(part))


def _resolve_paths(texts: Iterable[str], root: Path | None) -> Iterator[str]:
    """Resolve texts as paths below the root: literally, as a file URL, and through links."""
    for text in texts:
        if not text or len(text) > _MAX_PATH or "\0" in text:
            continue
        plain = unquote(urlsplit(text).path) if text.startswith("file:") else text
        plain = os.path.expanduser(plain)
        yield from filter(None, (_normalize(plain, root), _resolved(plain, root)))


def _resolved(text: str, root: Path | None) -> str | None:
    if root is None:
        return None
    try:
        real = Path(os.path.realpath(root / text))
        return real.relative_to(os.path.realpath(root)).as_posix()
    except (OSError, ValueError):
        return None  # outside the root, or not a path


def _texts(arguments: JsonObject, names: frozenset[str]) -> Iterator[str]:
    """Strings of the arguments with these names, at any depth."""
    for name, value in arguments.items():
        if name in names:
            yield from _leaves(value)
        else:
            for part in as_list(value) or [value]:
                yield from _texts(as_object(part), names)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in (*as_list(value), *as_object(value).values()):
        yield from _leaves(part)


def _normalize(text: str, root: Path | None) -> str | None:
    """Normalize a path below the root by its text alone; None if it leads out. Links are checked by the tools."""
    if "\0" in text:
        return None
    plain = text.replace("\\", "/")
    if plain.startswith("/"):
        base = None if root is None else root.as_posix().rstrip("/")
        if base is None or not (plain == base or plain.startswith(base + "/")):
            return None
        plain = plain[len(base) :].lstrip("/")
    parts: list[str] = []
    for part in plain.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) or "."


def _matches_name(rule: Rule, call: _Call) -> bool:
    if rule.actions and call.action is None:
        # A call without an action could be any, so no rule for some actions allows it.
        return rule.effect != "allow" and matches(call.tool, rule.tool)
    return _covers(rule, call.tool, call.action)


def _covers(rule: Rule, tool: str, action: str | None) -> bool:
    """Whether a rule matches every call of a tool or action."""
    by_action = not rule.actions or (action is not None and any(matches(action, each) for each in rule.actions))
    return by_action and matches(tool, rule.tool)


def _touches(rule: Rule, tool: str, action: str | None) -> bool:
    """Whether a rule matches some call of a tool or action."""
    return matches(tool, rule.tool) and (action is None or _covers(rule, tool, action))


def _matches_paths(rule: Rule, call: _Call) -> bool:
    """One path is enough to deny or ask; all are needed to allow."""
    if not rule.paths:
        return True
    if rule.effect == "allow":
        allowed = (any(path_matches(path, pattern) for pattern in rule.paths) for path in call.paths)
        return bool(call.paths) and all(allowed)
    return any(is_under(path, rule.paths) for path in (*call.paths, *call.perhaps))


def _matches_commands(rule: Rule, call: _Call) -> bool:
    """To allow, every line must be one matching command; to deny or ask, a mention is enough."""
    if not rule.commands:
        return True
    if rule.effect == "allow":
        return bool(call.commands) and all(line.is_allowed_by(rule.commands) for line in call.commands)
    return any(line.mentions(rule.commands) for line in _lines(rule, call))


def _lines(rule: Rule, call: _Call) -> tuple[CommandLine, ...]:
    """Command lines of a call; a rule that names a tool matches any of its strings."""
    return call.commands or (call.texts if rule.tool != "*" else ())


def _describe(rule: Rule) -> str:
    parts = [f"tool {rule.tool}"]
    for label, patterns in (("action", rule.actions), ("path", rule.paths), ("command", rule.commands)):
        if patterns:
            parts.append(f"{label} {' or '.join(patterns)}")
    return f"the rule {rule.effect}: {', '.join(parts)}"


def allowed_offer(offer: ToolSpec, policy: Policy) -> ToolSpec | None:
    """Drop denied actions from an offer; None if the whole tool is denied."""
    if not policy.may_offer(offer.name):
        return None
    options = cast("list[JsonObject] | None", offer.schema.get("oneOf"))
    if options is None:
        return offer
    allowed = [option for option in options if all(policy.may_offer(offer.name, each) for each in _actions(option))]
    if not allowed:
        return None
    if len(allowed) == len(options):
        return offer
    names = {name for option in allowed for name in option["properties"]}
    properties = {name: part for name, part in offer.flat["properties"].items() if name in names}
    properties["action"] = {**properties["action"], "enum": [each for option in allowed for each in _actions(option)]}
    if properties["action"].get("default") not in properties["action"]["enum"]:
        properties["action"].pop("default", None)
    schema, flat = {**offer.schema, "oneOf": allowed}, {**offer.flat, "properties": properties}
    return replace(offer, schema=schema, flat=flat)


def _actions(option: JsonObject) -> Sequence[str]:
    return choices_of(properties_of(option).get("action"))
