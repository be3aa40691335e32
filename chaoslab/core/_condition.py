"""Conditions on a call's arguments, such as `amount > 100 and currency == "EUR"`: parsed once, asked of each call.

    condition   or, and, not and parentheses, as in Python, around: comparison, path, has path
    comparison  operand (== != < <= > >= in contains) operand
    operand     path, value, or list of values, as in ["Oslo", "Rome"]
    value       number, text in " or ' with the escapes \\\\ \\" \\' \\n \\t, true, false, null
    path        items[0].price, options["strange key"]; from $, all the arguments: $["strange key"], $.in

A bare path holds if its value is truthy, `has path` if there is a value, null too. A comparison with a missing value
is false, `!=` too: `city != "Oslo"` is about calls that name another city, not about those that have no city. Its
`not` is true. A comparison with NaN is false in the same way.

Kinds are those of JSON; a tuple is a list. Values of different kinds are unequal, and only two numbers or two texts
have an order. A boolean is no number. A value of any other kind is truthy and equals nothing. `in` looks for a list's
entry or a text's part; `contains` is `in` the other way round.
"""

import math
import operator
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any, Generic, NamedTuple, TypeVar

from chaoslab.base.jsonable import cut_text

# Python's `ast` cannot parse this: an argument may have a keyword's name (`from == "Oslo"`), `$`, `has` and `contains`
# are no Python, and an error names the column of what was typed.
# What a person types fits: the bounds keep the parser's recursion, and the check at each call, small.
TEXT_MAX = 500
DEPTH_MAX = 20
"""The most parentheses and `not` within each other."""
ENTRIES_MAX = 100
NUMBER_MAX = 50
"""The most characters of a number."""
Scalar = None | bool | int | float | str


@dataclass(frozen=True)
class Condition:
    """A condition. `text` is its source; `str` gives the canonical text, which means the same."""

    text: str

    def __post_init__(self) -> None:
        _ = self._read

    def __str__(self) -> str:
        return self._read.text

    def __reduce__(self) -> tuple[Any, ...]:
        # What was parsed are functions, which cannot be pickled.
        return Condition, (self.text,)

    def holds(self, arguments: Any) -> bool:
        """Tells if the condition holds for a call's arguments, which may be any value. It raises nothing, but for what
        the methods of a subclass of str, list or the like raise."""
        return self._read.of(arguments)

    @cached_property
    def _read(self) -> "_Part[bool]":
        return _Parser(self.text).whole()


def parse(text: str) -> Condition:
    """The condition that a text states. Raises ValueError: it states none; one line with the column (from 1), what is
    there, and what would be right."""
    return Condition(text)


class _Kinds(dict[type, int]):
    """Kinds by type. A subclass is of its base's kind."""

    def __missing__(self, subclass: type) -> int:
        return next(self[base] for base in subclass.__mro__ if base in self)


_MISSING = object()
_OTHER, _NULL, _FLAG, _NUMBER, _TEXT, _LIST, _OBJECT = range(7)
_KINDS = _Kinds({object: _OTHER, type(None): _NULL, bool: _FLAG, int: _NUMBER, float: _NUMBER, str: _TEXT})
_KINDS |= {list: _LIST, tuple: _LIST, dict: _OBJECT}
_ORDERED = (_NUMBER, _TEXT)


def _is_equal(left: Any, right: Any) -> bool:
    kind = _KINDS[type(left)]
    if kind == _OTHER or kind != _KINDS[type(right)]:
        return False
    # bool(), since the == of a subclass may return anything.
    return bool(left == right) if kind < _LIST else _is_alike(left, right)


