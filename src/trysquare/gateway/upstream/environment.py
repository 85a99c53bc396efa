"""The environment of a server that is a process: what programs need to start and to find their files, and no secrets.

The gateway's own environment holds tokens for other servers, clouds and models. A server gets the variables named
here, those that its entry's `env` sets, and those that `pass_env` names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from trysquare.core.secrets import is_secret_name

_OWN = "TRYSQUARE_"
EVERYTHING = "*"
_PLAIN = (
    "HOME LOGNAME PATH SHELL TERM USER LANG LANGUAGE LC_* TZ TMPDIR TMP TEMP XDG_*_HOME XDG_*_DIRS XDG_RUNTIME_DIR"
    # Windows.
    " APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA NUMBER_OF_PROCESSORS OS PATHEXT PROCESSOR_ARCHITECTURE"
    " PROGRAMDATA PROGRAMFILES* SYSTEMDRIVE SYSTEMROOT USERNAME USERPROFILE WINDIR"
)
_PROGRAMS = (
    # Where interpreters, package runners and their caches are, and how they reach their registries.
    " VIRTUAL_ENV CONDA_PREFIX PYTHONPATH PYTHONUTF8 LD_LIBRARY_PATH DYLD_* NODE_PATH NVM_DIR NVM_BIN FNM_* VOLTA_HOME"
    " PNPM_HOME BUN_INSTALL DENO_DIR PYENV_ROOT ASDF_* MISE_* JAVA_HOME GOPATH GOROOT CARGO_HOME RUSTUP_HOME"
    " DOCKER_HOST DOCKER_CONTEXT DOCKER_CONFIG PLAYWRIGHT_BROWSERS_PATH UV_* PIP_* NPM_CONFIG_*"
    " HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS REQUESTS_CA_BUNDLE"
    " CURL_CA_BUNDLE"
)
_NAMES = tuple(_PLAIN.split())
_CHECKED_NAMES = tuple(_PROGRAMS.split())
_USER_IN_ADDRESS = re.compile(r"//[^/\s]*@")


def server_environment(
    own: Mapping[str, str], *, passed: Iterable[str] = (), given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables of a server: the plain ones, those that `passed` names (`*` in a name stands for anything)."""
    wanted = tuple(passed)
    kept = {name: value for name, value in own.items() if _is_passed(name, value, wanted)}
    return {**kept, **(given or {})}


def withheld(own: Mapping[str, str], *, passed: Iterable[str] = (), given: Iterable[str] = ()) -> list[str]:
    """The names of the variables that a server does not get."""
    known = {*server_environment(own, passed=passed), *given}
    return sorted(name for name in own if name not in known and not name.startswith(_OWN))


def _is_passed(name: str, value: str, passed: tuple[str, ...]) -> bool:
    # Our own settings can hold tokens of our own doors, so that not even `*` means them.
    if name.startswith(_OWN):
        return name in passed
    if _matches(name, passed, exact=True):
        return True
    # A shell function in a variable is code, and no program needs it to start.
    if value.startswith("()"):
        return False
    if _matches(name, _NAMES):
        return True
    return _matches(name, _CHECKED_NAMES) and not _may_be_secret(name, value)


def _may_be_secret(name: str, value: str) -> bool:
    """Whether a setting of a package manager or a proxy is, or holds, what only its owner may know."""
    return is_secret_name(name) or "AUTH" in name.upper() or _USER_IN_ADDRESS.search(value) is not None


def _matches(name: str, patterns: Iterable[str], *, exact: bool = False) -> bool:
    # Proxies and npm's settings are written in either case.
    own = name if exact else name.upper()
    return any(fnmatchcase(own, pattern) for pattern in patterns)
