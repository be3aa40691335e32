"""Words that tell of an earlier attempt, so of a trouble that may be over."""

from __future__ import annotations

from chaoslab.analysis.stance.words import MISHAP, TRY, any_of, words

PAST = any_of(
    words(
        rf"(?:first|1st|initial|earlier|previous|prior|original) (?:\w+ )?{TRY}",
        rf"(?:one|an|1) (?:earlier|failed|previous|unsuccessful) {TRY}",
        r"at first|initially|originally|in the beginning|at the (?:start|beginning|outset)|early on|on the way",
        r"for a (?:moment|while|short|brief|second|minute|bit)|briefly|momentar\w+|temporar\w+",
        r"(?:attempt|try|request|call) #?1",
        r"it took (?:two|three|four|five|several|\d+) (?:tries|attempts|goes)",
        r"needed (?:two|three|several|\d+) (?:tries|attempts|goes)",
        r"(?:had|needed) to (?:\w+ )?(?:\w+ )?(?:again|twice|repeat|retry)|had to knock",
        r"had been (?:turned down|refused|rejected|declined)",
    ),
    rf"\b(?:a|an|one|some|short|brief)(?: \w+)? {MISHAP}s?\b(?!.*\bnow\b.*\bdown\b)",
    r"\b(?:failed|broke|dropped|choked|died|timed out|hiccup\w*|errored|stumbled|refused|rejected|unavailable|offline"
    r"|down)(?: \w+)? once\b",
)
AGAIN = any_of(
    words("still", "so did", r"(?:un|in)able to"),
    r"\b(?:gave|give|given|giving) (?:it |this )?up\b",
    r"\b(?:each|every|all|both|any) (?:of )?(?:\w+ )?(?:attempt|try|tries|time|request)",
)
"""The earlier attempt's trouble lasted."""
OVER = any_of(
    rf"\bafter (?:a|an|one|two|three|four|five|several|some|\d+) (?:\w+ )?{TRY}\b",
    r"\b(?:despite|in spite of|recovered from|because of|due to) (?:a|an|one|some) (?:\w+ )?"
    r"(?:outage|interruption|hiccup|glitch|blip|downtime|timeout|delay|error|failure)s?\b(?: (?:at|in) the \w+)?",
)
"""Mentions of a trouble that the rest of the clause tells the end of."""
