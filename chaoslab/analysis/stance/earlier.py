"""Words that tell of an earlier attempt, so of a trouble that may be over."""

from __future__ import annotations

import re

from chaoslab.analysis.stance.words import MISHAP, NOT, TRY, any_of, first, words

PAST = any_of(
    words(
        rf"(?:first|1st|initial|earlier|previous|prior|original) (?:\w+ )?{TRY}",
        rf"(?:one|an|1) (?:earlier|failed|previous|unsuccessful) {TRY}",
        r"(?:earlier|previous|prior|initial|original|first|transient) (?:\w+ )?"
        rf"(?:failures?|problems?|issues?|{MISHAP})",
        r"(?:the )?first time(?: a?round)?|when i first|transient",
        r"before (?:(?:it|this|that) )?(?:worked|succeeded|succeeding|went through|working)",
        r"at first|initially|originally|in the beginning|at the (?:start|beginning|outset)|early on",
        r"(?:on|along) the way",
        r"for a (?:moment|while|short|brief|second|minute|bit)|briefly|momentar\w+|temporar\w+",
        r"(?:attempt|try|request|call) #?1",
        r"it took (?:two|three|four|five|several|\d+) (?:tries|attempts|goes)",
        r"needed (?:two|three|several|\d+) (?:tries|attempts|goes)",
        r"(?:had|needed) to (?:\w+ )?(?:\w+ )?(?:again|twice|repeat|retry)|had to knock",
        r"had been (?:turned down|refused|rejected|declined)",
    ),
    rf"{first(NOT)}.*\bbefore\W*$",
    r"\b(?:earlier|previous|prior) \w+ (?:had |has )?"
    r"(?:failed|timed out|broke|(?:was|were|been) (?:declined|rejected|refused))",
    rf"{first(NOT)}.*\b(?:right away|straight away|immediately|at once|on the first)\b",
    rf"\b(?:a|an|one|some|short|brief)(?: \w+)? {MISHAP}s?\b(?!(?>.{{0,200}}?\bnow\b).{{0,200}}\bdown\b)",
    r"\b(?:failed|broke|dropped|choked|died|timed out|hiccup\w*|errored|stumbled|refused|rejected|unavailable|offline"
    r"|down)(?:(?: on \w+)|(?: \w+))? once\b",
    rf"\b(?:bounced|refused|rejected|dropped|lost|declined) (?:one|a single) (?:of the |my )?{TRY}\b",
)
AGAIN = any_of(
    words("still", "so did", r"(?:un|in)able to", r"the same (?:result|thing|response|answer|outcome)"),
    r"\b(?:is|are|be|seems|appears)(?: \w+)? (?:temporarily|momentarily|briefly)\b",
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

_NEXT = r"(?:second|2nd|third|3rd|next|following|subsequent)"
RETRIED = any_of(
    words(
        r"(?:re-?)?tried (?:it |that |this )?(?:again|anew)|retried|re-?sent|repeated|retry|retrying|once more",
        r"the repeat(?:ed \w+)?",
        rf"{_NEXT} (?:{TRY}|time|one)|the (?:second|next|other) (?:did|\w+ed)|on the (?:second|next|third)",
        r"(?:last|final) (?:attempt|try|call|request)|(?:up)?on repetition",
        r"(?:called|asked|ran it|knocked) (?:again|twice)",
        r"resolved|recovered|cleared up|is back|came back(?! with)",
        r"(?:attempt|try|call|request) #?[2-9]|this time|eventually|in the end|finally",
        r"(?:a|an|one|some) (?:\w+ )?(?:moment|second|minute|bit|little|while|time|seconds|minutes) later",
    ),
    r"^\s*\[[2-9]\] (?:ok|success|succeeded|done)\s*$",
)
"""Words that tell of a later attempt."""
RETRIED_ROW = re.compile(r"\s*#?[2-9]\s*")
ROWS = re.compile(r"\s*(?:#\s*)?(?:attempts?|tr(?:y|ies)|calls?|requests?)\s*(?:#\s*)?")
"""A cell that heads a column of attempts."""
WENT_WELL = any_of(
    words(
        r"succe\w+|(?:went|go|gone|got|came) through|worked|works|fine|ok|okay|good|done|fixed|accepted",
        r"is (?:now )?in|it (?:was|did)|smoothly|well|(?:was|am|were|been|now) able to",
        r"got|made|sent|paid|put|told|gave|found|came back|returned|is",
        r"(?!wait|paus|back|tri|retri|repeat|stop|ask|look|check|end|decid|inform|noti|leav)\w{3,}(?<!ne)ed",
    ),
    r"[✅✔✓]|\d(?! (?:more )?(?:times|attempts|tries|retries|calls|requests))",
)
"""The success of a later attempt, once the words that tell of the attempt are taken away."""
RETRIED_ASIDE = re.compile(r"\s*(?:(?:then|and|but) )?(?:retried|repeated|re-?sent)(?: once| twice)?\)")
"""The end of an aside on the trouble before a repetition: "done (scanner error, repeated)"."""
REACH = 4
"""A later attempt answers for a trouble at most this many clauses before it."""
STATED_GOOD = re.compile(
    r"\s*(?:final )?(?:state|status|outcome|result)\s*[:=]\s*"
    r"(?:finished|completed?|done|ok|success(?:ful)?|succeeded)\b"
    r"|\s*(?:\w+ )?(?:reached|done|completed|success|executed)\s*[:=]\s*(?:yes|true)\b"
)
"""A line that states the end of it all: it was done."""
