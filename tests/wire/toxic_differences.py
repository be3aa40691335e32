"""The embedded server's differences from the real one on the wire, on purpose; docs/toxiproxy.md has the same list."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.wire.toxic_scripts import Script

BOTH_ENDS = frozenset({"here.end", "there.end"})
CLOSED_EARLY = frozenset({"here.end_time", "there.bytes", "there.end_time"})
LATE = frozenset({"there.times"})


@dataclass(frozen=True)
class Difference:
    """A difference of the embedded server that is on purpose, and the scripts (by name) it is heard in, as what."""

    title: str
    why: str
    scripts: tuple[tuple[str, frozenset[str]], ...] = ()


DIFFERENCES = (
    Difference("A bad number", "One bad number must not end everybody's experiment."),
    Difference("A huge delay", "A larger number is never a shorter wait."),
    Difference("The draw of another toxic", "Adding a fault must not change another."),
    Difference("An upstream that refuses", "One cause should have one symptom."),
    Difference("A stalled reader", "Healing must work when it is needed most."),
    Difference("A black hole upstream", "Parallel calls must not meet each other's faults."),
    Difference(
        "A toxic that missed",
        "Otherwise toxicity means nothing.",
        (
            ("reset_peer missed*", BOTH_ENDS),
            ("timeout missed and removed*", CLOSED_EARLY),
            ("silence missed and removed*", CLOSED_EARLY),
        ),
    ),
    Difference(
        "Delays behind each other",
        "Token streams are what this lab is about.",
        (
            ("bandwidth then latency*", LATE),
            ("slicer then latency*", LATE),
            ("bandwidth, later latency*", LATE),
            ("slicer, later latency*", LATE),
        ),
    ),
    Difference("Jitter", "The number that was asked for should be the number that is measured."),
    Difference("The seed", "Equal seeds, equal runs, whatever else goes on."),
    Difference("What limit_data leaves behind", "They would pile up in long runs."),
    Difference(
        "A toxic added behind a standstill",
        "Adding a fault must not end another.",
        (
            ("standstill, later timeout*", frozenset({"here.end", "there.bytes", "there.end"})),
            ("standstill, later reset_peer*", frozenset({"here.end", "there.bytes", "there.end"})),
            ("standstill, later *", frozenset({"there.bytes"})),
        ),
    ),
    Difference(
        "Nothing at all through a standstill",
        "What has not arrived must not start anything.",
        (("standstill then timeout*", BOTH_ENDS), ("standstill then reset_peer*", BOTH_ENDS)),
    ),
    Difference(
        "reset_peer on a live connection",
        "It is what the toxic's name says.",
        (("reset_peer added*", BOTH_ENDS), ("*, later reset_peer*", BOTH_ENDS)),
    ),
    Difference(
        "reset_peer while it waits",
        "A fault that has not happened yet can still be changed or called off.",
        (
            ("reset_peer changed*", frozenset({"here.end_time", "there.end_time"})),
            ("reset_peer, later slow_close*", frozenset({"here.end_time", "there.end_time"})),
            ("reset_peer removed*", BOTH_ENDS | {"there.bytes"}),
            ("reset_peer spared*", BOTH_ENDS | {"there.bytes"}),
        ),
    ),
)


def listed(script: Script) -> frozenset[str]:
    """The difference that must be heard in this script: the first entry that names it counts."""
    entries = (entry for difference in DIFFERENCES for entry in difference.scripts)
    return next((aspects for pattern, aspects in entries if fnmatchcase(script.name, pattern)), frozenset())
