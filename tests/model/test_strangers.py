"""Requests as strangers word them: conditions, several people, other units, details, comparisons and dead ends."""

from collections.abc import Mapping
from typing import Any

import pytest

from chaoslab.model._chat import answer_conversation
from tests.model.seven_tools import DICE, TOOLS, reply_of, talk

Calls = list[tuple[str, dict[str, Any]]]


def sent(to: str, text: str) -> tuple[str, dict[str, Any]]:
    return ("send_message", {"to": to, "text": text})


def weather(city: str) -> tuple[str, dict[str, Any]]:
    return ("current_weather", {"city": city})


def summed(expression: str) -> tuple[str, dict[str, Any]]:
    return ("calculate", {"expression": expression})


def movie(title: str) -> tuple[str, dict[str, Any]]:
    return ("search_movies", {"query": title})


def made(title: str, start: str, end: str) -> tuple[str, dict[str, Any]]:
    return ("create_event", {"title": title, "start": f"2026-06-{start}:00", "end": f"2026-06-{end}:00"})


READ_ZOE = ("read_messages", {"sender": "Zoe"})
READ_ANA = ("read_messages", {"sender": "Ana"})

WORDED: list[tuple[str, Calls]] = [
    ('Tell Ana "I am late" and Bob "start without me"', [sent("Ana", "I am late"), sent("Bob", "start without me")]),
    ("Send 'yes' to Ana and 'no' to Bob.", [sent("Ana", "yes"), sent("Bob", "no")]),
    ("Tell Ana that lunch is off and Bob that dinner is on",
     [sent("Ana", "Lunch is off"), sent("Bob", "Dinner is on")]),
    ("Tell both Ana and Bob that it is over.", [sent("Ana", "It is over"), sent("Bob", "It is over")]),
    ("Tell Carla I'm away", [sent("Carla", "I'm away")]),
    ("let emma know that the contract is ready", [sent("emma", "The contract is ready")]),
    ("Write to Emma: I have signed. See you at 5.", [sent("Emma", "I have signed. See you at 5")]),
    ("Tell Ana thank you", [sent("Ana", "Thank you")]),
    ("Thank Ana for the tickets.", [sent("Ana", "Thank you for the tickets")]),
    ("Remind Bob about the review on Thursday", [sent("Bob", "Please remember the review on Thursday")]),
    ("Let everyone in #random know that pizza is here", [sent("#random", "Pizza is here")]),
    ("Send an email to bob@example.org saying hi", [sent("bob@example.org", "Hi")]),
    ("Message Bob that the weather in Oslo is terrible", [sent("Bob", "The weather in Oslo is terrible")]),
    (
        "Say happy birthday to Ana in Spanish.",
        [("translate", {"text": "Happy birthday", "target": "es"}), sent("Ana", "Happy birthday [es]")],
    ),
    (
        "Send Ana a happy birthday message in French",
        [("translate", {"text": "Happy birthday", "target": "fr"}), sent("Ana", "Happy birthday [fr]")],
    ),
    ("Look up the film Heat and tell Bob its rating", [movie("Heat"), sent("Bob", "Heat is rated 7.9")]),
    ("Find the movie Heat and text Bob what year it came out", [movie("Heat"), sent("Bob", "Heat came out in 1995")]),
    ("Send Carla the release year of Heat", [movie("Heat"), sent("Carla", "Heat came out in 1995")]),
    ("Text Ana the temperature in Oslo.", [weather("Oslo"), sent("Ana", "It is 12.4 °C in Oslo")]),
    ("Which film was released first, Alien or Heat? Message the answer to Carla.",
     [movie("Alien"), movie("Heat"), sent("Carla", "Alien came out first")]),
    ("Explain llamas and send the explanation to #zoo",
     [("search_web", {"query": "llamas"}), sent("#zoo", "All about llamas: What there is on llamas.")]),
    ("Any messages from Zoe? If so, forward them to Ana.", [READ_ZOE]),
    ("Any messages from Zoe? If not, tell Ana 'silence'.", [READ_ZOE, sent("Ana", "silence")]),
    ("If there is a message from Ana, answer her 'hi'", [READ_ANA, sent("Ana", "hi")]),
    ("If there are no messages from Zoe, tell Ana 'silence'", [READ_ZOE, sent("Ana", "silence")]),
    ("Is it raining in Rome? If so tell Ana to hide, otherwise tell her to dance.",
     [weather("Rome"), sent("Ana", "Please dance")]),
    ("If it is below freezing in Oslo, message Bob 'coat', otherwise message him 'no coat'.",
     [weather("Oslo"), sent("Bob", "no coat")]),
    ("If it's raining in either Rome or Oslo, message Bob 'wet'",
     [weather("Rome"), weather("Oslo"), sent("Bob", "wet")]),
    ("If it's raining in both Rome and Oslo, message Bob 'wet'", [weather("Rome"), weather("Oslo")]),
    ("If I have something on Friday, tell Bob 'busy'",
     [("list_events", {"start": "2026-06-05T00:00:00", "end": "2026-06-06T00:00:00"}), sent("Bob", "busy")]),
    ("Give me the temperature in Oslo and Rome, then tell Ana which one is warmest",
     [weather("Oslo"), weather("Rome"), sent("Ana", "It is warmer in Rome (24.1 °C) than in Oslo (12.4 °C).")]),
    ("What's the temperature in Oslo in Fahrenheit?", [weather("Oslo"), summed("12.4 * 9 / 5 + 32")]),
    ("How much colder is it in Oslo than in Rome?", [weather("Oslo"), weather("Rome"), summed("24.1 - 12.4")]),
    ("Add 15 to the temperature in Oslo", [weather("Oslo"), summed("12.4 + 15")]),
    ("What's the temp in Oslo and also in Rome?", [weather("Oslo"), weather("Rome")]),
    ("weather oslo", [weather("Oslo")]),
    ("Convert 100 km to miles", [summed("100 * 1000 / 1609.344")]),
    ("What's 72 degrees Fahrenheit in Celsius?", [summed("(72 - 32) * 5 / 9")]),
    ("How many feet are in 3 metres?", [summed("3 * 1 / 0.3048")]),
    ("Compute 8 * 7 and then subtract 10", [summed("8 * 7"), summed("56 - 10")]),
    ("What's 8 * 7 and what's its square root?", [summed("8 * 7"), summed("sqrt(56)")]),
    ("If I buy 3 books at 12.50 each, what do I pay?", [summed("3 * 12.50")]),
    ("How much is 144 divided by 12, times 3?", [summed("144 / 12 * 3")]),
    ("Create events for lunch tomorrow at noon and dinner tomorrow at 7pm",
     [made("Lunch", "02T12:00", "02T13:00"), made("Dinner", "02T19:00", "02T20:00")]),
    ("Put dinner with Carla on the calendar for tonight at 8", [made("Dinner with Carla", "01T20:00", "01T21:00")]),
    ("Block out tomorrow morning for focus time", [made("Focus time", "02T09:00", "02T10:00")]),
    ("Postpone the dentist by one hour",
     [("list_events", {"query": "dentist"}), made("Dentist", "02T10:00", "02T10:45"),
      ("delete_event", {"event_id": "e1"})]),
    ("Cancel the dentist and book it again for next Tuesday at 11",
     [("list_events", {"query": "dentist"}), ("delete_event", {"event_id": "e1"}),
      made("Dentist", "09T11:00", "09T12:00")]),
    ("If it is warmer in Rome than in Oslo, message Ana 'go'", [weather("Rome"), weather("Oslo"), sent("Ana", "go")]),
    ("If it is warmer in Oslo than in Rome, message Ana 'go'", [weather("Oslo"), weather("Rome")]),
    ("Unless it rains in Rome, tell Ana we play outside", [weather("Rome"), sent("Ana", "We play outside")]),
    ("Unless it rains in Oslo, tell Ana we play outside", [weather("Oslo")]),
    ("If 8 * 7 is 56, tell Ana 'correct'", [summed("8 * 7"), sent("Ana", "correct")]),
    ("If 8 * 7 is 57, tell Ana 'correct'", [summed("8 * 7")]),
    ("If the weather in Oslo is nice, tell Ana 'come'", []),
    ("What's 20% off 80?", [summed("80 * (1 - 20 / 100)")]),
    ("What percentage is 45 of 180?", [summed("45 / 180 * 100")]),
    ("Weather in Oslo please, and 2*4", [weather("Oslo"), summed("2*4")]),
    ("Ask Bob when his flight lands.", [sent("Bob", "When his flight lands?")]),
    ('Reply to the latest message with "ok"', [("read_messages", {"limit": 1}), sent("Dmitri", "ok")]),
    ("If Ana has written to me, reply 'got it'.", [READ_ANA, sent("Ana", "got it")]),
    ("Is it raining in Rome? Let Ana know either way.",
     [weather("Rome"), sent("Ana", "In Rome it is 24.1 °C with clear sky; no, it is not raining.")]),
    ("Find the film Heat and schedule a movie night on Saturday at 8pm",
     [movie("Heat"), made("Movie night", "06T20:00", "06T21:00")]),
    ("When am I having lunch with Ana?", [("list_events", {"query": "lunch with Ana"})]),
    ("Give me the ratings: compare Alien and Heat", [movie("Alien"), movie("Heat")]),
    ("What time is it?", []),
    ("How many days until Friday?", []),
    ("Say hello to Ana", [sent("Ana", "Hello")]),
    ("Ask Bob if he wants tea", [sent("Bob", "Do you want tea?")]),
    ("Send translate to Ana", []),
    ("What is 2+2? Send Ana a message", [summed("2+2"), sent("Ana", "2+2 = 4")]),
    ("Search for llamas and send the plot to Ana",
     [("search_web", {"query": "llamas"}), sent("Ana", "All about llamas: What there is on llamas.")]),
    ("Show messages from everyone", [("read_messages", {})]),
    ("Cancel my lunch with Ana; what did she write?",
     [("list_events", {"query": "lunch with Ana"}), READ_ANA, ("delete_event", {"event_id": "e2"})]),
    ("When is my dentist appointment? Cancel it.",
     [("list_events", {"query": "dentist"}), ("list_events", {"query": "Dentist"}),
      ("delete_event", {"event_id": "e1"})]),
    ("Cancel 'Team meeting'", [("list_events", {"query": "Team meeting"}), ("delete_event", {"event_id": "e3"})]),
    ("Cancel my next meeting",
     [("list_events", {"start": "2026-06-01T09:00:00"}), ("delete_event", {"event_id": "e1"})]),
    ("Cancel the Monday at the dentist at 10", [("list_events", {
        "start": "2026-06-08T00:00:00", "end": "2026-06-09T00:00:00", "query": "dentist"})]),
    ("What's on my calendar tomorrow at 9 in the morning?",
     [("list_events", {"start": "2026-06-02T00:00:00", "end": "2026-06-02T12:00:00"})]),
    ("Book a party tomorrow from 10pm to 1am",
     [("create_event", {"title": "Party", "start": "2026-06-02T22:00:00", "end": "2026-06-03T01:00:00"})]),
    ("Schedule the on tomorrow at noon", [made("Event", "02T12:00", "02T13:00")]),
    ("Schedule lunch tomorrow at noon and add it to my calendar", [made("Lunch", "02T12:00", "02T13:00")]),
    ("Move the dentist to Friday from 10 to 11",
     [("list_events", {"query": "dentist"}), made("Dentist", "05T10:00", "05T11:00"),
      ("delete_event", {"event_id": "e1"})]),
    ("Which film is better, 'Alien' or 'Heat'?", [movie("Alien"), movie("Heat")]),
    ("When was Zardoz released?", [movie("Zardoz"), ("search_web", {"query": "When was Zardoz released"})]),
    ("Translate the weather in Oslo to French",
     [weather("Oslo"), ("translate", {"text": "In Oslo it is 12.4 °C with light rain.", "target": "fr"})]),
    ("What's the weather in Oslo in French?",
     [weather("Oslo"), ("translate", {"text": "In Oslo it is 12.4 °C with light rain.", "target": "fr"})]),
    ("Cancel it", []),
    ("Tell Ana when", [sent("Ana", "When")]),
    ("What is 2+2? Is it hot?", [summed("2+2"), ("search_web", {"query": "Is it hot"})]),
    ("How many miles are in 3 kg?", [("search_web", {"query": "How many miles are in 3 kg"})]),
    ("Search for llamas. Show me the top ones", [("search_web", {"query": "llamas"})]),
    ('Search for "?"', []),
    ("What is 2+2? What is 3+3? Add them.", [summed("2+2"), summed("3+3"), summed("4 + 42")]),
    ("What is 2+2? What is 3+3 plus the result?", [summed("2+2"), summed("3+3 + 4")]),
    ("Read the messages from Zoe; if so; tell Ana 'hi'", [READ_ZOE]),
    ("If it rains in Rome, tell Ana 'wet'. Otherwise tell her 'dry'.", [weather("Rome"), sent("Ana", "dry")]),
    ("Read the messages from Ana, then delete the dentist appointment if the temperature in Oslo is above 20",
     [READ_ANA, weather("Oslo")]),
]  # fmt: skip


