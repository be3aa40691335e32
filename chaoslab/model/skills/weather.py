"""The weather in one city or several, compared or used in arithmetic if asked."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from chaoslab.model import _conditions
from chaoslab.model._story import Ask, CouldNot, Draft, Step, StepResult, Story
from chaoslab.model.skills.search import looked_up

ABOUT = re.compile(
    r"\b(?:weather|temperatures?|forecast|temp|rain(?:s|ing|y)?|snow(?:s|ing|y)?|sunny|cloudy|chilly|wind(?:y|s)?"
    r"|humid(?:ity)?|degrees|umbrella|"
    r"(?:how|is it|how's it) (?:\w+ )?(?:hot|cold|warm)|(?:warm|cold|hott|cool)(?:er|est)|hot|cold|warm)\b|°\s?[CF]\b",
    re.I,
)
_SCALE = re.compile(
    r"(?:,?\s*\b(?:in|as)\s+)?(?:(?:degrees\s+)?\b(?P<f>fahrenheit)\b|(?:degrees\s+)?\bcelsius\b|°\s?(?P<f2>F)\b"
    r"|°\s?C\b)",
    re.I,
)
_CAPITAL = r"[A-ZÀ-ÞŁŚŽČŠİ][\w'’.-]*"
CITY = rf"{_CAPITAL}(?:[ -](?:(?:de|do|da|del|la|el|of|den|am|on|sur|upon)[ -])*{_CAPITAL})*"
_CITIES = rf"{CITY}(?:\s*(?:,\s*and|,|and|&|or|vs\.?|versus|than(?: in)?|with)\s*(?:in\s+)?{CITY})*"
_WORDS = (
    "I Is It What How Whats The And Will Would Do Does Tell Give Show Check Get Find Compare Today Tomorrow Celsius "
    "Weather Which Where If "
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday Add Calculate Temperature Fetch "
    "Report Look Please Current Forecast Should Any "
    "Average Sum Are Can Could Let See Tonight Now My Average Difference Take Fahrenheit Send Message Text Write "
    "Post Put"
)
_NOT_CITIES = frozenset(_WORDS.split())
_TIME = (
    r"\b(?:today|now|right now|at the moment|currently|tomorrow|tonight|this (?:morning|afternoon|"
    r"evening|week)|please|like|outside)\b.*$"
)


def cities(clause: str) -> list[str]:
    """The cities that the clause names, in order."""
    found: list[str] = []
    clause = _SCALE.sub("", clause)
    for match in re.finditer(rf"\b(?i:in|for|at|of|between|about|over|near)\s+(?:the city of\s+)?({_CITIES})", clause):
        found += re.split(
            r"\s*(?:,\s*and|,|\band\b|&|\bor\b|\bvs\b\.?|\bversus\b|\bthan(?: in)?\b|\bwith\b)\s*(?:in\s+)?", match[1]
        )
    if not found:
        found = [part for part in re.findall(CITY, clause) if part.split()[0] not in _NOT_CITIES]
    if not found and (
        plain := re.search(
            r"\b(?:in|for|at)\s+(?!the\b|case\b|a\b|it\b)([a-zà-ÿ][\w'’ ,-]*)", re.sub(_TIME, "", clause, flags=re.I)
        )
    ):
        found = [part.strip().title() for part in re.split(r"\s*(?:,|\band\b|\bor\b)\s*", plain[1]) if part.strip()]
    if not found and (
        short := re.fullmatch(
            r"(?:weather|temperature|temp|forecast) ([a-zà-ÿ][\w ]+)", re.sub(_TIME, "", clause).strip(), re.I
        )
    ):
        found = [short[1].title()]
    kept = [re.sub(r"['’]s$", "", city).strip(" .,") for city in found]
    return list(dict.fromkeys(city for city in kept if city and city not in _NOT_CITIES))


def read(clause: str, draft: Draft) -> bool:
    again = draft.topic() == "weather" and (
        re.match(r"(?:and|what about|how about|same for)\b", clause, re.I)
        or re.fullmatch(rf"(?:in|for) {_CITIES}", clause)
    )
    like = re.match(r"(?:what(?:'s| is) .+ like|how(?:'s| is) \w+)(?: (?:today|now|right now))?$", clause, re.I)
    named = cities(clause)
    if not (ABOUT.search(clause) or again or (like and named)):
        return False
    if not named and compare_last(clause, draft):
        return True
    if not named and re.search(r"\bthere\b", clause) and draft.last:
        draft.last = (draft.add(Step("get the weather there", _there(clause, draft), draft.last[-1:], "weather")),)
        return True
    if not named:
        if re.search(r"\b(?:weather|temperature|forecast|rain|snow)", clause, re.I) and not draft.last:
            draft.add(Step("look up the weather", _nowhere))
            return True
        return False
    added = tuple(draft.add(Step(f"get the weather in {city}", story(city, clause), topic="weather")) for city in named)
    draft.last = added
    if len(named) > 1 and (
        match := re.search(r"\b(warmer|hotter|warmest|hottest|colder|cooler|coldest|coolest|compare)", clause, re.I)
    ):
        draft.add(
            Step("compare the temperatures", _comparison(cold=match[1].lower().startswith(("col", "coo"))), needs=added)
        )
    return True


def compare_last(clause: str, draft: Draft) -> bool:
    """Compares the cities of the last question, as in "which one is warmest"."""
    match = re.search(r"\bwhich\b.*\b(warmer|hotter|warmest|hottest|colder|cooler|coldest|coolest)\b", clause, re.I)
    if match is None or len(draft.last) < 2 or draft.topic() != "weather":
        return False
    cold = match[1].lower().startswith(("col", "coo"))
    draft.last = (draft.add(Step("compare the temperatures", _comparison(cold=cold), draft.last, "weather")),)
    return True


def story(city: str, clause: str) -> Any:
    def act(_: Sequence[StepResult]) -> Story:
        try:
            reply = yield Ask("weather", {"city": city})
        except CouldNot as why:
            return (yield from looked_up(f"weather in {city}", instead_of=why))
        scale = _SCALE.search(clause)
        degrees_c = _degrees(reply)
        if degrees_c is None or not (scale and (scale["f"] or scale["f2"])):
            return result_of(reply, city, clause)
        computed = yield Ask("calculate", {"expression": in_fahrenheit(degrees_c)})
        degrees_f = computed.get("result") if isinstance(computed, Mapping) else None
        return result_of(reply, city, clause, degrees_f=degrees_f if isinstance(degrees_f, int | float) else None)

    return act


def in_fahrenheit(degrees_c: float | str) -> str:
    """The expression that converts it, for a calculator."""
    return f"{degrees_c} * 9 / 5 + 32"


def _there(clause: str, draft: Draft) -> Any:
    """A story on the city that "there" means: the first name in the finding that was not in the question."""
    asked = draft.steps[draft.last[-1]].label

    def act(found: Sequence[StepResult]) -> Story:
        told_of = found[0].items[0] if found[0].items else found[0].text
        text = told_of.split(": ", 1)[-1]
        named = [name for name in re.findall(rf"(?:is|in|at|to) ({CITY})", text) if name not in asked]
        if not named:
            raise CouldNot("I do not know which city you mean")
        found_there: StepResult = yield from story(named[0], clause)(())
        return found_there

    return act


def _degrees(reply: Any) -> float | None:
    """The temperature of a weather reply with a `main.temp` or a `temp…` field."""
    if not isinstance(reply, Mapping):
        return None
    inner = reply.get("main")
    main: Mapping[str, Any] = inner if isinstance(inner, Mapping) else reply
    return next((main[key] for key in ("temp", "temperature", "temp_c", "temperature_c") if key in main), None)


def result_of(reply: Any, city: str, clause: str, *, degrees_f: float | None = None) -> StepResult:
    """The reply in a sentence, with the details that the clause asks for."""
    if not isinstance(reply, Mapping):
        return StepResult(f"The weather in {city}: {reply}", str(reply))
    inner = reply.get("main")
    main: Mapping[str, Any] = inner if isinstance(inner, Mapping) else reply
    degrees = _degrees(reply)
    sky = reply.get("weather") or reply.get("conditions") or reply.get("description")
    if isinstance(sky, list):
        sky = ", ".join(str(part.get("description", part)) if isinstance(part, Mapping) else str(part) for part in sky)
    shown = f"{degrees} °C" if degrees_f is None else f"{round(degrees_f, 2)} °F ({degrees} °C)"
    place = reply.get("name") or city
    parts = [f"In {place} it is"]
    parts.append(shown + (f" with {sky}" if sky else "") if degrees is not None else str(sky or reply))
    more = []
    if re.search(r"\bfeel", clause, re.I) and "feels_like" in main:
        more.append(f"it feels like {main['feels_like']} °C")
    if re.search(r"\bhumid", clause, re.I) and "humidity" in main:
        more.append(f"the humidity is {main['humidity']} %")
    wind = reply.get("wind")
    if re.search(r"\bwind", clause, re.I) and isinstance(wind, Mapping) and "speed" in wind:
        more.append(f"the wind blows at {wind['speed']} m/s")
    if re.search(r"\bpressure", clause, re.I) and "pressure" in main:
        more.append(f"the pressure is {main['pressure']} hPa")
    if re.search(r"\bumbrella", clause, re.I):
        more.append(f"you {'need' if wet(str(sky), 'rain') else 'do not need'} an umbrella")
    elif asked := re.search(r"\b(rain|snow)", clause, re.I):
        answer = "yes" if wet(str(sky), asked[1]) else "no"
        more.append(f"{answer}, it is {'' if answer == 'yes' else 'not '}{asked[1].lower()}ing")
    number = re.search(r"-?\d+(?:\.\d+)?", clause)
    if degrees is not None and number and re.match(r"is\b", clause, re.I) and _conditions.LIMIT.search(clause):
        holds = _conditions.condition(clause)(StepResult("", numbers=(degrees,)))
        more.append("yes, it is" if holds else "no, it is not")
    if re.search(r"\b(?:tomorrow|next week|weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b", clause, re.I):
        more.append("that is the weather now, for I have no forecast")
    sentence = " ".join(parts) + "".join(f"; {part}" for part in more) + "."
    return StepResult(
        sentence,
        sentence,
        (degrees,) if isinstance(degrees, int | float) else (),
        items=(str(sky or ""), str(place)),
        parts={} if degrees is None else {r"temperatures?|degrees|how (?:warm|hot|cold)": f"It is {shown} in {place}"},
    )


def wet(sky: str, what: str) -> bool:
    signs = {"rain": r"rain|drizzle|shower|thunder", "snow": r"snow|sleet"}
    return re.search(signs[what.lower()], sky, re.I) is not None


def _nowhere(_: Sequence[StepResult]) -> Story:
    raise CouldNot("you did not say for which city")
    yield Ask("", {})  # makes this function a generator


def _comparison(*, cold: bool) -> Any:
    def act(found: Sequence[StepResult]) -> Story:
        known = [one for one in found if one.numbers]
        if len(known) < 2:
            raise CouldNot("I do not know enough of them")
        first = (min if cold else max)(known, key=lambda one: one.numbers[0])
        others = [one for one in known if one is not first]
        if all(one.numbers[0] == first.numbers[0] for one in others):
            return StepResult("It is equally warm in all of them.", "It is equally warm in all of them.")
        than = " and ".join(f"in {one.items[1]} ({one.numbers[0]} °C)" for one in others)
        order = "first" if first is found[0] else "later"
        told = f"It is {'colder' if cold else 'warmer'} in {first.items[1]} ({first.numbers[0]} °C) than {than}."
        return StepResult(told, told, items=(first.items[1], order))
        yield Ask("", {})  # makes this function a generator

    return act