def _is_alike(left: Any, right: Any) -> bool:
    """Equality as JSON has it: [1] is not [true]. Each pair is followed once, so that depth and cycles do no harm."""
    pairs, compared_ids = [(left, right)], set()
    while pairs:
        left, right = pairs.pop()
        if (kind := _KINDS[type(left)]) < _LIST:
            if not _is_equal(left, right):
                return False
        elif kind != _KINDS[type(right)] or len(left) != len(right):
            return False
        elif (pair := (id(left), id(right))) not in compared_ids:
            compared_ids.add(pair)
            if kind == _LIST:
                pairs += zip(left, right, strict=False)
            else:  # copied at once: another thread of the agent's may change it meanwhile
                pairs += [(entry, dict.get(right, key, _MISSING)) for key, entry in list(dict.items(left))]
    return True


def _is_unequal(left: Any, right: Any) -> bool:
    return not (_is_equal(left, right) or _incomparable(left) or _incomparable(right))


def _incomparable(value: Any) -> bool:
    return value is _MISSING or (isinstance(value, float) and math.isnan(value))


def _is_within(item: Any, container: Any) -> bool:
    if (kind := _KINDS[type(container)]) == _TEXT:
        return _KINDS[type(item)] == _TEXT and item in container
    return kind == _LIST and any(map(partial(_is_equal, item), container))


def _build_ordering(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(left: Any, right: Any) -> bool:
        kind = _KINDS[type(left)]
        return kind in _ORDERED and kind == _KINDS[type(right)] and bool(compare(left, right))

    return holds


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"==": _is_equal, "!=": _is_unequal, "in": _is_within}
_COMPARISONS["contains"] = lambda whole, part: _is_within(part, whole)
for _sign, _compare in (("<", operator.lt), ("<=", operator.le), (">", operator.gt), (">=", operator.ge)):
    _COMPARISONS[_sign] = _build_ordering(_compare)
_VALUES: dict[str, Scalar] = {"true": True, "false": False, "null": None}
_MEANT_VALUES = {"True": "'true'", "False": "'false'", "None": "'null'"}
_MEANT_JOINTS = {"&&": "'and'", "||": "'or'", "AND": "'and'", "OR": "'or'"}
_MEANT_SIGNS = {"=": "'=='", "<>": "'!='"} | _MEANT_JOINTS
_RESERVED = {"or", "and", "not", "has", *_COMPARISONS, *_VALUES, *_MEANT_VALUES}
# Possessive (*+), so that no text makes it backtrack.
_NAME = re.compile(r"[^\W\d]\w*+")
_ESCAPES = {"\\": "\\", '"': '"', "'": "'", "n": "\n", "t": "\t"}
_ESCAPED = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"})

T = TypeVar("T")


class _Part(NamedTuple, Generic[T]):
    """A part of a condition: its canonical text, and a function from the arguments to its value or truth. `joint`: the
    word between its parts, if it has several. `fixed`: its value if that does not depend on the arguments, in a
    tuple."""

    text: str
    of: Callable[[Any], T]
    joint: str = ""
    fixed: tuple[T] | None = None


def _path(steps: list[str | int]) -> _Part[Any]:
    places = [f".{step}" if _is_name(step) else f"[{_write_scalar(step)}]" for step in steps]
    bare = bool(steps) and _is_name(steps[0]) and steps[0] not in _RESERVED
    text = "".join(places)[1:] if bare else "".join(["$", *places])
    if len(steps) == 1:
        step = steps[0]
        if isinstance(step, str):
            # A plain dict, the usual case, needs no look at its bases: this is asked at every call.
            return _Part(text, lambda args: args.get(step, _MISSING) if type(args) is dict else _get_step(args, step))
        return _Part(text, lambda arguments: _get_step(arguments, step))
    return _Part(text, lambda arguments: reduce(_get_step, steps, arguments))


def _is_name(step: str | int) -> bool:
    return isinstance(step, str) and _NAME.fullmatch(step) is not None


def _get_step(value: Any, step: str | int) -> Any:
    """The value at a key of an object or at a position in a list."""
    if isinstance(step, str):
        # dict's own get, since that of a subclass is the user's code.
        return dict.get(value, step, _MISSING) if issubclass(type(value), dict) else _MISSING
    # A slice, which is empty beyond the end, where an index raises.
    entries = value[step : step + 1] if issubclass(type(value), list | tuple) else ()
    return entries[0] if entries else _MISSING


