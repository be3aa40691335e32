"""Masks secrets and personal data in what a trace recorded."""

import json
import re
from typing import Any

from chaoslab.base.secrets import Masker

PATTERNS = {
    "e-mail": re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"),
    "card": re.compile(r"(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d.-])"),
    "phone": re.compile(r"(?<![\w.+-])(?:\+\d[\d ().-]{6,16}\d|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4})(?![\w-])"),
}
"""Personal data, by what is put in its place: an e-mail address; 13 to 19 digits with a card's check digit; a phone
number with its country's code after a +, or of the form 555-123-4567. Secrets are those of `base/secrets.py`."""


class Personal:
    """Puts the same placeholder, such as `<e-mail 1>`, for the same value everywhere. `on`: False leaves all as it
    is."""

    def __init__(self, *, on: bool = True) -> None:
        self._on, self._secrets = on, Masker()
        self._known: dict[tuple[str, str], str] = {}

    def text(self, text: str) -> str:
        """The text, which may be JSON, without secrets and personal data."""
        if not self._on:
            return text
        text = self._secrets.mask(text)
        for kind, form in PATTERNS.items():
            text = form.sub(lambda found, kind=kind: self._placeholder(kind, found[0]), text)  # type: ignore[misc]
        return text

    def value(self, value: Any) -> Any:
        """The same of a JSON value."""
        masked = self.text(said := json.dumps(value, ensure_ascii=False))
        if masked == said:
            return value
        try:
            return json.loads(masked)
        except ValueError:  # a number was masked
            return masked

    def _placeholder(self, kind: str, found: str) -> str:
        digits = [int(each) for each in found if each.isdigit()]
        if kind == "card" and not _is_card(digits):
            return found
        same = found.lower() if kind == "e-mail" else "".join(map(str, digits))
        number = 1 + sum(of == kind for of, _ in self._known)
        return self._known.setdefault((kind, same), f"<{kind} {number}>")

    @property
    def counts(self) -> dict[str, int]:
        """The number of different values that were masked, by kind."""
        found = {kind: sum(of == kind for of, _ in self._known) for kind in PATTERNS}
        return {kind: count for kind, count in {"secret": len(self._secrets.known), **found}.items() if count}


def _is_card(digits: list[int]) -> bool:
    """True if the digits pass Luhn's check and are not all the same."""
    doubled = (each if n % 2 == 0 else sum(divmod(2 * each, 10)) for n, each in enumerate(reversed(digits)))
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1
