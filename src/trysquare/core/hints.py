"""Functions as they were written: name, docstring, place in the source, and annotations with the names they use.

An annotation may name a class of the function around it, or one that is imported for type checkers only.
"""

from __future__ import annotations

import ast
import collections.abc
import functools
import inspect
import sys
import types
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from trysquare.core.errors import DeclarationError

_CALLABLE: Any = collections.abc.Callable
_MOST_NAMES = 100
"""Names of one function's annotations that are looked for, one after another."""


def written_function(function: Callable[..., Any]) -> Any:
    """What has the code and the annotations: behind partial functions, static methods and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = cast(Callable[..., Any], function.func)
        elif isinstance(function, (staticmethod, classmethod)):
            function = cast(Callable[..., Any], function.__func__)
        elif inspect.isroutine(function) or inspect.isclass(function) or not callable(function):
            return function
        else:
            function = type(function).__call__


def function_name(function: Callable[..., Any]) -> str:
    """The name under which a function was written; a callable object goes by its class."""
    while isinstance(function, functools.partial):
        function = cast(Callable[..., Any], function.func)
    return getattr(function, "__name__", None) or type(function).__name__


def docstring_of(function: Callable[..., Any]) -> str:
    """The docstring of a function; of a callable object that of its `__call__`, else of its class."""
    while isinstance(function, functools.partial):
        function = cast(Callable[..., Any], function.func)
    written = written_function(function)
    own = inspect.getdoc(written)
    if written is not function and not inspect.isroutine(function) and own == inspect.getdoc(object.__call__):
        own = None
    return own or inspect.getdoc(function) or ""


def bound_names(function: Callable[..., Any]) -> set[str]:
    """The parameters that a partial function has filled in by name."""
    names: set[str] = set()
    while isinstance(function, functools.partial):
        names |= function.keywords.keys()
        function = cast(Callable[..., Any], function.func)
    return names


def location_of(function: Any) -> str | None:
    """File and line of a function or class, as an editor opens them."""
    written = inspect.unwrap(written_function(function))
    code: CodeType | None = getattr(written, "__code__", None)
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}"
    try:
        file, (_, line) = inspect.getsourcefile(written), inspect.getsourcelines(written)
    except (OSError, TypeError):
        return None
    return f"{file}:{line}"


@contextmanager
def declaring(function: Any) -> Generator[None]:
    """Errors in the declaration of a function name its file and line."""
    try:
        yield
    except DeclarationError as error:
        if error.location is not None:
            raise
        raise DeclarationError(error.message, location=location_of(function)) from error.__cause__


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function, resolved."""
    written = written_function(function)
    if inspect.isclass(written):
        # What a class takes, where it is used as a function.
        written = cast(Any, written).__init__
    try:
        hints = get_type_hints(written, include_extras=True)
    except NameError as error:
        hints = _hints_with_more_names(function, written, error)
    except (TypeError, SyntaxError, AttributeError) as error:
        raise _unreadable(function, str(error)) from error
    return {name: portable_type(hint) for name, hint in hints.items()}


def portable_type(hint: Any) -> Any:
    """The annotation with every `typing.TypedDict` as one of typing_extensions, which pydantic needs before 3.12."""
    if sys.version_info >= (3, 12):
        return hint
    if is_typeddict(hint):
        return _portable_dict(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if not arguments or origin in (Literal, _CALLABLE):
        return hint
    if origin is Annotated:
        inner = portable_type(arguments[0])
        return hint if inner is arguments[0] else Annotated[(inner, *arguments[1:])]  # pyright: ignore[reportInvalidTypeForm]
    made = tuple(portable_type(each) for each in arguments)
    if all(new is old for new, old in zip(made, arguments, strict=True)):
        return hint
    return Union[made] if origin in (Union, types.UnionType) else origin[made]  # noqa: UP007


@functools.cache
def _portable_dict(written: Any) -> Any:
    import typing_extensions

    if type(written).__module__ != "typing":
        return written
    fields: dict[str, Any] = {}
    for name, hint in get_type_hints(written, include_extras=True).items():
        is_marked = get_origin(hint) in (Required, NotRequired)
        is_required = get_origin(hint) is Required if is_marked else name in written.__required_keys__
        bare = portable_type(get_args(hint)[0] if is_marked else hint)
        fields[name] = typing_extensions.Required[bare] if is_required else typing_extensions.NotRequired[bare]
    make: Any = typing_extensions.TypedDict
    made = make(written.__name__, fields)
    made.__doc__, made.__module__ = written.__doc__, written.__module__
    return made


def _hints_with_more_names(function: Callable[..., Any], written: Any, error: NameError) -> dict[str, Any]:
    names = _names_around(inspect.unwrap(written))
    for _ in range(_MOST_NAMES):
        try:
            return get_type_hints(written, localns=names, include_extras=True)
        except NameError as missing:
            error = missing
            if error.name is None or error.name in names or not _import_for_checkers(written, error.name, names):
                break
        except (TypeError, SyntaxError, AttributeError) as wrong:
            raise _unreadable(function, str(wrong)) from wrong
    raise _unreadable(
        function, f"{error}", f"Define or import `{error.name}` above the function, at the top of the module."
    ) from None


def _unreadable(function: Callable[..., Any], reason: str, advice: str = "") -> DeclarationError:
    text = f"The annotations of `{function_name(function)}` cannot be read: {reason.rstrip('.')}. {advice}"
    return DeclarationError(text.rstrip(), location=location_of(function))


def _names_around(written: Any) -> dict[str, Any]:
    """The local names of the functions and classes that a function is written in, where they still run."""
    code: CodeType | None = getattr(written, "__code__", None)
    if code is None:
        return {}
    names: dict[str, Any] = {}
    for frame in _frames():
        if code in frame.f_code.co_consts:
            # Nearer names win; the module's own are known to `get_type_hints`.
            names = {**frame.f_locals, **names}
            code = frame.f_code
    return {**inspect.getclosurevars(written).nonlocals, **names} if inspect.isfunction(written) else names


def _frames() -> Iterator[FrameType]:
    frame = inspect.currentframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def _import_for_checkers(written: Any, name: str, names: dict[str, Any]) -> bool:
    """Import a name as its module does under `if TYPE_CHECKING:`; False if it does not, or if that fails."""
    module = sys.modules.get(getattr(written, "__module__", ""))
    path = getattr(module, "__file__", None)
    if module is None or path is None:
        return False
    statement = _checked_imports(path).get(name)
    if statement is None:
        return False
    found: dict[str, Any] = dict(vars(module))
    try:
        exec(compile(ast.Module([statement], []), path, "exec"), found)
    except ImportError:
        return False
    names[name] = found[name]
    return True


@functools.cache
def _checked_imports(path: str) -> Mapping[str, ast.stmt]:
    """The imports of a file under `if TYPE_CHECKING:`, by the names that they define."""
    try:
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return {}
    found: dict[str, ast.stmt] = {}
    for block in ast.walk(tree):
        if isinstance(block, ast.If) and ast.unparse(block.test).rpartition(".")[2] == "TYPE_CHECKING":
            for statement in block.body:
                if isinstance(statement, (ast.Import, ast.ImportFrom)):
                    for alias in statement.names:
                        found[(alias.asname or alias.name).partition(".")[0]] = statement
    return found
