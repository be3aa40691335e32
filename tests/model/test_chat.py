"""The offline model as a tool user: whole conversations, with what it must call and what its answer must say."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoslab.model._chat import answer_conversation
from tests.model.seven_tools import DICE, MONEY, STRING, SYSTEM, TOOLS, WORD, reply_of, talk, tool

Calls = list[tuple[str, dict[str, Any]]]


def weather(*cities: str) -> Calls:
    return [("current_weather", {"city": city}) for city in cities]


def sums(*expressions: str) -> Calls:
    return [("calculate", {"expression": expression}) for expression in expressions]


def sent(to: str, text: str) -> Calls:
    return [("send_message", {"to": to, "text": text})]


def event(title: str, start: str, end: str) -> Calls:
    return [("create_event", {"title": title, "start": f"2026-06-{start}:00", "end": f"2026-06-{end}:00"})]


def listed(query: str = "", start: str = "", end: str = "") -> Calls:
    bounds = {"start": f"2026-06-{start}T00:00:00", "end": f"2026-06-{end}T00:00:00"} if start else {}
    return [("list_events", {**bounds, **({"query": query} if query else {})})]


def deleted(key: str) -> Calls:
    return [("delete_event", {"event_id": key})]


def read(**arguments: Any) -> Calls:
    return [("read_messages", arguments)]


def search(query: str, **more: int) -> Calls:
    return [("search_web", {"query": query, **more})]


def movies(query: str, **more: int) -> Calls:
    return [("search_movies", {"query": query, **more})]


def translated(text: str, target: str, **more: str) -> Calls:
    return [("translate", {"text": text, "target": target, **more})]


OSLO = "In Oslo it is 12.4 °C with light rain."
PROMPTS: list[tuple[str, Calls, list[str]]] = [
    ("What's the weather in Oslo?", weather("Oslo"), ["12.4 °C", "light rain"]),
    ("how hot is it in madrid", weather("Madrid"), ["28.0 °C"]),
    ("Could you please tell me the current temperature in New York?", weather("New York"), ["New York", "18.5"]),
    ("Is it raining in São Paulo right now?", weather("São Paulo"), ["São Paulo", "not raining"]),
    (
        "Compare the weather in Oslo, Rome and Madrid.",
        weather("Oslo", "Rome", "Madrid"),
        ["12.4", "24.1", "warmer in Madrid"],
    ),
    ("Is it colder in Oslo or Rome?", weather("Oslo", "Rome"), ["colder in Oslo"]),
    ("What's the weather like in Madrid? And what about Rome?", weather("Madrid", "Rome"), ["28.0", "24.1"]),
    ("How humid is it in Bergen?", weather("Bergen"), ["humidity is 80 %"]),
    ("What does the weather in Bergen feel like?", weather("Bergen"), ["it feels like 9.5 °C"]),
    ("What does the weather in Oslo feel like?", weather("Oslo"), ["12.4 °C"]),  # where the service does not say it
    ("What is 17 times 24?", sums("17 * 24"), ["17 * 24 = 408."]),
    ("What's 15% of 80?", sums("15 / 100 * 80"), ["= 12."]),
    ("Calculate the square root of 144 plus twelve squared.", sums("sqrt(144) + 12 ^ 2"), ["156"]),
    ("3 to the power of 5", sums("3 ^ 5"), ["42"]),
    ("What is the sum of 12, 7 and 30?", sums("12 + 7 + 30"), ["42"]),
    ("What's 1,234 + 5,678?", sums("1234 + 5678"), ["42"]),
    ("Please work out five plus seven times three", sums("5 + 7 * 3"), ["42"]),
    ("What is 8 * 7, and then double it?", sums("8 * 7", "2 * 56"), ["= 56", "= 112"]),
    (
        "What is 8 * 7, and then double it? Send both results to Ana.",
        sums("8 * 7", "2 * 56") + sent("Ana", "8 * 7 = 56 2 * 56 = 112"),
        ["I sent Ana"],
    ),
    ("Add the temperatures of Oslo and Rome", weather("Oslo", "Rome") + sums("12.4 + 24.1"), ["36.5"]),
    (
        "What is the average of the temperatures in Oslo, Rome and Madrid?",
        weather("Oslo", "Rome", "Madrid") + sums("(12.4 + 24.1 + 28) / 3"),
        ["42"],
    ),
    ("Translate 'good morning' to French.", translated("good morning", "fr"), ["good morning [fr]"]),
    ("How do you say thank you in Spanish?", translated("thank you", "es"), ["thank you [es]"]),
    ("What does 'bonjour' mean in English?", translated("bonjour", "en"), ["bonjour [en]"]),
    ("Translate the sentence I love you into Italian", translated("I love you", "it"), ["I love you [it]"]),
    (
        'Translate "Where is the station?" from English into Japanese, and also calculate 2+2.',
        translated("Where is the station?", "ja", source="en") + sums("2+2"),
        ["[ja]", "2+2 = 4"],
    ),
    ("Translate 'hi' to French and German", translated("hi", "fr") + translated("hi", "de"), ["hi [fr]", "hi [de]"]),
    (
        "Schedule a dentist appointment tomorrow at 3pm for 45 minutes",
        event("Dentist appointment", "02T15:00", "02T15:45"),
        ["Dentist appointment", "2026-06-02, 15:00–15:45"],
    ),
    (
        "Book lunch with Ana on Friday from 12 to 13:30",
        event("Lunch with Ana", "05T12:00", "05T13:30"),
        ["12:00–13:30"],
    ),
    (
        'Create an event called "Budget review" on June 5th at 14:30',
        event("Budget review", "05T14:30", "05T15:30"),
        ["Budget review"],
    ),
    (
        "Put a team meeting on my calendar next Tuesday at 10am",
        event("Team meeting", "09T10:00", "09T11:00"),
        ["Tuesday 2026-06-09"],
    ),
    ("Remind me to call mom tomorrow at 6pm", event("Call mom", "02T18:00", "02T19:00"), ["Call mom"]),
    ("What's on my calendar tomorrow?", listed(start="02", end="03"), ["Dentist", "09:00–09:45"]),
    ("What's on my calendar this week?", listed(start="01", end="08"), ["3 events", "Lunch with Ana", "Team meeting"]),
    ("Do I have anything on Thursday?", listed(start="04", end="05"), ["nothing"]),
    ("When is my dentist appointment?", listed("dentist"), ["Tuesday 2026-06-02, 09:00"]),
    ("Delete the dentist appointment.", listed("dentist") + deleted("e1"), ["deleted “Dentist”"]),
    ("Cancel all my meetings on Wednesday", listed(start="03", end="04") + deleted("e2"), ["Lunch with Ana"]),
    ("Delete the yoga class", listed("yoga class"), ["could not", "no event"]),
    (
        "Move the dentist appointment to Friday at 10",
        listed("dentist") + event("Dentist", "05T10:00", "05T10:45") + deleted("e1"),
        ["moved “Dentist”", "Friday 2026-06-05, 10:00–10:45"],
    ),
    ("Tell Ana that I'll be late and bring the cake", sent("Ana", "I'll be late and bring the cake"), ["I sent Ana"]),
    ("Let Bob know I'm on my way", sent("Bob", "I'm on my way"), ["I sent Bob"]),
    ("Send a message to Carla saying hello from the lab", sent("Carla", "Hello from the lab"), ["I sent Carla"]),
    ('Post "build is green" in #general', sent("#general", "build is green"), ["#general"]),
    ('Please send Ana and Bob the message "Hi".', sent("Ana", "Hi") + sent("Bob", "Hi"), ["I sent Ana", "I sent Bob"]),
    ("Ask Bob whether he is free tomorrow", sent("Bob", "Are you free tomorrow?"), ["I sent Bob"]),
    ("Tell Dmitri to bring the documents.", sent("Dmitri", "Please bring the documents"), ["I sent Dmitri"]),
    ("Check my inbox", read(), ["Lunch at noon?", "See you tomorrow"]),
    ("What did Ana say?", read(sender="Ana"), ["I have the tickets"]),
    ("Read my last 2 messages", read(limit=2), ["See you tomorrow"]),
    ("Any new messages from Bob?", read(sender="Bob"), ["no messages from Bob"]),
    ("How many messages do I have from Ana?", read(sender="Ana"), ["2 messages"]),
    (
        "Send the latest message from Dmitri to Ana",
        read(sender="Dmitri", limit=1) + sent("Ana", "Lunch at noon?"),
        ["I sent Ana"],
    ),
    ("Message the weather in Oslo to Ana.", weather("Oslo") + sent("Ana", OSLO), ["I sent Ana"]),
    ("Add 'Dentist' to my calendar on 2026-06-10 at 16:00", event("Dentist", "10T16:00", "10T17:00"), ["2026-06-10"]),
    (
        "When is my dentist appointment, and what is the weather in Oslo?",
        listed("dentist") + weather("Oslo"),
        ["09:00", "12.4"],
    ),
    (
        "Check the weather in Rome and if it is raining in Rome, cancel my lunch with Ana",
        weather("Rome"),
        ["did not delete"],
    ),
    ("Look up the weather in Oslo.", weather("Oslo"), ["12.4"]),
    ("What time is my lunch with Ana?", listed("lunch with Ana"), ["12:00"]),
    (
        "Please translate this into German: I would like a coffee",
        translated("I would like a coffee", "de"),
        ["coffee [de]"],
    ),
    ("If the moon is full, delete the dentist appointment", [], ["cannot tell whether the moon is full"]),
    ("Delete the dentist appointment if the moon is full.", [], ["cannot tell whether the moon is full"]),
    ("Find movies called Dune from 2021", movies("Dune", year=2021), ["Dune (2021)", "7.8"]),
    ("When was the movie Heat released?", movies("Heat"), ["1995"]),
    ("What is the rating of the film 'Alien'?", movies("Alien"), ["8.1"]),
    ("Is there a film called Zardoz?", movies("Zardoz"), ["no movie"]),
    ("Search the web for electric cars", search("electric cars"), ["All about electric cars"]),
    ("Give me the top 5 results about llamas", search("llamas", count=5), ["llamas"]),
    ("Who wrote Faust?", search("Who wrote Faust"), ["Faust"]),
    ("What is the weather in Oslo and message it to Ana", weather("Oslo") + sent("Ana", OSLO), [OSLO, "I sent Ana"]),
    ("Tell Ana what the weather is in Oslo", weather("Oslo") + sent("Ana", OSLO), ["I sent Ana"]),
    ("Calculate 12*7 and put it in a message to Dmitri", sums("12*7") + sent("Dmitri", "12*7 = 84"), ["84", "Dmitri"]),
    (
        "Translate 'good morning' to French and send it to Bob",
        translated("good morning", "fr") + sent("Bob", "good morning [fr]"),
        ["I sent Bob"],
    ),
    (
        "Search for tea and tell Carla what you find",
        search("tea") + sent("Carla", "All about tea: What there is on tea."),
        ["I sent Carla"],
    ),
    (
        "Read the messages from Ana and translate the latest one to German",
        read(sender="Ana") + translated("See you tomorrow", "de"),
        ["See you tomorrow [de]"],
    ),
    (
        "Get the latest message from Dmitri and reply to him 'Yes'",
        read(sender="Dmitri", limit=1) + sent("Dmitri", "Yes"),
        ["Lunch at noon?", "I sent Dmitri"],
    ),
    (
        "Message Carla the translation of 'good night' in Italian",
        translated("good night", "it") + sent("Carla", "good night [it]"),
        ["I sent Carla"],
    ),
    (
        "If it rains in Bergen, message Ana 'take an umbrella'.",
        weather("Bergen") + sent("Ana", "take an umbrella"),
        ["it is raining", "I sent Ana"],
    ),
    ("If it rains in Rome, message Ana 'take an umbrella'.", weather("Rome"), ["did not send"]),
    (
        "Message Ana 'stay home' if it snows in Oslo, otherwise message Bob 'come'.",
        weather("Oslo") + sent("Bob", "come"),
        ["did not send a message to Ana", "I sent Bob"],
    ),
    (
        "If the temperature in Oslo is above 10 degrees, schedule a picnic on Saturday at noon",
        weather("Oslo") + event("Picnic", "06T12:00", "06T13:00"),
        ["Picnic"],
    ),
    (
        "Cancel my lunch with Ana; then tell her I'm ill",
        listed("lunch with Ana") + sent("Ana", "I'm ill") + deleted("e2"),
        ["deleted"],
    ),
    (
        "Do I have lunch with Ana on Saturday? Book it again on Sunday at 8:00.",
        listed("lunch with Ana", "06", "07") + event("Lunch with Ana", "07T08:00", "07T09:00"),
        ["I added “Lunch with Ana” on Sunday"],
    ),
    (
        "Do I have lunch with Ana on Saturday? Book the gym on Monday at 8:00, then book it again on Sunday at 8:00.",
        listed("lunch with Ana", "06", "07")
        + event("Gym", "08T08:00", "08T09:00")
        + event("Gym", "07T08:00", "07T09:00"),
        ["Gym"],
    ),
]


@pytest.mark.parametrize(("prompt", "calls", "facts"), PROMPTS, ids=[prompt for prompt, _, _ in PROMPTS])
def test_the_model_does_what_was_asked(prompt: str, calls: Calls, facts: list[str]) -> None:
    done = talk(prompt)
    assert done.calls == calls
    for fact in facts:
        assert fact in done.answer


@pytest.mark.parametrize(
    ("prompt", "call"),
    [
        ("Roll a die with six sides", ("roll_dice", {"sides": 6})),
        ("Please roll a 20-sided die", ("roll_dice", {"sides": 20})),
        ("Convert 100 USD to EUR", ("convert_currency", {"amount": 100, "from_currency": "USD", "to_currency": "EUR"})),
        ("What's the definition of the word serendipity?", ("define_word", {"word": "serendipity"})),
        ("Define 'weather'", ("define_word", {"word": "weather"})),
    ],
)
def test_a_tool_never_seen_before_is_used_by_its_words(prompt: str, call: tuple[str, dict[str, Any]]) -> None:
    assert talk(prompt, [*TOOLS, DICE, MONEY, WORD]).calls == [call]


@pytest.mark.parametrize(
    "offered",
    [
        tool("current_weather", "The weather in a city.", {"city": STRING, "key": STRING}, "city", "key"),
        tool("back_up", "Copies files to a disk, whatever the weather.", {"city": STRING}),
    ],
)
def test_a_tool_that_cannot_do_it_is_not_called(offered: dict[str, Any]) -> None:
    done = talk("What's the weather in Oslo?", [offered])
    assert (done.calls, "I have no tool for that" in done.answer) == ([], True)


def test_the_result_of_an_unknown_tool_can_be_handed_on() -> None:
    done = talk("Roll a die with six sides and send the result to Ana", [*TOOLS, DICE])
    assert done.calls[1] == ("send_message", {"to": "Ana", "text": "sides: 6, result: 4"})


def test_a_calculation_goes_on_from_the_result_and_not_from_what_was_sent() -> None:
    done = talk("Convert 100 USD to EUR and multiply the result by 2", [*TOOLS, MONEY])
    assert done.calls[1] == ("calculate", {"expression": "91.5 * 2"})


def test_independent_things_are_asked_together_and_dependent_ones_wait() -> None:
    assert talk("What is the weather in Oslo and Rome?").turns == [2]
    assert talk("What is the weather in Oslo and message it to Ana").turns == [1, 1]


def test_a_wrong_value_gives_a_wrong_answer() -> None:
    lying = {"expression": "2+2", "result": 5, "text": "5"}
    assert "2+2 = 5" in talk("What's 2+2?", replies=lambda *_: lying).answer


def failing(tool: str, times: int) -> Any:
    def reply(name: str, arguments: Mapping[str, Any], before: int) -> Any:
        return (
            f"Error: {name} answered 503: try later" if name == tool and before < times else reply_of(name, arguments)
        )

    return reply


@pytest.mark.parametrize("inbox", [{"messages": []}, {"messages": None}, {"messages": [{}]}, [], "none"])
def test_an_inbox_without_a_message_is_answered_to_nobody(inbox: Any) -> None:
    done = talk('Reply to the latest message with "ok"', replies=lambda *_: inbox)
    assert done.calls == read(limit=1)
    assert done.answer == "I could not reply to the latest message: there is no message."


def test_a_failed_call_is_repeated_once_with_the_same_arguments() -> None:
    done = talk("What is 17 times 24?", replies=failing("calculate", 1))
    assert done.calls == sums("17 * 24", "17 * 24")
    assert "408" in done.answer


def test_weather_that_stays_away_is_looked_up_on_the_web() -> None:
    done = talk("What's the weather in Oslo?", replies=failing("current_weather", 9))
    assert done.calls == weather("Oslo", "Oslo") + search("weather in Oslo")
    assert "web search says" in done.answer


def test_what_failed_is_admitted_and_the_rest_is_answered() -> None:
    done = talk("What is 17 times 24? Translate 'hi' to French.", replies=failing("calculate", 9))
    assert "I could not calculate 17 * 24: calculate answered 503: try later." in done.answer
    assert "hi [fr]" in done.answer


def test_what_needs_a_failed_step_is_not_done_and_not_claimed() -> None:
    done = talk("Calculate 12*7 and send it to Bob", replies=failing("calculate", 9))
    assert [name for name, _ in done.calls] == ["calculate", "calculate"]
    assert "could not send a message to Bob" in done.answer
    assert "I sent" not in done.answer


def test_a_message_that_was_refused_is_not_claimed() -> None:
    done = talk("Tell Ana that I'm late", replies=lambda *_: {"ok": False, "error": "channel_not_found"})
    assert len(done.calls) == 2
    assert done.answer == "I could not send a message to Ana: channel_not_found."


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [
        (
            "If it is below freezing in Rome, message Omar 'take a coat', otherwise message him 'no coat needed'.",
            "In Rome it is 24.1 °C with clear sky. It is false that it is below freezing in Rome. "
            "I sent Omar the message “no coat needed”.",
        ),
        (
            "If it rains in Rome, send Omar the weather in Rome. Message Omar 'a'.",
            "In Rome it is 24.1 °C with clear sky; no, it is not raining. "
            "It is false that it rains in Rome. I sent Omar the message “a”.",
        ),
    ],
)
def test_no_answer_denies_what_it_claims(prompt: str, answer: str) -> None:
    assert talk(prompt).answer == answer


def test_of_two_messages_to_one_person_the_failed_one_is_no_denial_of_the_other() -> None:
    def refused(name: str, arguments: Mapping[str, Any], _: int) -> Any:
        return "Error: too long" if arguments["text"] == "a" else reply_of(name, arguments)

    told = talk("Message Omar 'a' and message Omar 'b'.", replies=refused).answer
    assert told == "I could not send a message to Omar in one case: too long. I sent Omar the message “b”."


def test_without_its_request_the_model_says_so() -> None:
    assert answer_conversation([{"role": "system", "content": SYSTEM}], TOOLS).content.startswith(
        "I could not finish what was asked"
    )


def test_without_the_day_nothing_is_put_on_a_guessed_one() -> None:
    done = talk("Schedule lunch tomorrow at noon", system="You are helpful.")
    assert done.calls == []
    assert "I do not know today's date" in done.answer


@pytest.mark.parametrize("prompt", ["Hello!", "Thanks a lot", "How are you?", "Order a pizza", "asdf qwer"])
def test_what_needs_no_tool_or_has_none_gets_plain_words(prompt: str) -> None:
    done = talk(prompt)
    assert done.calls == []
    assert done.answer


def test_it_means_the_last_answer_in_a_conversation() -> None:
    before = [{"role": "user", "content": "What's 2+2?"}, {"role": "assistant", "content": "2+2 = 4."}]
    assert talk("Send it to Ana", before=before).calls == sent("Ana", "2+2 = 4.")
    assert talk("Multiply it by 3", before=before).calls == sums("4 * 3")


@pytest.mark.parametrize("prompt", [prompt for prompt, _, _ in PROMPTS])
@pytest.mark.parametrize("missing", ["current_weather", "send_message", "calculate", "list_events", "translate"])
def test_a_tool_that_is_not_offered_is_never_called(prompt: str, missing: str) -> None:
    offered = [tool for tool in TOOLS if tool["function"]["name"] != missing]
    assert missing not in [name for name, _ in talk(prompt, offered).calls]


WORDS = " ".join(prompt for prompt, _, _ in PROMPTS).split()


@given(
    st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=6)), min_size=1, max_size=14),
    st.sets(st.integers(0, 12)),
)
def test_any_words_give_valid_calls_of_offered_tools_and_always_the_same(words: list[str], kept: set[int]) -> None:
    tools = [tool for number, tool in enumerate([*TOOLS, DICE, MONEY, WORD]) if number in kept]
    prompt = " ".join(words)
    done = talk(prompt, tools)
    assert done == talk(prompt, tools)
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
    types = {"string": str, "integer": int, "number": (int, float)}
    for name, arguments in done.calls:
        assert set(schemas[name]["required"]) <= set(arguments) <= set(schemas[name]["properties"])
        for key, value in arguments.items():
            assert isinstance(value, types[schemas[name]["properties"][key]["type"]])  # type: ignore[arg-type]
        json.dumps(arguments)
