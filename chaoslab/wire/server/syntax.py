"""Describes the error of a JSON text in the words of Go's decoder, once Python's has refused it or read a number."""

from __future__ import annotations

import re
from itertools import accumulate

STRING = re.compile(rb'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')
QUOTED = re.compile(STRING.pattern + b'"?')
BLANK = re.compile(rb"[ \t\r\n]*")
DIGITS = re.compile(rb"[0-9]*")
HEX = re.compile(rb"[0-9a-fA-F]*")
LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}
KEY = "looking for beginning of object key string"
VALUE = "looking for beginning of value"
SHORT = {
    0x07: "\\a",
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0B: "\\v",
    0x0C: "\\f",
    0x0D: "\\r",
    0x27: "\\'",
    0x5C: "\\\\",
}


class _Wrong(Exception):
    """The text stops being JSON at `at`. `during`: Go's words for the context."""

    def __init__(self, at: int, during: str) -> None:
        super().__init__(during)
        self.at = at
        self.during = during


def complaint(body: bytes) -> str | None:
    """Go's words for the first error in the first value, or None."""
    try:
        _scan(body)
    except _Wrong as wrong:
        if wrong.at < len(body):
            return f"invalid character {_quoted(body[wrong.at])} {wrong.during}"
        return "unexpected EOF" if body.strip(b" \t\r\n") else "EOF"
    return None


def depth(body: bytes) -> int:
    """The most brackets that are open at once."""
    bare = QUOTED.sub(b"", body)
    return max(accumulate((1 if byte in b"[{" else -1 for byte in bare if byte in b"[]{}"), initial=0))


def _scan(body: bytes) -> None:
    """Walks over one value, with a stack of its own, so no depth is too much."""
    at = 0
    open_: list[bytes] = []  # the brackets that are not closed yet
    opened = False  # the last token was an opening bracket
    while True:
        at = _blank(body, at)
        here = body[at : at + 1]
        if opened and here == (b"}" if open_[-1] == b"{" else b"]"):
            open_.pop()
            at += 1
        else:
            if open_ and open_[-1] == b"{":
                at = _key(body, at)
                here = body[at : at + 1]
            if here in (b"{", b"["):
                open_.append(here)
                opened = True
                at += 1
                continue
            at = _scalar(body, at)
        opened = False
        at = _close(body, at, open_)
        if not open_:
            return


def _close(body: bytes, at: int, open_: list[bytes]) -> int:
    """Walks from a value's end over closing brackets and the next comma."""
    while open_:
        at = _blank(body, at)
        here = body[at : at + 1]
        closing, where = (b"}", "after object key:value pair") if open_[-1] == b"{" else (b"]", "after array element")
        if here not in (closing, b","):
            raise _Wrong(at, where)
        at += 1
        if here == b",":
            return at
        open_.pop()
    return at


def _key(body: bytes, at: int) -> int:
    """Walks over `"key":` up to the value."""
    if body[at : at + 1] != b'"':
        raise _Wrong(at, KEY)
    at = _blank(body, _string(body, at))
    if body[at : at + 1] != b":":
        raise _Wrong(at, "after object key")
    return _blank(body, at + 1)


def _scalar(body: bytes, at: int) -> int:
    here = body[at : at + 1]
    if here == b'"':
        return _string(body, at)
    if here in LITERALS:
        word = LITERALS[here]
        for offset in range(1, len(word)):
            if body[at + offset : at + offset + 1] != word[offset : offset + 1]:
                raise _Wrong(at + offset, f"in literal {word.decode()} (expecting '{chr(word[offset])}')")
        return at + len(word)
    if here == b"-" or here.isdigit():
        return _number(body, at)
    raise _Wrong(at, VALUE)


def _string(body: bytes, at: int) -> int:
    found = STRING.match(body, at)
    assert found is not None
    end = found.end()
    here = body[end : end + 1]
    if here == b'"':
        return end + 1
    if here != b"\\":
        raise _Wrong(end, "in string literal")
    if body[end + 1 : end + 2] != b"u":
        raise _Wrong(end + 1, "in string escape code")
    raise _Wrong(_over(HEX, body, end + 2), "in \\u hexadecimal character escape")


def _number(body: bytes, at: int) -> int:
    if body[at : at + 1] == b"-":
        at += 1
    if body[at : at + 1] == b"0":
        at += 1
    else:
        at = _digits(body, at, "in numeric literal")
    if body[at : at + 1] == b".":
        at = _digits(body, at + 1, "after decimal point in numeric literal")
    if body[at : at + 1] in (b"e", b"E"):
        at += 1
        if body[at : at + 1] in (b"+", b"-"):
            at += 1
        at = _digits(body, at, "in exponent of numeric literal")
    return at


def _digits(body: bytes, at: int, during: str) -> int:
    end = _over(DIGITS, body, at)
    if end == at:
        raise _Wrong(at, during)
    return end


def _blank(body: bytes, at: int) -> int:
    return _over(BLANK, body, at)


def _over(pattern: re.Pattern[bytes], body: bytes, at: int) -> int:
    found = pattern.match(body, at)
    assert found is not None
    return found.end()


def _quoted(byte: int) -> str:
    """A byte as Go quotes it: as a character of Latin-1."""
    if byte in SHORT:
        return f"'{SHORT[byte]}'"
    if byte < 0x80:
        return f"'{chr(byte)}'" if chr(byte).isprintable() else f"'\\x{byte:02x}'"
    return f"'{chr(byte)}'" if chr(byte).isprintable() else f"'\\u{byte:04x}'"
