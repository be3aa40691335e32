"""Conditions of steps, read from the words of a condition or of a question that "if so" refers to."""

import re

from chaoslab.model._story import Condition, StepResult

SKY = {
    "rain": r"rain|drizzle|shower|thunder", "umbrella": r"rain|drizzle|shower|thunder", "wet": r"rain|drizzle|shower",
    "snow": r"snow|sleet", "sun": r"clear|sun", "clear": r"clear|sun", "cloud": r"cloud|overcast",
}  # fmt: skip
_MORE, _LESS = (
    r"above|over|more than|warmer than|higher than|greater than|hotter than|exceeds|at least|larger than|bigger "
    r"than|better than|>",
    r"below|under|less than|colder than|lower than|cooler than|smaller than|fewer than|worse than|<",
)
LIMIT = re.compile(rf"(?:{_MORE})|(?P<less>{_LESS})", re.I)
_NOT = re.compile(r"\b(?:not|no|nothing|none|nobody|cannot|never)\b|n['’]t\b", re.I)
_QUESTIONS = (
    (r"^there(?: is|['’]s| are)(?: not|n['’]t)?(?: any| an?| no)?\s+(.+)$", r"are there any \1"),
    (r"^(?:i|we)(?: do not| don['’]t)? have(?: no\b)?\s+(.+)$", r"do I have \1"),
    (r"^(?:i am|i['’]m|we are|we['’]re)(?: not)? (free|busy|available|booked)\b(.*)$", r"am I \1\2"),
    (r"^(\w+) (?:has|have)(?: not|n['’]t)? (written|sent|replied|answered|messaged)\b(.*)$", r"has \1 \2\3"),
    (r"^(\w+) (?:wrote|messaged|texted|replied|answered)\b(.*)$", r"did \1 write\2"),
    (r"^(?:it|that)(?: is|['’]s) (?:not )?(.+)$", r"is it \1"),
)


def replace_freezing_words(text: str) -> str:
    """The words with "freezing" replaced by its number."""
    text = re.sub(r"\b(above|below|under|over) (?:freezing(?: point)?|zero)\b", r"\1 0 degrees", text, flags=re.I)
    return re.sub(r"\b(is|it['’]s) freezing\b", r"\1 below 0 degrees", text, flags=re.I)


def condition_to_question(text: str) -> str:
    """The condition as a question: "there are no messages from Zoe" becomes "are there any messages …"."""
    for pattern, replacement in _QUESTIONS:
        if re.match(pattern, text, re.I):
            return re.sub(pattern, replacement, text, flags=re.I)
    return text


def is_measurable_condition(text: str) -> bool:
    """True if the words name a number or a kind of sky; "it is nice out" and "the sum is right" do not."""
    return re.search(rf"\d|\b(?:{'|'.join(SKY)})", text, re.I) is not None


def make_condition(text: str) -> Condition:
    """A test of a finding against the words: beyond a number, a kind of sky, or present at all."""
    # The last number is the bound, as in “one of the 2 cities is warmer than 20 degrees”.
    number = re.search(r"-?\d+(?:\.\d+)?(?=\D*$)", text)
    limit = LIMIT.search(text)
    denied = _NOT.search(text) is not None
    if limit and number:
        bound, less = float(number[0]), bool(limit["less"])

        def meets_number_bound(result: StepResult) -> bool:
            return (
                bool(result.numbers)
                # `is not` turns the comparison round where the words deny it.
                and (result.numbers[0] < bound if less else result.numbers[0] > bound) is not denied
            )

        return meets_number_bound
    equal = re.search(r"\b(?:is|equals|makes)(?: not)?(?: equal to| exactly)? (-?\d+(?:\.\d+)?)\W*$", text, re.I)
    if equal:
        expected = float(equal[1])
        return lambda result: (bool(result.numbers) and result.numbers[0] == expected) is not denied
    if sign := re.search(rf"\b({'|'.join(SKY)})", text, re.I):
        pattern = SKY[sign[1].lower()]

        def matches_sky(result: StepResult) -> bool:
            return (
                re.search(pattern, result.items[0] if result.items else result.text, re.I) is not None
            ) is not denied

        return matches_sky
    # “free” holds where nothing is there, any other word where something is.
    empty = denied is not (re.search(r"\b(?:free|available)\b", text, re.I) is not None)

    def matches_presence(result: StepResult) -> bool:
        return result.nothing is empty

    return matches_presence
