"""Parts of the patterns that several subjects share."""

from __future__ import annotations

import re

NOT = r"(?:not|n't|cannot)"
TRY = (
    r"(?:attempts?|tr(?:y|ies)|requests?|calls?|quer(?:y|ies)|retr(?:y|ies)|lookups?|go(?:es)?|errors?|times|runs?|executions?|timeouts?"
    r"|submissions?)"
)
MISHAP = r"(?:outage|interruption|hiccup|glitch|blip|bump|downtime|timeout|delay)"


def any_of(*patterns: str) -> re.Pattern[str]:
    """A pattern that finds each of these."""
    return re.compile("|".join(patterns))


def first(way: str) -> str:
    """The pattern of a text up to the first of these words. What follows is tried behind that one alone; tried behind
    each, it takes a time that grows with the square of the text."""
    return rf"^(?>.*?(?:{way})\b)"


def words(*alternatives: str) -> str:
    """The pattern of any of these as whole words."""
    return rf"\b(?:{'|'.join(alternatives)})\b"
