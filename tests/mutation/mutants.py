"""Small semantic mutants of a module: one changed condition, constant, operand, argument or statement each."""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE,),
    ast.LtE: (ast.Lt,),
    ast.Gt: (ast.GtE,),
    ast.GtE: (ast.Gt,),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
COMPUTED: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
    ast.FloorDiv: ast.Mult(),
}
UNSWAPPED = ("isinstance", "getattr", "hasattr", "setattr", "cast", "min", "max")
"""Calls whose arguments have no order, or one that no mistake of a programmer's would turn around."""
OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any"}
DEFAULTS: dict[str, tuple[object, ...]] = {"bool": (True, False), "int": (0,), "float": (0.0,), "str": ("",)}
SHOWN_MAX = 70


@dataclass(frozen=True)
class Mutant:
    """One change. `name`: the function, the code before and after; it stays the same while this code does. `function`:
    the innermost around it, empty outside of all. `begin`, `end`: the bytes of the source that `code` replaces.
    """

    name: str
    function: str
    line: int
    begin: int
    end: int
    code: str

    def of(self, source: bytes) -> bytes:
        return source[: self.begin] + self.code.encode() + source[self.end :]


def mutants(source: bytes) -> list[Mutant]:
    """All mutants of a module in the order of its lines; two of one name are numbered."""
    found = _Finder(source)
    found.visit(ast.parse(source))
    counts: Counter[str] = Counter()
    named = []
    for mutant in sorted(found.mutants, key=lambda m: (m.begin, m.end, m.code)):
        counts[mutant.name] += 1
        nth = counts[mutant.name]
        name = mutant.name if nth == 1 else f"{mutant.name} ({nth})"
        named.append(Mutant(name, mutant.function, mutant.line, mutant.begin, mutant.end, mutant.code))
    return named


