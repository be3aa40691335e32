"""The words that compare two texts: the plain ones, those that turn a meaning round, and the content that is left."""

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from itertools import combinations

from chaoslab.analysis.answers._normal import CURRENCIES, NUMBER_WORDS, SIGN
from chaoslab.analysis.answers.values import is_value


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


IDLE = re.compile(
    r"\A\s*(?:(?:ok|okay|sure|certainly|absolutely|great|alright|hello|hi|hey|thanks|thank you|well)[,.!]\s+|✅\s*)+"
    r"|\b(?:the|an|please|kindly|now|so|therefore) (?=\w)",
    re.IGNORECASE,
)
"""Words that change nothing where they stand: two answers that differ in them alone are the same."""
MAKING = _words("attempt trie try retry retrie time second sec s ms millisecond call request error failure took after")
"""Words beside a number of the agent's own way, without the s of a plural."""
PLAIN = _words(
    " a an the dear please kindly so just now then here therefore i me my we our us you your it its this that these"
    " those there he she they his her their to of in on at for with by from and or as is are was were be been being"
    " am has have had do does did will would shall should which who what i've it's i'm that's here's"
)
"""Words of which two texts share many whatever they say."""
_NEGATIONS = _words("no not never none nothing nobody neither nor without cannot hardly barely yes")
_UNITS = _words("c f kmh mph ms km cm mm m mi ft kg g lb oz l ml gal s min h d w percent degrees") | CURRENCIES
_MORE = _words(
    " except unless before after off up down out over under above below more less most least first last second"
    " third half twice double triple once one dozen hundred thousand million single both all any some few many only"
    " again still yet already open closed opened close enabled disabled active inactive on-time late early earlier"
    " later true false right wrong correct incorrect valid invalid available free busy full empty present absent"
    " included excluded paid due approved accepted granted allowed rejected refused denied declined forbidden"
    " passed failed pass fail success succeeded error errors failure won lost win lose gain loss profit increase"
    " increased decrease decreased rise rose fall fell grew shrank higher lower high low hot cold warm cool dry wet"
    " rain sunny cloudy snow clear positive negative plus minus debit credit buy sell bought sold sent received"
    " sender recipient start end begin started ended finished arrive depart arrival departure arrives departs north"
    " south east west left top bottom inside outside max minimum maximum oldest newest old new cheap expensive"
    " cheapest shortest longest short long same different safe unsafe could may might maybe perhaps possibly"
    " probably unknown unclear uncertain unconfirmed pending stale cached outdated today tomorrow yesterday monday"
    " tuesday wednesday thursday friday saturday sunday am pm morning evening night noon questionmark warning ok"
    " cancelled canceled confirmed booked refunded charged shipped delivered returned deleted created removed added"
    " atleast atmost plusminus about slash arrow back sharp owed"
)
TURNING = _NEGATIONS | _UNITS | _MORE
"""Words by which two texts that share all others may say the opposite, or another thing."""
TROUBLE = _words(
    "must need please yourself manually try tried later instead remain remains stay stays wait again contact call"
    " problem issue unfortunately sorry afraid regret apologies apologize however would until left stopped"
)
"""Words that may tell, in a sentence of which the rest is the twin's, that something is left."""
_OPPOSITES = {
    word: other
    for pair in (
        "on off", "in out", "up down", "before after", "above below", "more less", "with without", "first last",
        "open closed", "high low", "left right", "north south", "east west", "am pm", "to from", "true false",
    )
    for word, other in (pair.split(), pair.split()[::-1])
}  # fmt: skip
_PLACES = _words("from to by for than of at on in with under over before after between per until into through via as")
_KEEPS = _words("a an the my your our their his her its this that these those and or")


def stem(word: str) -> str:
    """The word without the ending of a plural or a past."""
    return re.sub(r"(?:ing|ed|es|s|d|ly)$", "", word) if len(word) > 4 else word


def content(tokens: Sequence[str]) -> list[str]:
    """The stems of the words that are neither values nor plain."""
    return [stem(token) for token in tokens if not is_value(token) and token not in PLAIN]


def english(text: str) -> bool:
    """True if a fifth of the words are plain English ones."""
    words = [word for word in text.casefold().split() if not is_value(word)]
    return 5 * sum(word in PLAIN for word in words) >= len(words)


def opposes(word: str, differing: Counter[str], asked: Container[str] = ()) -> bool:
    """True if a word that only one text has may turn its meaning round: a negation, one of two opposites, a unit, a
    number word, a doubt, or a negated form of a word that only the other has. One of the prompt may be repeated."""
    if word in asked and word not in _NEGATIONS and word not in _OPPOSITES:
        return False
    if word in TURNING or word in NUMBER_WORDS or word.startswith(SIGN) or _OPPOSITES.get(word) in differing:
        return True
    bare = (word.removeprefix(no) for no in ("un", "in", "im", "dis", "non", "mis") if word.startswith(no))
    return any(each in differing for each in bare)


def turned(one: Sequence[str], two: Sequence[str], against: Sequence[str]) -> bool:
    """True if two texts that differ in these words alone say the opposite: one of them is negated, or one word or unit
    stands for another."""
    if _NEGATIONS.issuperset(against):
        negated = [not (_NEGATIONS - {"yes"}).isdisjoint(text) for text in (one, two)]
        return negated[0] is not negated[1] and sum(word != "yes" for word in against) == 1
    lost, gained = ([word for word in against if word in text] for text in (one, two))
    if len(lost) == len(gained) == 1:
        return _OPPOSITES.get(lost[0]) == gained[0] or _UNITS.issuperset([*lost, *gained])
    return False


def thousandfold(one: str, two: str) -> bool:
    """True if one number is the other with a point for the thousands, as in 1.200."""
    try:
        less, more = sorted(Decimal(each.removeprefix("#")) for each in (one, two))
    except InvalidOperation:  # a name with a digit in it
        return False
    return less * 1000 == more


def moved(one: Sequence[str], two: Sequence[str]) -> str:
    """The first word that both texts have and that stands at another place among the others in a way that may change
    the meaning; empty if there is none. A phrase may move with its preposition, and a participle, as in "I booked the
    room" and "the room is booked"."""
    first, second = dict(_placed(one)), dict(_placed(two))
    kept = [word for word in first if word in second]
    if kept == [word for word in second if word in first] or len(kept) > MOVED_MAX:
        return kept[0][0] if len(kept) > MOVED_MAX else ""
    at = {word: place for place, word in enumerate(second)}
    for word, other in combinations(kept, 2):
        before, after = (first[word], first[other]), (second[word], second[other])
        if at[word] > at[other] and "" not in before and (before != after or before[0] == before[1]):
            return word[0]
    return ""


MOVED_MAX = 80
"""The most words of a text whose places are compared in pairs."""


def _placed(tokens: Sequence[str]) -> Iterator[tuple[tuple[str, int], str]]:
    """Each value and content word, with its number among equal ones, and the preposition that it stands behind: "-" if
    there is none, and empty for a participle, which may stand anywhere."""
    seen: Counter[str] = Counter()
    behind = "-"
    for token in tokens:
        if token in _PLACES:
            behind = token
        elif is_value(token) or token not in PLAIN:
            name = token if is_value(token) else stem(token)
            seen[name] += 1
            yield (name, seen[name]), "" if token.endswith("ed") and not is_value(token) else behind
        elif token not in _KEEPS:
            behind = "-"
