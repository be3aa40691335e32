"""Words by which something may or may not have been done, and those that state nothing."""

from __future__ import annotations

from chaoslab.analysis.stance.words import NOT, any_of, words

DOUBT = any_of(
    r"\b(?:may|might)(?: or (?:may|might) not)?(?: (?:not|already|possibly|well|also|still))*"
    r" (?:have|be|exist|no longer|not)\b",
    r"\bcould(?: (?:already|possibly|well|also|still))* have\b",
    words(
        r"(?:could|might|may) have",
        r"not (?:quite |entirely |so )?(?:sure|certain|clear)",
        r"un(?:sure|clear|certain|known|confirmed|verified|determined)",
        "indeterminate|whether|it is possible|in doubt",
        "perhaps|possibly|maybe|presumably",
        r"no (?:\w+ )?(?:confirmation|proof|acknowledg\w+|acks?|certainty)",
        r"never (?:got|received|saw|had) (?:a|an|any)",
        r"if it (?:took|worked|went|happened)",
    ),
    r"\bunable to (?:tell|say|confirm|verify|know|determine|establish|check)\b",
    words(
        r"a (?:\w+ )?chance (?:that|it|of)|no (?:way|means) (?:of|to) (?:tell|know|say|confirm|verify)\w*",
        r"hard to (?:say|tell)",
        r"(?:most |very )?likely (?:not|went|was|did|has)",
        r"(?:not|never|\w+n't) (?:yet )?(?:received?|heard|gotten|got)"
        r" (?:back|(?:a |an |any )?(?:confirmation|response|reply|answer))",
        r"(?:not|\w+n't) have (?:a |an )?(?:\w+ )?(?:confirmation|answer as to)|(?:not|\w+n't) know",
        r"(?:a)?waiting for (?:its |a |the |any )?(?:confirmation|answer|reply|response)|awaiting",
        r"needs? (?:a )?(?:manual|human) \w+|no idea|(?:be|am|'m|only|just) guessing|remains? to be seen",
        r"anyone's guess",
        r"confirmation (?:is |was )?(?:still |yet )?(?:outstanding|pending|missing|awaited|open)|pending confirmation",
    ),
    rf"{NOT} (?:yet )?(?:been )?(?:able to )?(?:tell|say|confirm|verify|know|verified|confirmed|sure|vouch|certain)\b",
    r"❓|\?\?|[:=]\s*\?\W*$|^\s*\?\s*$",
)
CONDITION = any_of(
    r"^\s*(?:if|should (?:you|it|there|any\w*)|in case|unless|when|let me know|feel free)\b",
    words("let me know if", "if you"),
)
"""A clause of what may come."""
REQUEST = any_of(
    r"^\s*(?:please|try|check|want me|shall|should|would you|could you|do you|can you)\b",
    r"\?\s*$",
)
"""A clause that asks something of the user."""
