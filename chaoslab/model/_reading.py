"""Splits a request into clauses, each of which asks for one thing; text in quotation marks is never split."""

import re

_QUOTED = re.compile(
    r"\"([^\"]+)\"|“([^”]+)”|«([^»]+)»|„([^“”]+)[“”]|‘([^’]+)’|(?<!\w)'((?:[^']|'(?=\w))+)'(?!\w)|`([^`]+)`"
)
# A private character: no text has it by itself, and no rule takes it for a letter.
QUOTE = "[\ue000-\uf8ff]"

_POLITE = re.compile(
    r"^(?:(?:please|kindly|hi|hello|hey|ok|okay|so|now|also|and|then|but|finally|first|next|afterwards|after "
    r"that|thanks|just)\b[\s,:!]*"
    r"|(?:can|could|would|will) you (?:please |kindly |also |then |just )*(?:(?=tell me)|)"
    r"|(?:i(?:'d| would) (?:also )?like (?:you )?to|i (?:also )?(?:want|need)(?: you)? to|i(?:'d| would) like to "
    r"know|i (?:also )?wonder"
    r"|i(?:'m| am) (?:also )?(?:wondering|curious)|do you know|do me a favou?r and|would you mind|let me know"
    r"|(?:tell|show|give) me(?= (?:what|how|when|who|which|where|if|whether|the (?:weather|temperature|"
    r"forecast|result|sum|answer|rating|release)))"
    r"|(?:check|see|find out|figure out)(?= (?:what|how|when|which|who|where)\b)|know(?= "
    r"(?:what|how|when|which|who|where|whether|if)\b)"
    r"|go ahead and|don't forget to|make sure (?:to|you)|remember to)\s+)",
    re.I,
)
_VERBS = (
    "search google find tell message text send email write notify inform let ping dm post share forward ask "
    "translate say "
    "calculate compute work evaluate add multiply divide subtract double triple schedule book create put set arrange "
    "delete "
    "remove cancel clear move reschedule postpone list show check read give get fetch look remind warn please could "
    "can would "
    "what what's whats how how's when when's who who's which where is are do does did have will convert drop pass "
    "reply respond answer if "
    "summarize summarise report compare round explain i'd"
)
_HARD = (
    r"\s*;\s*|,?\s+and\s+then\s+|,?\s+(?:and\s+)?after(?:\s+that|wards),?\s+|,?\s+and\s+(?:also|"
    r"finally|lastly)\s+|,\s*then\s+|\s+then\s+|,\s*also\s+"
)


def mask_quotes(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with each quoted part replaced by one private character, and those parts."""
    quotes: list[str] = []

    def replace_quote(match: re.Match[str]) -> str:
        quotes.append(next(group for group in match.groups() if group is not None))
        return chr(0xE000 + len(quotes) - 1)

    return _QUOTED.sub(replace_quote, text.replace("\u202f", " ").replace("\xa0", " ")), tuple(quotes)


def collapse_spaces(text: str) -> str:
    """The text with runs of spaces or line ends reduced to one: the rules are slow on long runs."""
    return re.sub(r"\s{2,}+", lambda run: "\n" if "\n" in run[0] else " ", text)


def strip_politeness(clause: str) -> str:
    """The clause without its courtesies and closing marks."""
    clause = clause.strip(" ,.!?\n\t")
    # A clause that is nothing but courtesy stays as it is.
    while (shorter := _POLITE.sub("", clause, count=1).strip(" ,")) != clause and shorter:
        clause = shorter
    # "Tell Ana thank you" ends with its message, not with a courtesy.
    ending = r"(?:[\s,]*\b(?:please|for me|will you|would you)|[,.!;]\s*(?:thanks|thank you))\s*$"
    return re.sub(ending, "", clause, flags=re.I).strip(" ,.!?")


def split_sentences(masked: str) -> list[str]:
    """The sentences of a text; the points of "p.m." and "Dr." end none."""
    # Where a sentence may end, the point of “p.m.” closes it; elsewhere it goes.
    text = re.sub(r"\b([ap])\.\s?m\.(?=\s+[A-Z]|\s*$)", r"\1m.", masked)
    text = re.sub(r"\b([ap])\.\s?m\.", r"\1m", text)
    text = re.sub(r"\b(Dr|Mr|Mrs|Ms|St|vs|e\.g|i\.e)\.", r"\1", text)
    return [
        sentence
        for sentence in re.split(rf"(?<=[.!?])\s+|(?<=[.!?]{QUOTE})\s+(?=[A-Z])|\n+", text)
        if sentence.strip(" .!?,")
    ]


def is_request_sentence(sentence: str, verbs: frozenset[str]) -> bool:
    """True if the sentence opens with a word that asks for something."""
    opening = "|".join(map(re.escape, {*_VERBS.split(), *verbs}))
    return re.match(rf"\W*(?:(?:and|then|also|finally)\b[\s,]*)*(?:{opening})\b", sentence, re.I) is not None


def split_clauses(sentence: str, verbs: frozenset[str]) -> list[str]:
    """The sentence split at each new request: at "; ", "and then", and at "and" or a comma before a word that asks.
    `verbs`: further such words (the first words of the offered tools' names)."""
    opening = "|".join(sorted({*_VERBS.split(), *verbs}, key=len, reverse=True))
    soft = (
        rf"(?:\s*,\s*and\s+|\s+and\s+|\s*,\s*(?:but\s+)?|\s+but\s+)"
        rf"(?=(?:please\s+)?(?:{opening})\b(?!\s+(?:and|of)\b)|(?<=\s)\d[\d.]*\s*[*+^×]\s*\d)"
    )
    parts = (clause.strip() for clause in re.split(f"{_HARD}|{soft}", sentence, flags=re.I) if clause)
    return [clause for clause in parts if not re.fullmatch(r"(?:also|and|then|please|[\s.!?,])*", clause, re.I)]