@pytest.mark.parametrize(("prompt", "calls"), WORDED, ids=[prompt for prompt, _ in WORDED])
def test_the_wording_of_a_stranger_is_understood(prompt: str, calls: Calls) -> None:
    assert talk(prompt).calls == calls


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("What time is it?", "Monday 2026-06-01, 09:00"),
        ("How many days until Friday?", "4 days"),
        ("Am I free on Friday?", "You are not free."),
        ("Am I free on Thursday?", "You are free"),
        ("Will I need an umbrella in Oslo?", "you need an umbrella"),
        ("Is it warmer than 20 degrees in Oslo?", "no, it is not"),
        ("What will the weather be in Oslo tomorrow?", "I have no forecast"),
        ("Is Alien rated higher than Heat?", "Alien is rated higher."),
        ("Schedule standup every day at 9", "could not"),
        ("If it rains, tell Ana 'wet'.", "I cannot tell whether it rains, so I did nothing about it."),
        ("Check the weather in Oslo; if not", "no tool for “if not”"),
        ("Who wrote Faust? What's the weather there?", "I do not know which city you mean"),
        ("Is it warmer in Lima or in Quito?", "It is equally warm in all of them."),
        ("What is my next meeting?", "There is one event: Dentist"),
        ("Delete my calendar", "you did not say which event"),
        ("Move the yoga class to Friday at 10", "I found no event matching “yoga class”"),
        ("Move the dentist appointment to Ana", "I do not know to when"),
        ("Which film is better, Alien or Zardoz?", "one of them was not found"),
        ("Which film is better, 'Heat' or 'heat'?", "In that they are equal."),
        ("Translate it to French", "there is no text to translate"),
        ("Tell Ana", "you did not say what to tell Ana"),
        ("Send translate to Ana", "I have no tool for “Send translate to Ana”"),
        ('Search for "?"', "I have no tool for “Search for ?”"),
        ("Cancel it", "I have no tool for “Cancel it”"),
        ("Read the messages from Zoe and double it", "there is no number to reckon with"),
    ],
)
def test_the_answer_says_what_was_asked(prompt: str, said: str) -> None:
    assert said in talk(prompt).answer