def _write_scalar(value: Scalar | tuple[Scalar, ...]) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_write_scalar, value))}]"
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPED)}"'
    # By identity, since 1 equals True.
    return next((word for word, constant in _VALUES.items() if constant is value), repr(value))


def _build_comparison(left: _Part[Any], sign: str, right: _Part[Any]) -> _Part[bool]:
    first, compare, second = left.of, _COMPARISONS[sign], right.of
    text = f"{left.text} {sign} {right.text}"
    if right.fixed is not None:
        (value,) = right.fixed
        return _Part(text, lambda arguments: compare(first(arguments), value))
    return _Part(text, lambda arguments: compare(first(arguments), second(arguments)))


def _present(path: _Part[Any]) -> _Part[bool]:
    return _Part(f"has {path.text}", lambda arguments: path.of(arguments) is not _MISSING)


def _truthy(path: _Part[Any]) -> _Part[bool]:
    def holds(arguments: Any) -> bool:
        value = path.of(arguments)
        return value is not _MISSING and (_KINDS[type(value)] == _OTHER or bool(value))

    return _Part(path.text, holds)


def _build_negation(operand: _Part[bool]) -> _Part[bool]:
    test = operand.of
    return _Part(
        f"not ({operand.text})" if operand.joint else f"not {operand.text}", lambda arguments: not test(arguments)
    )


def _build_joint(word: str, parts: list[_Part[bool]]) -> _Part[bool]:
    enough, tests = word == "or", [operand.of for operand in parts]

    def holds(arguments: Any) -> bool:
        for test in tests:  # faster than any() and all()
            if test(arguments) is enough:
                return enough
        return not enough

    texts = (
        f"({operand.text})" if operand.joint and (word, operand.joint) != ("or", "and") else operand.text
        for operand in parts
    )
    return _Part(f" {word} ".join(texts), holds, word)


class _Token(NamedTuple):
    kind: str
    text: str
    column: int

    def wrong(self, right: str) -> ValueError:
        actual = f"'{cut_text(self.text, 20)}'" if self.text else "the end"
        return ValueError(f"column {self.column} has {actual}, where {right} should stand")