class _Finder(ast.NodeVisitor):
    """Walks a module; leaves out annotations, decorators, f-strings, texts, assertions and the bodies of protocols."""

    def __init__(self, source: bytes) -> None:
        self.mutants: list[Mutant] = []
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._where: list[str] = []
        self._function = ""
        self._assigned: list[Counter[str]] = []
        self._returns: list[str] = []
        self._last: set[ast.stmt] = set()

    # Places and changes.

    def _change(self, node: ast.expr | ast.stmt, after: ast.AST | str, *, before: str = "") -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        code = after if isinstance(after, str) else ast.unparse(after)
        name = f"{'.'.join(self._where) or 'module'}: {before or _short(ast.unparse(node))} → {_short(code)}"
        if isinstance(node, ast.expr):
            code = f"({code})"
        self.mutants.append(Mutant(name, self._function, node.lineno, begin, end, code))

    def _block(self, node: ast.stmt, body: list[ast.stmt], before: str, after: str) -> None:
        """The statement gives way to its own body."""
        indent = " " * node.col_offset
        lines = "\n".join(ast.unparse(part) for part in body).splitlines()
        self._change(node, f"\n{indent}".join(lines), before=before)
        last = self.mutants.pop()
        name = f"{'.'.join(self._where) or 'module'}: {before} → {after}"
        self.mutants.append(Mutant(name, last.function, last.line, last.begin, last.end, last.code))

    # What is left out.

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass

    def visit_Assert(self, node: ast.Assert) -> None:
        pass

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if any(ast.unparse(base).split("[")[0] in ("Protocol", "NamedTuple") for base in node.bases):
            return
        self._where.append(node.name)
        for part in node.body:
            self.visit(part)
        self._where.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._where.append(node.name)
        self._assigned.append(Counter(_assigned(node)))
        self._last |= set(_last(node.body))
        self._returns.append("" if node.returns is None else ast.unparse(node.returns))
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        outer, self._function = self._function, ".".join(self._where)
        for part in node.body:
            self.visit(part)
        self._function = outer
        self._returns.pop()
        self._assigned.pop()
        self._where.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._change(node, "pass")

    # Conditions.

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) == "TYPE_CHECKING":
            return
        self._condition(node.test, "if")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._change(node, node.body)
        self._change(node, node.orelse)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        if not isinstance(node.test, ast.Constant):
            self._change(node.test, "False", before=f"while {_short(ast.unparse(node.test))}")
        self.generic_visit(node)

    def _condition(self, test: ast.expr, word: str) -> None:
        for value in ("True", "False"):
            self._change(test, value, before=f"{word} {_short(ast.unparse(test))}")

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._change(test, "True", before=f"… if {_short(ast.unparse(test))}")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for n, op in enumerate(node.ops):
            for other in COMPARED[type(op)]:
                ops = [*node.ops[:n], other(), *node.ops[n + 1 :]]
                self._change(node, ast.Compare(node.left, ops, node.comparators))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._change(node, ast.BoolOp(other, node.values))
        for n in range(len(node.values)):
            rest = node.values[:n] + node.values[n + 1 :]
            self._change(node, rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub):
            self._change(node, node.operand)
        self.generic_visit(node)

    # Values.

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._change(node, str(not value))
        elif isinstance(value, int):
            self._change(node, str(value + 1))
            if value > 0:
                self._change(node, str(value - 1))
        elif isinstance(value, float):
            self._change(node, repr(value * 2 if value else 1.0))

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = any(
            isinstance(part, ast.Constant | ast.JoinedStr) and _is_text(part) for part in (node.left, node.right)
        )
        if type(node.op) in COMPUTED and not texts:
            self._change(node, ast.BinOp(node.left, COMPUTED[type(node.op)], node.right))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in OPPOSITES:
            self._change(node, ast.Call(ast.Name(OPPOSITES[node.func.id]), node.args, node.keywords))
        told = ast.unparse(node.func)
        plain = not any(isinstance(arg, ast.Starred) for arg in node.args)
        if 2 <= len(node.args) <= 4 and plain and told not in UNSWAPPED:
            self._change(node, ast.Call(node.func, [node.args[1], node.args[0], *node.args[2:]], node.keywords))
        self.generic_visit(node)

    # Statements.

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        self._change(node, "pass")
        call = node.value
        called = isinstance(call, ast.Call) and len(call.args) == 2 and call.func
        if isinstance(call, ast.Call) and isinstance(called, ast.Attribute) and called.attr == "setdefault":
            self._change(
                node, f"{ast.unparse(called.value)}[{ast.unparse(call.args[0])}] = {ast.unparse(call.args[1])}"
            )
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        def can_go(target: ast.expr) -> bool:
            if isinstance(target, ast.Name):
                return bool(self._assigned) and self._assigned[-1][target.id] > 1
            return isinstance(target, ast.Attribute | ast.Subscript)

        if self._where and self._where[-1] != "__init__" and all(map(can_go, node.targets)):
            self._change(node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._change(node, "pass")
        self.visit(node.value)

    def visit_Delete(self, node: ast.Delete) -> None:
        self._change(node, "pass")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._change(node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._change(node, "pass")

    def visit_Return(self, node: ast.Return) -> None:
        empty = node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
        if not (empty and node in self._last):
            self._change(node, "pass")
        kind = self._returns[-1]
        for value in DEFAULTS.get(kind, (None,) if kind.endswith("| None") else ()):
            if node.value is not None and ast.unparse(node.value) != repr(value):
                self._change(node, f"return {value!r}")
        self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        if all(item.optional_vars is None for item in node.items):
            self._block(node, node.body, f"with {_short(', '.join(map(ast.unparse, node.items)))}", "without")
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if isinstance(node.type, ast.Tuple):
            for n in range(len(node.type.elts)):
                rest = node.type.elts[:n] + node.type.elts[n + 1 :]
                self._change(node.type, ast.Tuple(rest, ast.Load()), before=f"except {ast.unparse(node.type)}")
        for part in node.body:
            self.visit(part)


def _assigned(node: ast.AST) -> Iterator[str]:
    """The names that a function gives a value to, its parameters among them, each as often as it does."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, ast.arg):
            yield part.arg


def _last(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements after which a function is over: to return nothing there is what happens anyway."""
    last = body[-1]
    yield last
    if isinstance(last, ast.If | ast.With | ast.AsyncWith | ast.Try):
        inner = [last.body, *(handler.body for handler in getattr(last, "handlers", ())), getattr(last, "orelse", [])]
        for block in inner:
            if block:
                yield from _last(block)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _short(code: str) -> str:
    line = " ".join(code.split())
    return line if len(line) <= SHOWN_MAX else f"{line[: SHOWN_MAX // 2]} … {line[-SHOWN_MAX // 2 :]}"