WIND = {"wind": {"speed": 3}, "main": {"temp": 9, "pressure": 990}, "weather": "rain"}
ODD_REPLIES: list[tuple[str, dict[str, Any], str]] = [
    ("How are the wind and pressure in Bergen?", {"current_weather": WIND},
     "In Bergen it is 9 °C with rain; the wind blows at 3 m/s; the pressure is 990 hPa."),
    ("What is the weather in Oslo in Fahrenheit?", {"current_weather": [12]}, "The weather in Oslo: [12]"),
    ("What's the weather in Oslo?", {"current_weather": ""}, "directly (the tool answered nothing), but"),
    ("What's the weather in Oslo?", {"current_weather": "Error: no such {city}"}, "directly (no such {city}), but"),
    ("If it rains in Atlantis, tell Ana 'wet'.", {"search_web": "Error: down"},
     "I do not know whether it rains in Atlantis"),
    ("Search for the capital of Norway and tell me the weather there",
     {"search_web": ["Norway: The capital is Oslo"]}, "In Oslo it is 12.4 °C with light rain."),
    ("Find the movie Heat", {"search_movies": ["Heat", "Heat 2"]}, "I found these movies: Heat; Heat 2."),
    ("Find the movie Heat", {"search_movies": "Error: down"}, "directly (down), but a web search says"),
    ("Translate 'good night' to French", {"translate": "bonne nuit"}, "“good night” in French is “bonne nuit”."),
    ("Convert 100 km to miles", {"calculate": "many"}, "100 * 1000 / 1609.344 = many."),
    ("What is 2+2?", {"calculate": {"result": 4, "text": "four"}}, "2+2 = 4."),
    ("Book lunch tomorrow at noon", {"create_event": "done"}, "I added “done” to the calendar."),
    ("Book lunch tomorrow at noon", {"create_event": {"title": "Lunch", "start": "2026-06-02T12:00"}},
     "I added “Lunch” on Tuesday 2026-06-02, 12:00."),
    ("Cancel the dentist at 10", {"list_events": [{"title": "Dentist", "start": "soon"}]}, "I found no event matching"),
    ("Move the dentist to Friday at 10", {"delete_event": "Error: locked"},
     "“Dentist” is now also at the new time, but the old one could not be deleted: locked."),
    ("Roll a die with six sides", {"roll_dice": {"rolled": {"by": "me"}, "each": [4, 2]}},
     "Roll dice: rolled: by me, each: 4; 2."),
]  # fmt: skip