_TOKEN = re.compile(
    rf"""[ \t\r\n]*+(?:
    (?P<number>-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)|(?P<word>{_NAME.pattern})|
    (?P<text>"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')|(?P<open>["'].*)|
    (?P<sign>==|!=|<=|>=|<>|&&|\|\||.)|(?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)


class _Parser:
    """Recursive descent, which DEPTH_MAX bounds. `bare`: the last condition read is a bare path."""

    def __init__(self, text: str) -> None:
        if len(text) > TEXT_MAX:
            beyond = _Token("sign", text[TEXT_MAX], TEXT_MAX + 1)
            raise beyond.wrong(f"the end after {TEXT_MAX} characters")
        self.text, self.bare = text, False
        matches = ((str(match.lastgroup), match) for match in _TOKEN.finditer(text))
        self.tokens = (_Token(kind, match[kind], match.start(kind) + 1) for kind, match in matches)
        self.now = next(self.tokens)

    def wrong(self, right: str) -> ValueError:
        return self.now.wrong(right)

    def unfinished(self, closing: str) -> ValueError:
        meant, right = (_MEANT_SIGNS, "an operator") if self.bare else (_MEANT_JOINTS, "'and', 'or'")
        return self.wrong(meant.get(self.now.text, f"{right} or {closing}"))

    def step(self) -> _Token:
        # The end stays: what breaks off is told there.
        token, self.now = self.now, next(self.tokens, self.now)
        return token

    def take(self, *texts: str) -> str:
        """Steps over the token if it is one of the texts, and returns it; else an empty text."""
        return self.step().text if self.now.text in texts else ""

    def whole(self) -> _Part[bool]:
        condition = self.joined(0)
        if self.now.text:
            raise self.unfinished("the end")
        return condition

    def joined(self, depth: int, word: str = "or") -> _Part[bool]:
        parts: list[_Part[bool]] = []
        while not parts or self.take(word):
            parts.append(self.joined(depth, "and") if word == "or" else self.one(depth))
        return _build_joint(word, parts) if len(parts) > 1 else parts[0]

    def one(self, depth: int) -> _Part[bool]:
        if depth == DEPTH_MAX and self.now.text in ("not", "("):
            raise self.wrong(f"no 'not' or '(' within {DEPTH_MAX} others")
        if self.take("not"):
            return _build_negation(self.one(depth + 1))
        if self.take("("):
            condition = self.joined(depth + 1)
            if not self.take(")"):
                raise self.unfinished("')'")
        elif self.take("has"):
            condition = _present(self.path())
        else:
            value = self.now.kind in ("number", "text") or self.now.text in ("[", *_VALUES)
            operand_left = self.operand("'not'" if self.now.text == "!" else "a condition")
            if not (sign := self.take(*_COMPARISONS)):
                if value:
                    raise self.wrong(_MEANT_SIGNS.get(self.now.text, "an operator"))
                self.bare = True
                return _truthy(operand_left)
            condition = _build_comparison(operand_left, sign, self.operand("a value"))
        self.bare = False
        return condition

    def operand(self, right: str) -> _Part[Any]:
        if self.now.text == "$" or (self.now.kind == "word" and self.now.text not in _RESERVED):
            return self.path()
        value = self.entries() if self.take("[") else self.scalar(right)
        return _Part(_write_scalar(value), lambda _: value, fixed=(value,))

    def entries(self) -> tuple[Scalar, ...]:
        entries: list[Scalar] = []
        while not self.take("]"):
            if len(entries) == ENTRIES_MAX:
                raise self.wrong(f"']' after {ENTRIES_MAX} entries")
            if entries and not self.take(","):
                raise self.wrong("',' or ']'")
            entries.append(self.scalar("a number, a text, true, false or null"))
        return tuple(entries)

    def scalar(self, right: str) -> Scalar:
        kind, text, column = self.now
        if kind == "text":
            return re.sub(r"\\(.)", lambda m: self.unescaped(m, column + 1), self.step().text[1:-1], flags=re.DOTALL)
        if text in _VALUES:
            return _VALUES[self.step().text]
        if kind != "number":
            raise self.wrong("a text with its closing quote" if kind == "open" else _MEANT_VALUES.get(text, right))
        if len(text) > NUMBER_MAX:
            raise self.wrong(f"a number of at most {NUMBER_MAX} characters")
        number = int(text) if text.lstrip("-").isdecimal() else float(text)
        # No float holds it, and it would equal any other such number.
        if number in (math.inf, -math.inf):
            raise self.wrong("a number below 1.8e308")
        self.step()
        return number

    def unescaped(self, match: re.Match[str], start: int) -> str:
        if match[1] not in _ESCAPES:
            raise _Token("text", match[0], start + match.start()).wrong(r"""\\, \", \', \n or \t""")
        return _ESCAPES[match[1]]

    def path(self) -> _Part[Any]:
        steps: list[str | int] = [] if self.take("$") else [self.name("a path", _RESERVED)]
        while sign := self.take(".", "["):
            if sign == ".":
                steps.append(self.name("a name"))
                continue
            if self.now.kind not in ("text", "open") and not self.now.text.isdecimal():
                raise self.wrong("a position from 0 or a key in quotes")
            key = self.scalar("")
            steps.append(key if isinstance(key, str) else int(key or 0))
            if not self.take("]"):
                raise self.wrong("']'")
        return _path(steps)

    def name(self, right: str, reserved: Collection[str] = ()) -> str:
        if self.now.kind != "word" or self.now.text in reserved:
            raise self.wrong(right)
        return self.step().text
