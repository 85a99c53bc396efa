"""Inside: what we put into a Python program, so that values are read there without running its code."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from trysquare.core.types import JsonObject
from trysquare.debug import recorder

_MODULES = ("stored", "functions", "expressions", "evaluating", "texts", "live")
_PACKAGE = "trysquare.debug.recorder"
_LOADER = """
def _trysquare_load(name, sources, options):
    import builtins, types
    own = dict(vars(builtins))
    for each in ("len", "id", "all", "any", "getattr", "sorted", "sum", "repr", "max", "min", "eval", "iter"):
        if type(own[each]) is not type("".join) or own[each].__name__ != each:
            raise RuntimeError(each + " is not Python's own here")
    made = {}
    plain = own["__import__"]
    def load(wanted, world=None, local=None, names=(), level=0):
        if wanted in made:
            return made[wanted]
        return plain(wanted, world, local, names, level)
    own["__import__"] = load
    package = types.ModuleType("trysquare_reading")
    made["PACKAGE"] = package
    for part, source in sources:
        module = types.ModuleType("trysquare_reading." + part)
        module.__dict__["__builtins__"] = own
        exec(compile(source, "<trysquare " + part + ">", "exec"), module.__dict__)
        made["PACKAGE." + part] = module
        setattr(package, part, module)
    setattr(builtins, name, package.live.Live(options))
_trysquare_load({name!r}, {sources!r}, {options!r})
del _trysquare_load
"""


class Inside:
    """The name of our reader in one program, which nothing else there has; texts that bring it in and ask it."""

    def __init__(self, *, secret: str, measure: str) -> None:
        self._name = f"_trysquare_{secrets.token_hex(8)}"
        self._options: Mapping[str, str] = {"secret": secret, "measure": measure}

    def loader(self) -> str:
        """Statements that put the reader into the program, under a name of its own among the builtins."""
        text = _LOADER.replace("PACKAGE", _PACKAGE)
        found = {"{name!r}": self._name, "{sources!r}": _sources(), "{options!r}": dict(self._options)}
        for part, value in found.items():
            text = text.replace(part, repr(value))
        return text

    def asking(self, ask: str, *, given: str | None = None, **wanted: object) -> str:
        """An expression that asks the reader. `given` is one that the debugger evaluates, whose value it gets."""
        asked = json.dumps({"ask": ask, **wanted}).encode("utf-8").hex()
        # On lines of its own, so that a comment at its end hides nothing.
        return f"{self._name}('{asked}')" if given is None else f"{self._name}('{asked}', (\n{given}\n))"


def failed_condition(output: str, mark: str = "trysquare-condition:") -> JsonObject | None:
    """What the debugger wrote, if that is the failure of a condition: which one, and why."""
    _, found, rest = output.rpartition(mark)
    digits = rest.split()[0] if found and rest.split() else ""
    try:
        return json.loads(bytes.fromhex(digits)) if digits else None
    except ValueError:
        return None


@cache
def _sources() -> list[tuple[str, str]]:
    folder = Path(next(iter(recorder.__path__)))
    return [(name, (folder / f"{name}.py").read_text(encoding="utf-8")) for name in _MODULES]