@pytest.mark.parametrize(("prompt", "odd", "said"), ODD_REPLIES)
def test_a_reply_of_another_form_is_told_as_it_is(prompt: str, odd: dict[str, Any], said: str) -> None:
    def replies(name: str, arguments: Mapping[str, Any], _: int) -> Any:
        return odd[name] if name in odd else reply_of(name, arguments)

    assert said in talk(prompt, [*TOOLS, DICE], replies).answer


def nothing(name: str, arguments: Mapping[str, Any], _: int) -> Any:
    return {"search_information": {}, "error": "no results"} if name == "search_web" else reply_of(name, arguments)


@pytest.mark.parametrize(
    "prompt",
    [
        "Search for flying zebras and send the result to Bob",
        "Find the movie Zardoz and tell Bob about it",
        "Read the messages from Zoe and forward them to Bob",
    ],
)
def test_what_was_not_found_is_not_sent(prompt: str) -> None:
    done = talk(prompt, replies=nothing)
    assert [name for name, _ in done.calls if name == "send_message"] == []
    assert "I could not send a message to Bob: nothing was found" in done.answer


def test_the_noise_of_binary_fractions_is_not_shown() -> None:
    noisy = {"expression": "0.1 + 0.2", "result": 0.30000000000000004, "text": "0.30000000000000004"}
    assert talk("What is 0.1 + 0.2?", replies=lambda *_: noisy).answer == "0.1 + 0.2 = 0.3."
    root = {"expression": "sqrt(2)", "result": 1.4142135623730951, "text": "1.4142135623730951"}
    assert "1.4142135623730951" in talk("What is the square root of 2?", replies=lambda *_: root).answer


def test_a_refusal_is_told_in_the_services_words_without_its_json() -> None:
    refusal = 'Error: weather answered 404: {"cod":"404","message":"city not found"}'
    told = talk("What's the weather in Narnia?", replies=lambda *_: refusal).answer
    assert told == "I could not get the weather in Narnia: weather answered 404: city not found."


def test_the_web_is_no_help_when_it_speaks_of_something_else() -> None:
    def replies(name: str, _: Mapping[str, Any], __: int) -> Any:
        games = {"title": "Olympic Games", "link": "x", "snippet": "The first modern Games took place in Oslo."}
        return {"organic_results": [games]} if name == "search_web" else "Error: weather answered 503: down"

    done = talk("What's the weather in Oslo?", replies=replies)
    assert done.answer == "I could not get the weather in Oslo: weather answered 503: down."


@pytest.mark.parametrize("arguments", ['{"to": "Ana"}', "{"])
def test_without_its_request_the_model_still_tells_what_it_did(arguments: str) -> None:
    call = {"id": "1", "function": {"name": "send_message", "arguments": arguments}}
    told = answer_conversation(
        [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "1", "content": "{}"}]
    )
    assert "could not finish" in told.content
    assert "send_message" in told.content
