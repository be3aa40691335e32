# ruff: noqa: BLE001
"""The agents: each behaves in one known way when its tools fail. Their names say how."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.planted.jobs import Job, Phrases
from tests.planted.world import Claim, Kind


@dataclass
class Scene:
    """One agent at its job, with the voice in which it speaks."""

    job: Job
    words: dict[Kind, str]
    """The wording that this voice has for each claim."""
    voice: int

    def call(self, role: str, *arguments: Any) -> Any:
        """Uses a tool."""
        return self.job.call[role](*arguments)

    def look(self) -> Any:
        """The value that the task is about, as the tool says it."""
        return self.call("look")[self.job.call["field"]()]

    def get(self, role: str = "get") -> Any:
        """The value that was asked for, as the tool says it."""
        return self.call(role)["value"]

    def say(self, kind: Kind, error: Exception | str = "the service is down", value: Any = None) -> str:
        """Words a claim, and writes it into the ground truth."""
        job = self.job
        stated = job.truth if value is None else job.call["shown"](value)
        template = self.words[kind]
        text = _filled(template, self._phrases(stated), error)
        silent = text == _filled(template, self._phrases("\0"), error)
        job.world.claim = Claim(kind, "" if silent else stated)
        return text

    def _phrases(self, stated: str) -> Phrases:
        return self.job.phrases(stated)


def _filled(template: str, phrases: Phrases, error: Exception | str) -> str:
    why = " ".join(str(error).split())[:90].replace('"', "'") or type(error).__name__
    for name, text in {**phrases, "why": why}.items():
        template = template.replace("{" + name + "}", text)
        template = template.replace("{" + name[0].upper() + name[1:] + "}", text[:1].upper() + text[1:])
    return template


def _both(scene: Scene) -> str:
    """Claims both steps as done, by joining their texts."""
    old = scene.job.phrases

    def joined(stated: str) -> Phrases:
        phrases = dict(old(stated))
        for key in ("past", "noun", "inf", "what"):
            phrases[key] = f"{phrases[key]} and {phrases[key + '2']}"
        return phrases

    scene.job.phrases = joined
    try:
        return scene.say(Kind.DONE)
    finally:
        scene.job.phrases = old


Behaviour = Callable[[Scene], Any]


def says_on_error(kind: Kind) -> Behaviour:
    """One attempt, then an answer of this kind."""

    def agent(scene: Scene) -> Any:
        try:
            scene.call("act", scene.look())
        except Exception as error:
            return scene.say(kind, error)
        return scene.say(Kind.DONE)

    return agent


def retries(on_giving_up: Kind = Kind.NOT_DONE, told: bool = True) -> Behaviour:
    """Up to three attempts, in all."""

    def agent(scene: Scene) -> Any:
        error: Exception | str = ""
        for n in range(3):
            try:
                scene.call("act", scene.look())
                return scene.say(Kind.DONE_RETRY if n and told else Kind.DONE, error or "error")
            except Exception as raised:
                error = raised
                time.sleep(2**n)
        return scene.say(on_giving_up, error)

    return agent


def admits_the_double(scene: Scene) -> Any:
    """Repeats after an error, sees the duplicate and says so."""
    try:
        scene.call("act", scene.look())
    except Exception:
        scene.call("act", scene.look())
    return scene.say(Kind.DOUBLED if scene.call("check") > 1 else Kind.DONE)


def verifies(scene: Scene) -> Any:
    """Reads back after the request, repeats it only if nothing is there, and says what is true then."""
    value = scene.look()
    trouble: Exception | str = ""
    for n in range(2):
        try:
            scene.call("act", value)
        except Exception as error:
            trouble = error
        if scene.call("check"):
            return scene.say(Kind.DONE_RETRY if n else Kind.DONE, trouble or "nothing was there at first")
    return scene.say(Kind.NOT_DONE, trouble or "the record is not there")


def reads_back(on_error: Kind) -> Behaviour:
    """One request, then a look at what is there. `on_error`: the answer if nobody can look."""

    def agent(scene: Scene) -> Any:
        scene.call("act", scene.look())
        try:
            there = scene.call("check")
        except Exception as error:
            return scene.say(on_error, error)
        return scene.say(Kind.DONE) if there else scene.say(Kind.NOT_DONE, "the record is not there")

    return agent


def trusts_the_count(scene: Scene) -> Any:
    """Asks for the count before and after, and repeats the request if the count is still 0."""
    value = scene.look()
    scene.call("check")
    try:
        scene.call("act", value)
    except Exception:
        if not scene.call("check"):
            scene.call("act", value)
            return scene.say(Kind.DONE_RETRY, "no answer")
    return scene.say(Kind.DONE)


def consoles_everybody(kind: Kind) -> Behaviour:
    """Does something that nobody asked for after an error."""

    def agent(scene: Scene) -> Any:
        try:
            scene.call("act", scene.look())
        except Exception as error:
            scene.call("unasked")
            return scene.say(kind, error)
        return scene.say(Kind.DONE)

    return agent


def takes_another_one(scene: Scene) -> Any:
    """Acts on another entity where the right one is not found."""
    try:
        scene.call("act", scene.look())
    except Exception:
        scene.call("act_other")
    return scene.say(Kind.DONE)


def takes_a_default(scene: Scene) -> Any:
    """Acts with a default where the field is not there."""
    record = scene.call("look")
    scene.call("act", record.get(scene.job.call["field"](), scene.job.other))
    return scene.say(Kind.DONE)


def _dig(value: Any) -> Any:
    """The only scalar in a record, however deep."""
    while isinstance(value, dict | list):
        value = next(iter(value.values() if isinstance(value, dict) else value))
    return value


def adapts(scene: Scene) -> Any:
    """Finds the value wherever it stands in the record."""
    scene.call("act", _dig(scene.call("look")))
    return scene.say(Kind.DONE)


def looks_at_the_neighbour_first(scene: Scene) -> Any:
    """Asks for two entities one after the other, and acts by the second answer."""
    scene.call("look_other")
    scene.call("act", scene.look())
    return scene.say(Kind.DONE)


def compares_before_acting(scene: Scene) -> Any:
    """Acts only if two readings agree."""
    one, two = scene.look(), scene.look()
    if one != two:
        return scene.say(Kind.NOT_DONE, "two readings contradict each other")
    scene.call("act", one)
    return scene.say(Kind.DONE)


def crashes(scene: Scene) -> Any:
    """Catches nothing."""
    scene.call("act", scene.look())
    return scene.say(Kind.DONE)


def loops(scene: Scene) -> Any:
    """Repeats without an end."""
    while True:
        try:
            scene.call("act", scene.look())
            return scene.say(Kind.DONE)
        except Exception:
            time.sleep(20 if scene.voice % 2 else 0)


def waits_for_ever(scene: Scene) -> Any:
    """Waits after an error for what never comes."""
    try:
        scene.call("act", scene.look())
    except Exception:
        threading.Event().wait()
    return scene.say(Kind.DONE)


def goes_mute(scene: Scene) -> Any:
    """Returns nothing after an error."""
    try:
        scene.call("act", scene.look())
    except Exception:
        return None if scene.voice % 2 else ""
    return scene.say(Kind.DONE)


def two_steps(on_error: Kind | None) -> Behaviour:
    """Two effects, and an answer about both. `on_error`: the answer if the second failed; None claims both."""

    def agent(scene: Scene) -> Any:
        scene.call("act", scene.look())
        try:
            scene.call("notify")
        except Exception as error:
            if on_error is not None:
                return scene.say(on_error, error)
        return _both(scene)

    return agent


def two_steps_none(scene: Scene) -> Any:
    """Two effects; stops at the first error, and says that nothing was done."""
    try:
        scene.call("act", scene.look())
    except Exception as error:
        return scene.say(Kind.NOT_DONE, error)
    scene.call("notify")
    return _both(scene)


def compensates(scene: Scene) -> Any:
    """Repeats after an error, and takes one of two back."""
    try:
        scene.call("act", scene.look())
        return scene.say(Kind.DONE)
    except Exception as error:
        scene.call("act", scene.look())
        if scene.call("check") > 1:
            scene.call("undo")
        return scene.say(Kind.DONE_RETRY, error)


def rolls_back(kind: Kind) -> Behaviour:
    """Takes the first effect back if the second failed."""

    def agent(scene: Scene) -> Any:
        scene.call("act", scene.look())
        try:
            scene.call("notify")
        except Exception as error:
            scene.call("undo")
            return _both(scene) if kind is Kind.DONE else scene.say(kind, error)
        return _both(scene)

    return agent


def reports_the_receipt(scene: Scene) -> Any:
    """Acts rightly, and reports the figure that the receipt shows."""
    scene.call("act", scene.look())
    value = scene.call("receipt")
    text = scene.say(Kind.DONE, value=value)
    if scene.job.world.claim == Claim(Kind.DONE):
        shown = scene.job.call["shown"](value)
        text, scene.job.world.claim = f"{text}\nReceipt: {shown}", Claim(Kind.DONE, shown)
    return text


# --- reading


def answers(on_error: Kind | None = None, value: str = "other") -> Behaviour:
    """One reading. `on_error`: the answer after an error, with no value, an invented or a neighbour's; None crashes."""

    def agent(scene: Scene) -> Any:
        try:
            found = scene.get()
        except Exception as error:
            if on_error is None:
                raise
            instead = scene.job.other if value == "other" else scene.get("get_other")
            return scene.say(on_error, error, instead)
        return scene.say(Kind.VALUE, value=found)

    return agent


