"""The weather in one city or several, compared or used in arithmetic if asked."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from chaoslab.model import _conditions
from chaoslab.model._story import Ask, CouldNot, Draft, Step, StepResult, Story
from chaoslab.model.skills.search import search_web_instead

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


def find_cities(clause: str) -> list[str]:
    """The cities that the clause names, in order."""
    names: list[str] = []
    # “in Fahrenheit” would be read as a city.
    clause = _SCALE.sub("", clause)
    for match in re.finditer(rf"\b(?i:in|for|at|of|between|about|over|near)\s+(?:the city of\s+)?({_CITIES})", clause):
        names += re.split(
            r"\s*(?:,\s*and|,|\band\b|&|\bor\b|\bvs\b\.?|\bversus\b|\bthan(?: in)?\b|\bwith\b)\s*(?:in\s+)?", match[1]
        )
    if not names:
        names = [name for name in re.findall(CITY, clause) if name.split()[0] not in _NOT_CITIES]
    if not names and (
        plain := re.search(
            r"\b(?:in|for|at)\s+(?!the\b|case\b|a\b|it\b)([a-zà-ÿ][\w'’ ,-]*)", re.sub(_TIME, "", clause, flags=re.I)
        )
    ):
        names = [name.strip().title() for name in re.split(r"\s*(?:,|\band\b|\bor\b)\s*", plain[1]) if name.strip()]
    if not names and (
        short := re.fullmatch(
            r"(?:weather|temperature|temp|forecast) ([a-zà-ÿ][\w ]+)", re.sub(_TIME, "", clause).strip(), re.I
        )
    ):
        names = [short[1].title()]
    cleaned = [re.sub(r"['’]s$", "", city).strip(" .,") for city in names]
    return list(dict.fromkeys(city for city in cleaned if city and city not in _NOT_CITIES))


def plan_clause(clause: str, draft: Draft) -> bool:
    is_followup = draft.get_last_topic() == "weather" and (
        re.match(r"(?:and|what about|how about|same for)\b", clause, re.I)
        or re.fullmatch(rf"(?:in|for) {_CITIES}", clause)
    )
    like = re.match(r"(?:what(?:'s| is) .+ like|how(?:'s| is) \w+)(?: (?:today|now|right now))?$", clause, re.I)
    named = find_cities(clause)
    if not (ABOUT.search(clause) or is_followup or (like and named)):
        return False
    if not named and plan_comparison(clause, draft):
        return True
    if not named and re.search(r"\bthere\b", clause) and draft.last:
        draft.last = (
            draft.add_step(
                Step("get the weather there", _make_referred_city_story(clause, draft), draft.last[-1:], "weather")
            ),
        )
        return True
    if not named:
        if re.search(r"\b(?:weather|temperature|forecast|rain|snow)", clause, re.I) and not draft.last:
            draft.add_step(Step("look up the weather", _fail_without_city))
            return True
        return False
    added = tuple(
        draft.add_step(Step(f"get the weather in {city}", make_weather_story(city, clause), topic="weather"))
        for city in named
    )
    draft.last = added
    if len(named) > 1 and (
        match := re.search(r"\b(warmer|hotter|warmest|hottest|colder|cooler|coldest|coolest|compare)", clause, re.I)
    ):
        draft.add_step(
            Step(
                "compare the temperatures",
                _make_comparison_story(cold=match[1].lower().startswith(("col", "coo"))),
                needs=added,
            )
        )
    return True


def plan_comparison(clause: str, draft: Draft) -> bool:
    """Compares the cities of the last question, as in "which one is warmest"."""
    match = re.search(r"\bwhich\b.*\b(warmer|hotter|warmest|hottest|colder|cooler|coldest|coolest)\b", clause, re.I)
    if match is None or len(draft.last) < 2 or draft.get_last_topic() != "weather":
        return False
    cold = match[1].lower().startswith(("col", "coo"))
    draft.last = (
        draft.add_step(Step("compare the temperatures", _make_comparison_story(cold=cold), draft.last, "weather")),
    )
    return True


def make_weather_story(city: str, clause: str) -> Any:
    def look_up_weather(_: Sequence[StepResult]) -> Story:
        try:
            reply = yield Ask("weather", {"city": city})
        except CouldNot as why:
            return (yield from search_web_instead(f"weather in {city}", instead_of=why))
        scale = _SCALE.search(clause)
        degrees_c = _get_temperature(reply)
        if degrees_c is None or not (scale and (scale["f"] or scale["f2"])):
            return make_step_result(reply, city, clause)
        computed = yield Ask("calculate", {"expression": to_fahrenheit_expression(degrees_c)})
        degrees_f = computed.get("result") if isinstance(computed, Mapping) else None
        return make_step_result(
            reply, city, clause, degrees_f=degrees_f if isinstance(degrees_f, int | float) else None
        )

    return look_up_weather


def to_fahrenheit_expression(degrees_c: float | str) -> str:
    """The expression that converts it, for a calculator."""
    return f"{degrees_c} * 9 / 5 + 32"


def _make_referred_city_story(clause: str, draft: Draft) -> Any:
    """A story on the city that "there" means: the first name in the finding that was not in the question."""
    earlier_label = draft.steps[draft.last[-1]].label

    def look_up_referred_city(results: Sequence[StepResult]) -> Story:
        finding = results[0].items[0] if results[0].items else results[0].text
        text = finding.split(": ", 1)[-1]
        named = [name for name in re.findall(rf"(?:is|in|at|to) ({CITY})", text) if name not in earlier_label]
        if not named:
            raise CouldNot("I do not know which city you mean")
        result: StepResult = yield from make_weather_story(named[0], clause)(())
        return result

    return look_up_referred_city


def _get_temperature(reply: Any) -> float | None:
    """The temperature of a weather reply with a `main.temp` or a `temp…` field."""
    if not isinstance(reply, Mapping):
        return None
    inner = reply.get("main")
    main: Mapping[str, Any] = inner if isinstance(inner, Mapping) else reply
    return next((main[key] for key in ("temp", "temperature", "temp_c", "temperature_c") if key in main), None)


def make_step_result(reply: Any, city: str, clause: str, *, degrees_f: float | None = None) -> StepResult:
    """The reply in a sentence, with the details that the clause asks for."""
    if not isinstance(reply, Mapping):
        return StepResult(f"The weather in {city}: {reply}", str(reply))
    inner = reply.get("main")
    main: Mapping[str, Any] = inner if isinstance(inner, Mapping) else reply
    degrees = _get_temperature(reply)
    sky = reply.get("weather") or reply.get("conditions") or reply.get("description")
    if isinstance(sky, list):
        sky = ", ".join(str(item.get("description", item)) if isinstance(item, Mapping) else str(item) for item in sky)
    temperature = f"{degrees} °C" if degrees_f is None else f"{round(degrees_f, 2)} °F ({degrees} °C)"
    city_name = reply.get("name") or city
    parts = [f"In {city_name} it is"]
    parts.append(temperature + (f" with {sky}" if sky else "") if degrees is not None else str(sky or reply))
    details = []
    if re.search(r"\bfeel", clause, re.I) and "feels_like" in main:
        details.append(f"it feels like {main['feels_like']} °C")
    if re.search(r"\bhumid", clause, re.I) and "humidity" in main:
        details.append(f"the humidity is {main['humidity']} %")
    wind = reply.get("wind")
    if re.search(r"\bwind", clause, re.I) and isinstance(wind, Mapping) and "speed" in wind:
        details.append(f"the wind blows at {wind['speed']} m/s")
    if re.search(r"\bpressure", clause, re.I) and "pressure" in main:
        details.append(f"the pressure is {main['pressure']} hPa")
    if re.search(r"\bumbrella", clause, re.I):
        details.append(f"you {'need' if has_precipitation(str(sky), 'rain') else 'do not need'} an umbrella")
    elif weather_word := re.search(r"\b(rain|snow)", clause, re.I):
        answer = "yes" if has_precipitation(str(sky), weather_word[1]) else "no"
        details.append(f"{answer}, it is {'' if answer == 'yes' else 'not '}{weather_word[1].lower()}ing")
    number = re.search(r"-?\d+(?:\.\d+)?", clause)
    if degrees is not None and number and re.match(r"is\b", clause, re.I) and _conditions.LIMIT.search(clause):
        holds = _conditions.make_condition(clause)(StepResult("", numbers=(degrees,)))
        details.append("yes, it is" if holds else "no, it is not")
    if re.search(r"\b(?:tomorrow|next week|weekend|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b", clause, re.I):
        details.append("that is the weather now, for I have no forecast")
    sentence = " ".join(parts) + "".join(f"; {item}" for item in details) + "."
    return StepResult(
        sentence,
        sentence,
        (degrees,) if isinstance(degrees, int | float) else (),
        items=(str(sky or ""), str(city_name)),
        parts={}
        if degrees is None
        else {r"temperatures?|degrees|how (?:warm|hot|cold)": f"It is {temperature} in {city_name}"},
    )


def has_precipitation(sky: str, kind: str) -> bool:
    signs = {"rain": r"rain|drizzle|shower|thunder", "snow": r"snow|sleet"}
    return re.search(signs[kind.lower()], sky, re.I) is not None


def _fail_without_city(_: Sequence[StepResult]) -> Story:
    raise CouldNot("you did not say for which city")
    yield Ask("", {})  # makes this function a generator


def _make_comparison_story(*, cold: bool) -> Any:
    def compare_temperatures(results: Sequence[StepResult]) -> Story:
        measured = [result for result in results if result.numbers]
        if len(measured) < 2:
            raise CouldNot("I do not know enough of them")
        first = (min if cold else max)(measured, key=lambda result: result.numbers[0])
        rest = [result for result in measured if result is not first]
        if all(result.numbers[0] == first.numbers[0] for result in rest):
            return StepResult("It is equally warm in all of them.", "It is equally warm in all of them.")
        than = " and ".join(f"in {result.items[1]} ({result.numbers[0]} °C)" for result in rest)
        order = "first" if first is results[0] else "later"
        sentence = f"It is {'colder' if cold else 'warmer'} in {first.items[1]} ({first.numbers[0]} °C) than {than}."
        return StepResult(sentence, sentence, items=(first.items[1], order))
        yield Ask("", {})  # makes this function a generator

    return compare_temperatures
