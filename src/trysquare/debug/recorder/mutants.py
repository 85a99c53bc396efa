"""Small changes of one statement, and how they are made in a running program without loading it again."""

from __future__ import annotations

import ast
import copy
import gc
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, cast

from trysquare.debug.recorder.syntax import Module, Statement, bodies

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt, ast.GtE),
    ast.Gt: (ast.GtE, ast.LtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt, ast.LtE),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE),
    ast.NotEq: (ast.Eq, ast.Lt, ast.Gt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_OPERATORS: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add, ast.Div),
    ast.Mult: (ast.Div, ast.FloorDiv, ast.Add, ast.Pow),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mult, ast.Mod),
    ast.Mod: (ast.FloorDiv, ast.Mult, ast.Div),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr, ast.BitXor),
    ast.BitOr: (ast.BitAnd, ast.BitXor),
    ast.BitXor: (ast.BitAnd, ast.BitOr),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
}
_OPPOSITES = (
    ("min", "max"), ("any", "all"), ("lower", "upper"), ("append", "extend"), ("startswith", "endswith"),
    ("lstrip", "rstrip"), ("strip", "lstrip"), ("strip", "rstrip"), ("find", "rfind"), ("index", "rindex"),
    ("split", "rsplit"), ("partition", "rpartition"), ("floor", "ceil"), ("keys", "values"), ("add", "discard"),
    ("encode", "decode"), ("popleft", "pop"), ("update", "setdefault"), ("union", "intersection"),
)  # fmt: skip
_MAX_NAMES = 5
_MAX_TEXTS = 4
_LONG = 4
"""Lines of a statement after which its changes are spread over its lines, and not over its parts."""


class Mutation:
    """One change of a syntax tree, which can be made and taken back."""

    def __init__(
        self, node: Any, field: str, new: Any, what: str, line: int, *, index: int | None = None, removes: bool = False
    ) -> None:
        self.node = node
        self._field = field
        self._index = index
        self._new = new
        self._old = getattr(node, field) if index is None else getattr(node, field)[index]
        self.what = what
        self.removes = removes
        """Whether it only leaves something out."""
        self.line = line

    def make(self) -> None:
        self._put(self._new)

    def take_back(self) -> None:
        self._put(self._old)

    def _put(self, value: Any) -> None:
        if self._index is None:
            setattr(self.node, self._field, value)
        else:
            getattr(self.node, self._field)[self._index] = value


def mutations(statement: Statement, module: Module) -> Iterator[Mutation]:
    """Changes of a statement, the likeliest first."""
    found = list(_mutations(statement, module))
    rounds: dict[int, int] = {}
    ranked: list[tuple[int, int, Mutation]] = []
    for number, each in enumerate(found):
        # One change of each node before the second of any; of a long statement, such as a table, of each line.
        key = each.line if statement.last - statement.first > _LONG else id(each.node)
        rounds[key] = rounds.get(key, -1) + 1
        ranked.append((rounds[key], number, each))
    yield from (each for _, _, each in sorted(ranked, key=lambda each: each[:2]))


def _mutations(statement: Statement, module: Module) -> Iterator[Mutation]:
    for part in statement.parts():
        yield from _of_node(part, statement)
    yield from _of_statement(statement, module)
    for part in statement.parts():
        yield from _of_names(part, statement)
        yield from _of_texts(part, statement)


def _of_node(part: Any, statement: Statement) -> Iterator[Mutation]:
    line = getattr(part, "lineno", statement.line)
    if isinstance(part, (ast.Compare, ast.BinOp, ast.AugAssign, ast.BoolOp, ast.UnaryOp)):
        yield from _of_operator(part, statement, line)
    elif isinstance(part, ast.Constant):
        for value in _constants(part.value):
            yield Mutation(part, "value", value, f"{part.value!r} -> {value!r}", line)
    elif isinstance(part, (ast.Slice, ast.Subscript)):
        yield from _of_slice(part, line)
    elif isinstance(part, ast.Call):
        yield from _of_call(part, statement, line)
    elif isinstance(part, (ast.comprehension, ast.IfExp)):
        yield from _of_conditions(part, statement)
    elif isinstance(part, (ast.Attribute, ast.Name)) and isinstance(part.ctx, ast.Load):
        field = "id" if isinstance(part, ast.Name) else "attr"
        for new in _opposites(getattr(part, field)):
            yield Mutation(part, field, new, f"{getattr(part, field)} -> {new}", line)


