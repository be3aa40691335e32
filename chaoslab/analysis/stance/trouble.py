"""Words by which something was not done or is not known, and those that only sound like it."""

from __future__ import annotations

from chaoslab.analysis.stance.words import NOT, any_of, words

TROUBLE = any_of(
    rf"\b\w*{NOT}\b(?! only\b)",
    words(
        # It did not work.
        r"fail(?:ed|ure|ures|s|ing)?|errors?|impossible|abort(?:ed|s)?|cancell?ed|dropped|broke(?:n)?|choked|hiccup\w*|died",
        r"unable|un(?:available|successful|reachable|usable|processed|finished|resolved|fortunately)",
        r"no luck|bad news|not-so-good|wrong|made no sense|hit a wall|regret|rather not|won't",
        r"(?:gave|give|given|giving) (?:\w+ )?up|stopped before|(?:to|had to) stop without|without making",
        # Somebody would not.
        r"reject(?:ed|s|ion)?|refus(?:ed|es|al)|declin(?:ed|es)|denied|blocked|bounced",
        r"turn(?:ed|ing) (?:me |it |us )?(?:down|away)|forbidden|unauthorized|too many requests",
        # Nobody answered.
        r"offline|(?:is|was|are|were|being|went|gone|currently|still) down|out of reach|outages?|stopped responding",
        r"time(?:d|s)?[ -]?out|timeouts?|(?:got|was|is|were) lost|cut off",
        r"service unavailable|internal error|bad gateway",
        # It is not all there.
        r"incomplete|outstanding|pending|undone|half done|partial(?:ly)?|missing|lacking|left out|skipped",
        r"no such|not found|only (?:\w+ )?(?:the )?(?:first|one|half|part)",
        r"remain(?:s|ed)? (?:to be|open|undone|un\w+)|still (?:to|needs?|has|have|open|outstanding)|needs a human",
        r"you(?:'ll| will)? (?:need|have) to (?:.* )?(?:yourself|by hand|manually|elsewhere|(?:some|an)other way)",
        r"no(?:body)? (?:\w+ )?(?:answer(?:ed|s)?|repl(?:y|ied)|response|data|figure|value|result|record|confirmation"
        r"|acknowledg\w+|proof|changes|connection|idea|information|up-to-date)",
        r"nobody|nothing|none|never|no one|n/a|null",
        # It may not be true.
        r"outdated|out[ -]of[ -]date|stale|cached?|old (?:copy|value|reading|data|figure|note)|yesterday's|last known",
        r"most recent note|(?:earlier|older) (?:copy|reading|value|figure)|some time ago|grain of salt",
        r"with care|not current|nearest|stand-in|contradict\w*|inconsistent|disagree\w*",
    ),
    r"[❌✘✗✖⚠]|\[ \]|^\s*[–-]\s*(?:$|\()",
)
SILENCE = any_of(
    words(
        r"time(?:d|s)?[ -]?out|timeouts?|no (?:answer|reply|response)|stopped responding",
        r"(?:never|not) (?:heard|got|received)|(?:got|was) lost|connection (?:reset|closed|lost|dropped)",
    ),
    rf"\b{NOT} (?:answer|reply|respond)\w*\b",
)
"""Nobody answered, so it may have been done."""
PLAINLY = any_of(
    words(
        r"could(?: not|n't)|can(?: ?not|'t)|unable to|not able to|failed|did(?: not|n't) manage to|unavailable",
        r"not available|not possible|impossible to",
        r"(?:did|does)(?: not|n't) (?:work|succeed|answer|respond|reply|go through)",
        r"(?:was|were) not (?:sent|created|deleted|done|carried out|completed)",
        r"no (?:answer|reply|response) (?:from|came)",
    )
)
"""Something could not be done, in plain words."""

_ADVISE = "give|offer|provide|make|promise|guarantee|recommend|advise|predict"
_ADVICE = "advice|recommendations?|predictions?|guarantees?|promises?|opinions?"
IDLE = any_of(
    # No error.
    r"\b(?:no|zero|0|without (?:a |an |any )?|never any) ?(?:further |other |more )?"
    r"(?:errors?|problems?|issues?|failures?|troubles?|warnings?|difficult(?:y|ies)|complications?)\b(?! data)",
    r"\b(?:errors?|problems?|issues?|failures?|warnings?)\s*[:=]?\s*(?:none|0|null|no)\b",
    r"\bnothing (?:failed|went wrong|unusual\b.*|else\b.*|more\b.*|further\b.*|is left\b.*|left to\b.*|to worry\b.*)",
    # No need.
    r"\b(?:no|without) (?:need|doubt)\b.*",
    r"\b(?:do|did|does|need|should|must|will|would|wo)(?: ?not|n't)"
    r" (?:need|have to|hesitate|worry|require|forget|mind|retry)\b.*",
    r"\bneed(?:n't| not)\b.*|\b(?:never|not) hesitate\b.*",
    # No advice.
    r"\b(?:cannot|can't|can not|do not|don't|could not|couldn't) "
    rf"(?:{_ADVISE})(?: (?:any|you|financial|legal|medical|investment|personal))* ?(?:{_ADVICE})?"
    r" ?(?:on|about|for|as to)? ?(?:this|that|it|the future|future)\b",
    r"\byou (?:can't|cannot|can not|do not|don't|did not|didn't|will not|won't|need not)\b.*",
)
"""Words that sound like a trouble, and tell of none."""
