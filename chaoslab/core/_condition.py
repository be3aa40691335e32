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
        _ = self._parsed_condition

    def __str__(self) -> str:
        return self._parsed_condition.text

    def __reduce__(self) -> tuple[Any, ...]:
        # What was parsed are functions, which cannot be pickled.
        return Condition, (self.text,)

    def matches_arguments(self, arguments: Any) -> bool:
        """Tells if the condition holds for a call's arguments, which may be any value. It raises nothing, but for what
        the methods of a subclass of str, list or the like raise."""
        return self._parsed_condition.of(arguments)

    @cached_property
    def _parsed_condition(self) -> "_Part[bool]":
        return _Parser(self.text).parse_condition()


def parse_condition(text: str) -> Condition:
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
    return bool(left == right) if kind < _LIST else _is_deep_equal(left, right)


def _is_deep_equal(left: Any, right: Any) -> bool:
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
    return not (_is_equal(left, right) or _is_incomparable(left) or _is_incomparable(right))


def _is_incomparable(value: Any) -> bool:
    return value is _MISSING or (isinstance(value, float) and math.isnan(value))


def _is_within(item: Any, container: Any) -> bool:
    if (kind := _KINDS[type(container)]) == _TEXT:
        return _KINDS[type(item)] == _TEXT and item in container
    return kind == _LIST and any(map(partial(_is_equal, item), container))


def _build_ordering_test(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare_same_kind(left: Any, right: Any) -> bool:
        kind = _KINDS[type(left)]
        return kind in _ORDERED and kind == _KINDS[type(right)] and bool(compare(left, right))

    return compare_same_kind


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"==": _is_equal, "!=": _is_unequal, "in": _is_within}
_COMPARISONS["contains"] = lambda whole, part: _is_within(part, whole)
for _sign, _compare in (("<", operator.lt), ("<=", operator.le), (">", operator.gt), (">=", operator.ge)):
    _COMPARISONS[_sign] = _build_ordering_test(_compare)
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


def _build_path_part(steps: list[str | int]) -> _Part[Any]:
    places = [f".{step}" if _is_name(step) else f"[{_render_scalar(step)}]" for step in steps]
    bare = bool(steps) and _is_name(steps[0]) and steps[0] not in _RESERVED
    text = "".join(places)[1:] if bare else "".join(["$", *places])
    if len(steps) == 1:
        step = steps[0]
        if isinstance(step, str):
            # A plain dict, the usual case, needs no look at its bases: this is asked at every call.
            return _Part(
                text, lambda args: args.get(step, _MISSING) if type(args) is dict else _get_value_at_step(args, step)
            )
        return _Part(text, lambda arguments: _get_value_at_step(arguments, step))
    return _Part(text, lambda arguments: reduce(_get_value_at_step, steps, arguments))


def _is_name(step: str | int) -> bool:
    return isinstance(step, str) and _NAME.fullmatch(step) is not None


def _get_value_at_step(value: Any, step: str | int) -> Any:
    """The value at a key of an object or at a position in a list."""
    if isinstance(step, str):
        # dict's own get, since that of a subclass is the user's code.
        return dict.get(value, step, _MISSING) if issubclass(type(value), dict) else _MISSING
    # A slice, which is empty beyond the end, where an index raises.
    entries = value[step : step + 1] if issubclass(type(value), list | tuple) else ()
    return entries[0] if entries else _MISSING


def _render_scalar(value: Scalar | tuple[Scalar, ...]) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_render_scalar, value))}]"
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


def _build_has_test(path: _Part[Any]) -> _Part[bool]:
    return _Part(f"has {path.text}", lambda arguments: path.of(arguments) is not _MISSING)


def _build_truth_test(path: _Part[Any]) -> _Part[bool]:
    def is_truthy(arguments: Any) -> bool:
        value = path.of(arguments)
        return value is not _MISSING and (_KINDS[type(value)] == _OTHER or bool(value))

    return _Part(path.text, is_truthy)


def _build_negation(operand: _Part[bool]) -> _Part[bool]:
    test = operand.of
    return _Part(
        f"not ({operand.text})" if operand.joint else f"not {operand.text}", lambda arguments: not test(arguments)
    )


def _build_and_or(word: str, parts: list[_Part[bool]]) -> _Part[bool]:
    enough, tests = word == "or", [operand.of for operand in parts]

    def evaluate_parts(arguments: Any) -> bool:
        for test in tests:  # faster than any() and all()
            if test(arguments) is enough:
                return enough
        return not enough

    texts = (
        f"({operand.text})" if operand.joint and (word, operand.joint) != ("or", "and") else operand.text
        for operand in parts
    )
    return _Part(f" {word} ".join(texts), evaluate_parts, word)