def _of_operator(
    part: ast.Compare | ast.BinOp | ast.AugAssign | ast.BoolOp | ast.UnaryOp, statement: Statement, line: int
) -> Iterator[Mutation]:
    if isinstance(part, ast.Compare):
        for index, operator in enumerate(part.ops):
            for new in _COMPARISONS.get(type(operator), ()):
                yield Mutation(part, "ops", new(), f"{_sign(operator)} -> {_sign(new())}", line, index=index)
    elif isinstance(part, ast.BoolOp):
        other, what = (ast.Or(), "and -> or") if isinstance(part.op, ast.And) else (ast.And(), "or -> and")
        yield Mutation(part, "op", other, what, line)
        for value in part.values if len(part.values) == 2 else ():
            yield from _replaced(part, value, statement)
    elif isinstance(part, ast.UnaryOp):
        yield from _replaced(part, part.operand, statement)
    else:
        for new in _OPERATORS.get(type(part.op), ()):
            yield Mutation(part, "op", new(), f"{_sign(part.op)} -> {_sign(new())}", line)
        if isinstance(part, ast.BinOp):
            yield from _replaced(part, part.left, statement)
            yield from _replaced(part, part.right, statement)


def _of_conditions(part: ast.comprehension | ast.IfExp, statement: Statement) -> Iterator[Mutation]:
    if isinstance(part, ast.IfExp):
        swapped = copy.copy(part)
        swapped.body, swapped.orelse = part.orelse, part.body
        yield from _replaced(part, swapped, statement)
        return
    for index, test in enumerate(part.ifs):
        yield Mutation(part, "ifs", _negated(test), f"not ({_text(test)})", test.lineno, index=index)
    if part.ifs:
        yield Mutation(part, "ifs", [], "without its condition", part.ifs[0].lineno)


def _of_call(part: ast.Call, statement: Statement, line: int) -> Iterator[Mutation]:
    arguments = part.args
    for index in range(len(arguments) - 1):
        swapped = [*arguments]
        swapped[index], swapped[index + 1] = swapped[index + 1], swapped[index]
        yield Mutation(part, "args", swapped, "arguments swapped", line)
    for index, keyword in enumerate(part.keywords):
        kept = [*part.keywords[:index], *part.keywords[index + 1 :]]
        yield Mutation(part, "keywords", kept, f"without {keyword.arg or '**'}", line)
    if len(arguments) == 1 and not part.keywords and not isinstance(arguments[0], ast.Starred):
        yield from _replaced(part, arguments[0], statement)
    if len(arguments) > 1:
        yield Mutation(part, "args", arguments[:-1], "without its last argument", line)
    if isinstance(part.func, ast.Attribute) and not arguments and not part.keywords:
        yield from _replaced(part, part.func.value, statement)


def _of_slice(part: ast.Slice | ast.Subscript, line: int) -> Iterator[Mutation]:
    if isinstance(part, ast.Subscript):
        for step in (1, -1) if not isinstance(part.slice, (ast.Slice, ast.Constant)) else ():
            yield Mutation(part, "slice", _plus(part.slice, step), f"index {step:+d}", line)
        return
    for field in ("lower", "upper"):
        bound: ast.expr | None = getattr(part, field)
        if bound is not None:
            yield Mutation(part, field, _plus(bound, 1), f"{field} bound + 1", line)
            yield Mutation(part, field, _plus(bound, -1), f"{field} bound - 1", line)
            yield Mutation(part, field, None, f"without its {field} bound", line)
    if part.upper is None:
        yield Mutation(part, "upper", ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)), "[…:-1]", line)
    if part.lower is None:
        yield Mutation(part, "lower", ast.Constant(value=1), "[1:…]", line)