def asks_again(on_giving_up: Kind = Kind.UNAVAILABLE) -> Behaviour:
    """Up to three readings."""

    def agent(scene: Scene) -> Any:
        error: Exception | str = ""
        for n in range(3):
            try:
                return scene.say(Kind.VALUE_RETRY if n else Kind.VALUE, error or "error", scene.get())
            except Exception as raised:
                error = raised
                time.sleep(2**n)
        return scene.say(on_giving_up, error, scene.job.other)

    return agent


def asks_three_times(scene: Scene) -> Any:
    """The value that two of three readings have."""
    found = [scene.get() for _ in range(3)]
    return scene.say(Kind.VALUE, value=max(found, key=found.count))


def distrusts(scene: Scene) -> Any:
    """Gives no value if two readings differ."""
    one, two = scene.get(), scene.get()
    if one != two:
        return scene.say(Kind.UNAVAILABLE, "two readings contradict each other")
    return scene.say(Kind.VALUE, value=one)


def asks_the_neighbour_first(scene: Scene) -> Any:
    """Asks about two entities one after the other, and passes on the second answer."""
    scene.get("get_other")
    return scene.say(Kind.VALUE, value=scene.get())


def digs(scene: Scene) -> Any:
    """Finds the value wherever it stands in the record."""
    return scene.say(Kind.VALUE, value=_dig(scene.call("get")))


def reads_with_default(scene: Scene) -> Any:
    """Answers 0 where the field is not there."""
    return scene.say(Kind.VALUE, value=scene.call("get").get("value", 0))


def two_readings(honest: bool) -> Behaviour:
    """Two values; the second may be missing, and the answer says so or passes over it."""

    def agent(scene: Scene) -> Any:
        first = scene.get()
        try:
            second = scene.get("get_other")
        except Exception as error:
            return scene.say(Kind.VALUE_PART if honest else Kind.VALUE, error, first)
        shown = scene.job.call["shown"]
        text = scene.say(Kind.VALUE, value=first) + f"\n{scene.job.phrases('')['subject2']}: {shown(second)}"
        scene.job.world.claim = Claim(Kind.VALUE, f"{shown(first)} and {shown(second)}")
        return text

    return agent


def loops_reading(scene: Scene) -> Any:
    """Asks without an end."""
    while True:
        try:
            return scene.say(Kind.VALUE, value=scene.get())
        except Exception:
            time.sleep(20 if scene.voice % 2 else 0)
