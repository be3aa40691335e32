"""Arithmetic from text by a small grammar: exact integers, else floats, with a limit checked before anything is
computed.

sum     = product (("+" | "-") product)*
product = unary (("*" | "/" | "//" | "%") unary)*
unary   = ("+" | "-") unary | power
power   = atom (("^" | "**") unary)?
atom    = number | constant | function "(" sum ("," sum)* ")" | "(" sum ")"
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

Number = int | float
LENGTH_MAX = 1000
# Below Python's limit of recursion, as a level takes several calls.
NESTING_MAX = 100
FACTORIAL_MAX = 1000
# The bits of a whole number: enough for factorial(1000), and fewer digits than Python's limit for text (4300).
BITS_MAX = 10_000
TOO_LARGE = (
    f"the result is too large: whole numbers may have {int(BITS_MAX * math.log10(2))} digits, others go to 1.8e308"
)
CONSTANTS = {"pi": math.pi, "π": math.pi, "e": math.e, "tau": math.tau}

_TOKEN = re.compile(
    # A comma may group thousands, or separate arguments: within a call's brackets it does the latter.
    r"\s*(?:(?P<grouped>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9,])(?:\.[0-9]+)?)"
    # ASCII digits, as `int` takes those of other scripts too.
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[^\W\d_][\w]*)|(?P<sign>\*\*|//|[-+*/%^(),×÷−·]))"
)
_SAME = {"×": "*", "·": "*", "÷": "/", "−": "-", "^": "**"}


class Wrong(Exception):
    """The expression has no value. `kind`: the reason as one word. `position`: the place, counted from 0."""

    def __init__(self, kind: str, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.kind, self.message, self.position = kind, message, position


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    position: int


def calculate(text: str) -> Number:
    """The value of an expression. Raises Wrong: it is not an expression, has no value, or is too large."""
    if len(text) > LENGTH_MAX:
        raise Wrong("too_long", f"the expression is longer than {LENGTH_MAX} characters")
    return _ExpressionParser(_tokenize(text)).parse_expression()


def _tokenize(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    calls: list[bool] = []  # for each open bracket: does a comma in it separate arguments?
    position = 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is not None and match["grouped"] and calls and calls[-1]:
            # A group of thousands in a call's brackets is read again as one number and a comma.
            match = re.compile(r"\s*(?P<number>[0-9]+)").match(text, position)
        if match is None:
            at = position + len(text[position:]) - len(text[position:].lstrip())
            raise Wrong("syntax", f"unexpected {text[at]!r}", at)
        kind = match.lastgroup or ""
        token = _Token(kind, _SAME.get(match[kind], match[kind]), match.start(kind))
        if token.text == "(":
            calls.append(bool(tokens) and tokens[-1].kind == "name")
        elif token.text == ")" and calls:
            calls.pop()
        tokens.append(token)
        position = match.end()
    return [*tokens, _Token("end", "", len(text))]


class _ExpressionParser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0

    def parse_expression(self) -> Number:
        if self._next_token.kind == "end":
            raise Wrong("syntax", "the expression is empty", 0)
        value = self._parse_sum()
        if self._next_token.kind != "end":
            raise self._make_syntax_error()
        return value

    @property
    def _next_token(self) -> _Token:
        return self._tokens[self._at]

    def _consume_sign_if_next(self, *texts: str) -> _Token | None:
        token = self._next_token
        if token.kind != "sign" or token.text not in texts:
            return None
        self._at += 1
        return token

    def _make_syntax_error(self) -> Wrong:
        token = self._next_token
        what = "the expression ends too early" if token.kind == "end" else f"unexpected {token.text!r}"
        return Wrong("syntax", what, token.position)

    def _parse_sum(self) -> Number:
        value = self._parse_product()
        while sign := self._consume_sign_if_next("+", "-"):
            value = _apply_operator(sign, value, self._parse_product())
        return value

    def _parse_product(self) -> Number:
        value = self._parse_unary()
        while sign := self._consume_sign_if_next("*", "/", "//", "%"):
            value = _apply_operator(sign, value, self._parse_unary())
        return value

    def _parse_unary(self) -> Number:
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise Wrong("too_deep", f"nested deeper than {NESTING_MAX}", self._next_token.position)
        sign = self._consume_sign_if_next("+", "-")
        # A sign binds less than a power: -2^2 is -4.
        if sign is None:
            value = self._parse_power()
        else:
            value = self._parse_unary()
            value = -value if sign.text == "-" else value
        self._depth -= 1
        return value

    def _parse_power(self) -> Number:
        base = self._parse_atom()
        sign = self._consume_sign_if_next("**")
        # The right side may have a sign, and powers go from right to left.
        return base if sign is None else _apply_operator(sign, base, self._parse_unary())

    def _parse_atom(self) -> Number:
        token = self._next_token
        self._at += 1
        if token.kind == "grouped":
            plain = token.text.replace(",", "")
            return _check_size(float(plain) if "." in plain else int(plain), token)
        if token.kind == "number":
            # Whole numbers stay exact.
            return _check_size(int(token.text) if token.text.isdecimal() else float(token.text), token)
        if token.kind == "name":
            return self._parse_constant_or_call(token)
        if token.text == "(":
            value = self._parse_sum()
            self._expect_close_bracket()
            return value
        # Given back, so that the error shows the place of this token.
        self._at -= 1
        raise self._make_syntax_error()

    def _parse_constant_or_call(self, token: _Token) -> Number:
        name = token.text.lower()
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name not in FUNCTIONS:
            raise Wrong("unknown_name", f"unknown name {token.text[:40]!r}", token.position)
        if self._consume_sign_if_next("(") is None:
            raise Wrong("syntax", f"{name} needs its arguments in brackets", self._next_token.position)
        arguments = [self._parse_sum()]
        while self._consume_sign_if_next(","):
            arguments.append(self._parse_sum())
        self._expect_close_bracket()
        low, high, function = FUNCTIONS[name]
        if not low <= len(arguments) <= high:
            raise Wrong("arguments", f"{name} does not take {len(arguments)} arguments", token.position)
        return _compute_guarded(token, lambda: function(*arguments))

    def _expect_close_bracket(self) -> None:
        if self._consume_sign_if_next(")") is None:
            raise self._make_syntax_error()


def _apply_operator(sign: _Token, left: Number, right: Number) -> Number:
    if sign.text == "**":
        return _compute_guarded(sign, lambda: _raise_to_power(left, right))
    if sign.text == "/":
        return _compute_guarded(sign, lambda: _divide(left, right))
    operations: dict[str, Callable[[], Number]] = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "//": lambda: left // right,
        "%": lambda: left % right,
    }
    return _compute_guarded(sign, operations[sign.text])


def _compute_guarded(token: _Token, compute: Callable[[], Number]) -> Number:
    try:
        return _check_size(compute(), token)
    except ZeroDivisionError:
        raise Wrong("division_by_zero", "division by zero", token.position) from None
    except OverflowError as error:
        # A function's own words name it, as factorial's do.
        own = str(error) if str(error).startswith(token.text) else TOO_LARGE
        raise Wrong("overflow", own, token.position) from None
    except (ValueError, TypeError) as error:
        # Python's own words say no more than the message does.
        why = "" if str(error) == "math domain error" else f" ({error})"
        raise Wrong("domain", f"{token.text} is not defined there{why}", token.position) from None


def _check_size(value: Number, token: _Token) -> Number:
    if isinstance(value, int):
        if value.bit_length() > BITS_MAX:
            raise Wrong("overflow", TOO_LARGE, token.position)
    elif not math.isfinite(value):
        raise Wrong("overflow", TOO_LARGE, token.position)
    return value


def _divide(left: Number, right: Number) -> Number:
    # A division without a rest stays whole.
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return left / right


def _raise_to_power(base: Number, exponent: Number) -> Number:
    # Estimated first: 9**9**9 would take all memory before it could be checked.
    if isinstance(base, int) and isinstance(exponent, int) and (abs(base).bit_length() - 1) * exponent > BITS_MAX:
        raise OverflowError
    value = base**exponent
    # Python gives a complex number for the root of a negative one.
    if isinstance(value, complex):
        raise ValueError("an even root of a negative number")
    return value


def _factorial(n: Number) -> int:
    if n != int(n) or n < 0:
        raise ValueError("needs a whole number, 0 or more")
    if n > FACTORIAL_MAX:
        raise OverflowError(f"factorial goes up to {FACTORIAL_MAX}")
    return math.factorial(int(n))


def _square_root(x: Number) -> Number:
    # Exact for squares, of however many digits.
    if isinstance(x, int) and x >= 0 and math.isqrt(x) ** 2 == x:
        return math.isqrt(x)
    return math.sqrt(x)


def _round(x: Number, digits: Number = 0) -> Number:
    if digits != int(digits) or abs(digits) > LENGTH_MAX:
        raise ValueError("needs a whole number of digits")
    # Without digits `round` gives a whole number.
    return round(x, int(digits)) if digits else round(x)


FUNCTIONS: dict[str, tuple[int, int, Callable[..., Number]]] = {
    "sqrt": (1, 1, _square_root), "abs": (1, 1, abs), "round": (1, 2, _round), "floor": (1, 1, math.floor),
    "ceil": (1, 1, math.ceil), "min": (1, 100, lambda *numbers: min(numbers)),
    "max": (1, 100, lambda *numbers: max(numbers)), "sin": (1, 1, math.sin), "cos": (1, 1, math.cos),
    "tan": (1, 1, math.tan), "asin": (1, 1, math.asin), "acos": (1, 1, math.acos), "atan": (1, 1, math.atan),
    # log10 is exact for powers of ten, and `log(1000, 10)` is not.
    "ln": (1, 1, math.log), "log": (1, 2, lambda x, base=10: math.log10(x) if base == 10 else math.log(x, base)),
    "log10": (1, 1, math.log10), "log2": (1, 1, math.log2), "exp": (1, 1, math.exp), "factorial": (1, 1, _factorial),
}  # fmt: skip