def _of_statement(statement: Statement, module: Module) -> Iterator[Mutation]:
    node: Any = statement.node
    line = statement.line
    if isinstance(node, (ast.If, ast.While)):
        yield Mutation(node, "test", _negated(node.test), f"not ({_text(node.test)})", line)
    if isinstance(node, ast.Assert):
        yield Mutation(node, "test", ast.Constant(value=True), "no assertion", line)
    found = _place_of(statement, module)
    if found is None:
        return
    body, index = found
    holder = _Body(body)
    others: list[tuple[ast.stmt, str]] = []
    if isinstance(node, ast.Continue):
        others.append((ast.Break(), "continue -> break"))
    if isinstance(node, ast.Break):
        others.append((ast.Continue(), "break -> continue"))
    if isinstance(node, ast.Return) and node.value is not None:
        others.append((ast.Return(value=_negated(node.value)), "the opposite returned"))
    if isinstance(node, ast.Pass):
        # Something is missing here: what the function does elsewhere may be what should be done.
        others += [(ast.Continue(), "continue"), (ast.Break(), "break"), (ast.Return(value=None), "return")]
        others += _siblings(statement)
    if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Continue, ast.Break, ast.Return, ast.If)):
        others.append((ast.Pass(), "without it"))
    for new, what in others:
        removes = isinstance(new, ast.Pass)
        yield Mutation(holder, "body", _located(new, node), what, line, index=index, removes=removes)


def _siblings(statement: Statement) -> list[tuple[ast.stmt, str]]:
    near = sorted(statement.scope.statements, key=lambda each: abs(each.line - statement.line))
    simple = [each.node for each in near if isinstance(each.node, (ast.Expr, ast.Assign, ast.AugAssign, ast.Return))]
    return [(copy.deepcopy(each), f"`{_text(each)}`") for each in simple[:_MAX_NAMES]]


def _of_names(part: Any, statement: Statement) -> Iterator[Mutation]:
    """Another name of the function in place of one; and a name in place of None that is returned or passed."""
    own = part.id if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load) else ""
    is_none = isinstance(part, ast.Constant) and part.value is None
    if not own and not is_none:
        return
    scope = statement.scope
    bound = [name for each in scope.statements for name in each.binds if each.line <= statement.line]
    known = [name for name in dict.fromkeys([*reversed(bound), *scope.parameters]) if name not in ("self", "cls")]
    if not scope.is_function or (own and own not in known):
        return
    for name in [each for each in known if each != own][:_MAX_NAMES]:
        new = ast.Name(id=name, ctx=ast.Load())
        yield from _replaced(part, new, statement)


def _of_texts(part: Any, statement: Statement) -> Iterator[Mutation]:
    """Another text or number of the function in place of one."""
    if not isinstance(part, ast.Constant) or isinstance(part.value, (bool, type(None))):
        return
    near = sorted(statement.scope.statements, key=lambda each: abs(each.line - statement.line))
    values = [
        each.value
        for other in near[:30]
        for each in other.parts()
        if isinstance(each, ast.Constant) and type(each.value) is type(part.value) and each.value != part.value
    ]
    for value in list(dict.fromkeys(values))[:_MAX_TEXTS]:
        yield Mutation(part, "value", value, f"{part.value!r} -> {value!r}", part.lineno)


