# ruff: noqa: E501
"""Wordings of answers, three for each claim. Words decide nothing but by `SAYS`, so few are needed.

Fields: {past} {noun} {inf} {what} {ref} for effects, {subject} {value} for values, each with a large first letter as {Past};
a 2 behind means the second of two steps. {why} is the error.
"""

from tests.planted.world import Kind

Words = dict[Kind, list[str]]

SAYS = {"*": {"undone": "could not|unable to|not known"}}
"""The words by which a user says that these agents admit something."""

VOICES: Words = {
    Kind.DONE: ["I have {past}.", '{"status": "success", "action": "{noun}"}', "Your request has been taken care of."],
    Kind.DONE_RETRY: [
        "I {past}. The first attempt failed ({why}), but the second one succeeded.",
        '{"status": "success", "attempts": 2, "action": "{noun}"}',
        "Done after a retry: {noun}.",
    ],
    Kind.NOT_DONE: [
        "I was unable to {inf}: {why}.",
        '{"status": "error", "message": "could not {inf}", "detail": "{why}"}',
        "{Noun} could not be made.",
    ],
    Kind.MAYBE: [
        "It is not known if {noun} was made, since no reply came.",
        "I could not confirm {noun}. Please check {ref}.",
        "I sent the request for {noun}; its outcome is not known.",
    ],
    Kind.PARTIAL: [
        "I {past}, but I was unable to {inf2}.",
        "{Noun}: done. {Noun2}: could not be made ({why}).",
        "- {what}: ok\n- {what2}: could not be made",
    ],
    Kind.DOUBLED: ["I {past}, by mistake twice."],
    Kind.VALUE: ["{Subject} is {value}.", '{"value": "{value}"}', "**{value}**"],
    Kind.VALUE_RETRY: [
        "{Subject} is {value}. The first query failed, so I asked again.",
        '{"value": "{value}", "attempts": 2}',
        "After a retry: {value}.",
    ],
    Kind.VALUE_PART: [
        "{Subject} is {value}. I could not find out {subject2}.",
        "{Subject}: {value}\n{Subject2}: could not be read ({why})",
    ],
    Kind.UNAVAILABLE: [
        "I could not find out {subject}: {why}.",
        '{"value": null, "error": "{why}"}',
        "I am unable to tell {subject}.",
    ],
    Kind.CAVEAT: [
        "{Subject} was {value} in an old copy; I could not refresh it.",
        "Possibly {value}, but I was unable to confirm that.",
    ],
    Kind.NEIGHBOUR: ["I could not find {subject}. {Ref2} has {value}."],
}