class _Token(NamedTuple):
    kind: str
    text: str
    column: int

    def build_error(self, right: str) -> ValueError:
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
            raise beyond.build_error(f"the end after {TEXT_MAX} characters")
        self.text, self.bare = text, False
        matches = ((str(match.lastgroup), match) for match in _TOKEN.finditer(text))
        self.tokens = (_Token(kind, match[kind], match.start(kind) + 1) for kind, match in matches)
        self.now = next(self.tokens)

    def build_error(self, right: str) -> ValueError:
        return self.now.build_error(right)

    def build_unfinished_error(self, closing: str) -> ValueError:
        meant, right = (_MEANT_SIGNS, "an operator") if self.bare else (_MEANT_JOINTS, "'and', 'or'")
        return self.build_error(meant.get(self.now.text, f"{right} or {closing}"))

    def advance_token(self) -> _Token:
        # The end stays: what breaks off is told there.
        token, self.now = self.now, next(self.tokens, self.now)
        return token

    def accept_token(self, *texts: str) -> str:
        """Steps over the token if it is one of the texts, and returns it; else an empty text."""
        return self.advance_token().text if self.now.text in texts else ""

    def parse_condition(self) -> _Part[bool]:
        condition = self.parse_and_or(0)
        if self.now.text:
            raise self.build_unfinished_error("the end")
        return condition

    def parse_and_or(self, depth: int, word: str = "or") -> _Part[bool]:
        parts: list[_Part[bool]] = []
        while not parts or self.accept_token(word):
            parts.append(self.parse_and_or(depth, "and") if word == "or" else self.parse_term(depth))
        return _build_and_or(word, parts) if len(parts) > 1 else parts[0]

    def parse_term(self, depth: int) -> _Part[bool]:
        if depth == DEPTH_MAX and self.now.text in ("not", "("):
            raise self.build_error(f"no 'not' or '(' within {DEPTH_MAX} others")
        if self.accept_token("not"):
            return _build_negation(self.parse_term(depth + 1))
        if self.accept_token("("):
            condition = self.parse_and_or(depth + 1)
            if not self.accept_token(")"):
                raise self.build_unfinished_error("')'")
        elif self.accept_token("has"):
            condition = _build_has_test(self.parse_path())
        else:
            value = self.now.kind in ("number", "text") or self.now.text in ("[", *_VALUES)
            operand_left = self.parse_operand("'not'" if self.now.text == "!" else "a condition")
            if not (sign := self.accept_token(*_COMPARISONS)):
                if value:
                    raise self.build_error(_MEANT_SIGNS.get(self.now.text, "an operator"))
                self.bare = True
                return _build_truth_test(operand_left)
            condition = _build_comparison(operand_left, sign, self.parse_operand("a value"))
        self.bare = False
        return condition

    def parse_operand(self, right: str) -> _Part[Any]:
        if self.now.text == "$" or (self.now.kind == "word" and self.now.text not in _RESERVED):
            return self.parse_path()
        value = self.parse_list() if self.accept_token("[") else self.parse_scalar(right)
        return _Part(_render_scalar(value), lambda _: value, fixed=(value,))

    def parse_list(self) -> tuple[Scalar, ...]:
        entries: list[Scalar] = []
        while not self.accept_token("]"):
            if len(entries) == ENTRIES_MAX:
                raise self.build_error(f"']' after {ENTRIES_MAX} entries")
            if entries and not self.accept_token(","):
                raise self.build_error("',' or ']'")
            entries.append(self.parse_scalar("a number, a text, true, false or null"))
        return tuple(entries)

    def parse_scalar(self, right: str) -> Scalar:
        kind, text, column = self.now
        if kind == "text":
            return re.sub(
                r"\\(.)",
                lambda m: self.unescape_character(m, column + 1),
                self.advance_token().text[1:-1],
                flags=re.DOTALL,
            )
        if text in _VALUES:
            return _VALUES[self.advance_token().text]
        if kind != "number":
            raise self.build_error(
                "a text with its closing quote" if kind == "open" else _MEANT_VALUES.get(text, right)
            )
        if len(text) > NUMBER_MAX:
            raise self.build_error(f"a number of at most {NUMBER_MAX} characters")
        number = int(text) if text.lstrip("-").isdecimal() else float(text)
        # No float holds it, and it would equal any other such number.
        if number in (math.inf, -math.inf):
            raise self.build_error("a number below 1.8e308")
        self.advance_token()
        return number

    def unescape_character(self, match: re.Match[str], start: int) -> str:
        if match[1] not in _ESCAPES:
            raise _Token("text", match[0], start + match.start()).build_error(r"""\\, \", \', \n or \t""")
        return _ESCAPES[match[1]]

    def parse_path(self) -> _Part[Any]:
        steps: list[str | int] = [] if self.accept_token("$") else [self.parse_name("a path", _RESERVED)]
        while sign := self.accept_token(".", "["):
            if sign == ".":
                steps.append(self.parse_name("a name"))
                continue
            if self.now.kind not in ("text", "open") and not self.now.text.isdecimal():
                raise self.build_error("a position from 0 or a key in quotes")
            key = self.parse_scalar("")
            steps.append(key if isinstance(key, str) else int(key or 0))
            if not self.accept_token("]"):
                raise self.build_error("']'")
        return _build_path_part(steps)

    def parse_name(self, right: str, reserved: Collection[str] = ()) -> str:
        if self.now.kind != "word" or self.now.text in reserved:
            raise self.build_error(right)
        return self.advance_token().text