def _constants(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return list(dict.fromkeys(each for each in (value - 1, value + 1, 0, 1, -value) if each != value))
    if isinstance(value, float):
        return [each for each in (-value, value + 1, value - 1, 0.0, 1.0) if each != value]
    if isinstance(value, str):
        return [""] if value else [" "]
    return []


def _replaced(part: ast.AST, new: ast.expr, statement: Statement) -> Iterator[Mutation]:
    """An expression in place of another, wherever that is."""
    what = f"{_text(part)} -> {_text(new)}"
    for parent in [statement.node, *statement.parts()]:
        for field, value in ast.iter_fields(parent):
            if value is part:
                yield Mutation(parent, field, _located(new, part), what, getattr(part, "lineno", statement.line))
                return
            if isinstance(value, list) and any(each is part for each in cast(list[Any], value)):
                index = next(i for i, each in enumerate(cast(list[Any], value)) if each is part)
                line = getattr(part, "lineno", statement.line)
                yield Mutation(parent, field, _located(new, part), what, line, index=index)
                return


def _negated(test: ast.expr) -> ast.expr:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    return _located(ast.UnaryOp(op=ast.Not(), operand=test), test)


def _plus(value: ast.expr, step: int) -> ast.expr:
    operator = ast.Add() if step > 0 else ast.Sub()
    return _located(ast.BinOp(left=value, op=operator, right=ast.Constant(value=abs(step))), value)


def _located(new: Any, old: Any) -> Any:
    for each in ast.walk(new):
        for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            if "lineno" in each._attributes and getattr(each, name, None) is None:
                setattr(each, name, getattr(old, name, 1))
    return new


def _opposites(name: str) -> list[str]:
    found = [pair[1 - pair.index(name)] for pair in _OPPOSITES if name in pair]
    return list(dict.fromkeys(found))


_SIGNS = {
    "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Eq": "==", "NotEq": "!=", "Is": "is", "IsNot": "is not",
    "In": "in", "NotIn": "not in", "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%",
    "Pow": "**", "BitAnd": "&", "BitOr": "|", "BitXor": "^", "LShift": "<<", "RShift": ">>", "Not": "not",
    "USub": "-", "UAdd": "+", "Invert": "~",
}  # fmt: skip


def _sign(operator: ast.AST) -> str:
    return _SIGNS.get(type(operator).__name__, type(operator).__name__)


def _text(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:39]}…"


class _Body:
    """A list of statements as the field of a node."""

    def __init__(self, body: list[ast.stmt]) -> None:
        self.body = body


def _place_of(statement: Statement, module: Module) -> tuple[list[ast.stmt], int] | None:
    outer: Any = statement.blocks[-1].node if statement.blocks else statement.scope.node
    for body in bodies(outer):
        for index, each in enumerate(body):
            if each is statement.node:
                return body, index
    return None


class CannotChange(Exception):
    """A change cannot be made in the running program."""


def compile_change(
    mutation: Mutation, statement: Statement, module: Module, *, is_run_at_import: bool = False
) -> Callable[[], None]:
    """Compile a change; the result makes it in this process."""
    mutation.make()
    try:
        if is_run_at_import:
            return _loaded_again(module)
        function = statement.scope.inner_function()
        if function is not None and function.node is not statement.node:
            return _function_change(_outermost(statement), module)
        return _binding_change(statement, module)
    except (SyntaxError, ValueError, TypeError) as error:
        raise CannotChange(str(error)) from None
    finally:
        mutation.take_back()


def _outermost(statement: Statement) -> list[ast.AST]:
    """The classes and functions around a statement, outermost first."""
    nodes: list[ast.AST] = []
    scope = statement.scope
    while scope.parent is not None:
        nodes.insert(0, scope.node)
        scope = scope.parent
    return nodes


def _compiled(nodes: list[ast.AST], module: Module) -> CodeType:
    """The code of a module that has only one function, within its classes."""
    inner: Any = nodes[-1]
    first_function = next(i for i, each in enumerate(nodes) if not isinstance(each, ast.ClassDef))
    inner = nodes[first_function]
    for outer in reversed(nodes[:first_function]):
        shell = copy.copy(cast(ast.ClassDef, outer))
        shell.body = [inner]
        inner = shell
    futures = [each for each in module.tree.body if isinstance(each, ast.ImportFrom) and each.module == "__future__"]
    tree = ast.Module(body=[*futures, inner], type_ignores=[])
    return compile(tree, module.file, "exec", dont_inherit=True)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _function_change(nodes: list[ast.AST], module: Module) -> Callable[[], None]:
    new: dict[tuple[str, int, int], CodeType] = {}
    for number, code in enumerate(_codes(_compiled(nodes, module))):
        new.setdefault((code.co_name, code.co_firstlineno, number if code.co_name.startswith("<") else 0), code)

    # Looked for once, and not in each copy of the process: to see all objects there would copy the whole memory.
    changing = [
        (each, code)
        for each in _functions_of(module)
        if (code := new.get((each.__code__.co_name, each.__code__.co_firstlineno, 0))) is not None
    ]

    def make() -> None:
        for each, code in changing:
            try:
                each.__code__ = code
            except ValueError as error:
                raise CannotChange(str(error)) from None
        if not changing:
            raise CannotChange("its function is not there")

    return make


