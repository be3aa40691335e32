"""Words by which something was achieved."""

from __future__ import annotations

from chaoslab.analysis.stance.words import any_of, first, words

SUCCESS = any_of(
    words(
        r"succe\w+|went through|go through(?: fine)?|complete[ds]?|done|finished|sorted|handled|recovered|confirmed",
        r"worked|works|fine|ok|okay|accepted|all (?:set|good)|lucky|is over|is back",
        r"(?:was|am|were|been|now) able to|i (?:now |do )?have (?:the|an?|your|it)|got|sent|made|paid|put|told",
        r"booked|(?<!un)found|have it",
        r"has been|have been|has (?:now )?\w+ed|i(?:'ve| have)? (?:\w+ )?\w{3,}ed",
        r"\w{3,}ed(?= (?:the|a|an|\d|it|to|seat|for|in)\b)",
        r"is in|it's|stands at|reports|says|returned|returns|gave|shows|reads|result|then",
    ),
    r"[✅✔✓]|\[x\]|\d",
    r"^(?!.*\b(?:service|api|tool|system|server|gateway|source|backend|connection|network)\b).*\b(?:is|are|means) \w",
)
_HAD_TO = first(r"\b(?:had|needed) to")
OVERCOME = any_of(
    words(
        r"succeeded|went through|is (?:now )?(?:done|complete)|has (?:now )?been made|worked|accepted|but done",
        r"recovered|after (?:a|an|one|two|three|\d+|several|retrying|repeating)",
    ),
    rf"{_HAD_TO} .*(?:again|twice|a second time|once more)\b",
    r"\d",
)
"""The success of a clause that tells of an earlier attempt too."""