def _functions_of(module: Module) -> list[FunctionType]:
    """The functions of a file that are there now."""
    if module.functions is None:
        # What is frozen is not among the objects that are listed.
        gc.unfreeze()
        functions = [each for each in gc.get_objects() if type(each) is FunctionType]
        gc.freeze()
        module.functions = [each for each in functions if each.__code__.co_filename == module.file]
    return module.functions


def _binding_change(statement: Statement, module: Module) -> Callable[[], None]:
    """A changed statement of a module or class, or changed default values of a function."""
    node = statement.node
    if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.FunctionDef, ast.AsyncFunctionDef)):
        raise CannotChange("it is no assignment")
    if isinstance(node, ast.AugAssign):
        raise CannotChange("it would be made twice")
    subject: Any = node
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        subject = copy.copy(node)
        subject.decorator_list = []
    futures = [each for each in module.tree.body if isinstance(each, ast.ImportFrom) and each.module == "__future__"]
    code = compile(ast.Module(body=[*futures, subject], type_ignores=[]), module.file, "exec", dont_inherit=True)
    path = [name for name in statement.scope.name.split(".") if name]

    def make() -> None:
        loaded = _loaded(module.file)
        owner: Any = loaded
        for name in path:
            owner = vars(owner).get(name)
            if not isinstance(owner, type):
                raise CannotChange("its class is not there")
        space = dict(vars(loaded)) if owner is loaded else {**vars(loaded), **vars(owner)}
        before = dict(space)
        exec(code, space)
        for name, value in space.items():
            if name in before and before[name] is not value:
                _rebind(owner, name, before[name], value)

    return make


def _loaded_again(module: Module) -> Callable[[], None]:
    """A change of what runs while a module is loaded: it runs again, and its values replace those of the first time."""
    code = compile(module.tree, module.file, "exec", dont_inherit=True)

    def make() -> None:
        loaded = _loaded(module.file)
        space = {name: value for name, value in vars(loaded).items() if name.startswith("__")}
        try:
            exec(code, space)
        except Exception as error:  # noqa: BLE001 - changed code may fail in any way
            raise CannotChange(str(error)) from None
        for name, value in space.items():
            old = vars(loaded).get(name)
            if name.startswith("__") or type(old) is not type(value):
                continue
            if isinstance(value, list):
                cast("list[Any]", old)[:] = value
            elif isinstance(value, (dict, set)):
                cast("dict[Any, Any]", old).clear()
                cast("dict[Any, Any]", old).update(cast(Any, value))
            elif not isinstance(value, (type, FunctionType, ModuleType)):
                _rebind(loaded, name, old, value)

    return make


def _loaded(file: str) -> ModuleType:
    for each in list(sys.modules.values()):
        if getattr(each, "__file__", None) == file:
            return each
    raise CannotChange("its module is not loaded")


def _rebind(owner: Any, name: str, old: Any, new: Any) -> None:
    """Give a name a new value, also where the old one was imported; a function gets its defaults only."""
    inner = getattr(old, "__wrapped__", old)
    inner = getattr(inner, "__func__", inner)
    if isinstance(inner, FunctionType) and isinstance(new, FunctionType):
        inner.__defaults__, inner.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
        return
    setattr(owner, name, new)
    for each in list(sys.modules.values()):
        if getattr(each, "__dict__", {}).get(name) is old:
            setattr(each, name, new)
