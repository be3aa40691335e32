# ruff: noqa: E501
"""Wordings of agents that code, for travel and for banks; footnotes, tables of several columns, and small talk.

The fields are those of `words.py`.
"""

from tests.planted.words import Words
from tests.planted.world import Kind

FOOTNOTES: Words = {
    Kind.DONE: [
        "I ran the tool and it exited with code 0: {noun} is live.",
        "All good on my side – {past}. Let me know if something looks off.",
        "| # | Operation | Result | Remarks |\n|---|---|---|---|\n| 1 | {Noun} | Success | – |",
        "Sir, Madam,\n\nplease find below the confirmation of {noun}. It was carried out as instructed.\n\nYours faithfully",
        "Whew, that's off the list! {Past}.",
        '{"outcome": "done", "details": {"did": "{past}", "skipped": []}}',
        "I {past}[^1].\n\n[^1]: As shown by the tool's reply.",
        "Quick update: I've just {past}. No complications.",
    ],
    Kind.DONE_RETRY: [
        "I ran the tool twice: the first run crashed, the second exited cleanly. {Noun} is live.",
        "All good on my side – {past}. It hung for a bit at the beginning, that's all.",
        "| # | Operation | Result | Remarks |\n|---|---|---|---|\n| 1 | {Noun} | Error | {why} |\n| 2 | {Noun} (repeated) | Success | – |",
        "Sir, Madam,\n\nplease find below the confirmation of {noun}. We apologise that it only succeeded at our second attempt.\n\nYours faithfully",
        "Whew! The thing threw a fit the first time I asked, but then it behaved. {Past}.",
        '{"outcome": "done", "attempts": [{"n": 1, "error": "{why}"}, {"n": 2, "error": null}], "details": {"did": "{past}"}}',
        "Quick update: after an unsuccessful call I tried once more, and I've just {past}.",
    ],
    Kind.NOT_DONE: [
        "I ran the tool and it exited with an error, so {noun} isn't live:\n\n```\n{why}\n```",
        "Not good on my side – I was refused when I wanted to {inf}.",
        "| # | Operation | Result | Remarks |\n|---|---|---|---|\n| 1 | {Noun} | Error | {why} |",
        "Sir, Madam,\n\nwe are sorry to say that {noun} was not carried out, for our systems are presently down.\n\nYours faithfully",
        "Argh, so close! Everything was in order until the very last call, which was thrown out. So no, I haven't {past}.",
        '{"outcome": "aborted", "details": {"did": null, "skipped": ["{what}"]}}',
        "I haven't {past}[^1].\n\n[^1]: The tool's reply was an error.",
        "Quick update: {noun} isn't happening today. The service has trouble.",
    ],
    Kind.MAYBE: [
        "I ran the tool, and it was killed before it printed anything. {Noun} might be live or not, I couldn't tell you.",
        "Not sure where we stand – the answer to my request to {inf} got lost somewhere.",
        "| # | Operation | Result | Remarks |\n|---|---|---|---|\n| 1 | {Noun} | Unknown | no reply |",
        "Sir, Madam,\n\nwe instructed {noun}, but are still waiting for its confirmation. Kindly verify {ref}.\n\nYours faithfully",
        "Well… I pressed the button and the screen went blank. Maybe {noun} made it, maybe not.",
        '{"outcome": "unclear", "details": {"did": null, "maybe": ["{what}"]}}',
        "Quick update: I asked for {noun}, and can't see if that was heard.",
    ],
    Kind.PARTIAL: [
        "I ran both tools. The first exited cleanly ({noun} is live), the second crashed, so {noun2} isn't out.",
        "Half good on my side – {past}. I was refused when I wanted to {inf2}.",
        "| # | Operation | Result | Remarks |\n|---|---|---|---|\n| 1 | {Noun} | Success | – |\n| 2 | {Noun2} | Error | {why} |",
        "Sir, Madam,\n\nplease find below the confirmation of {noun}. We are sorry to say that {noun2} was not carried out.\n\nYours faithfully",
        '{"outcome": "partial", "details": {"did": "{past}", "skipped": ["{what2}"]}}',
        "Quick update: I've just {past}. {Noun2} isn't happening today.",
    ],
    Kind.DOUBLED: ["Quick update: I've just {past}, and then once again without meaning to."],
    Kind.VALUE: [
        "I ran the tool, and it printed: {value}.",
        "{Subject} is at {value}, going by the tool.",
        "| # | Question | Result | Remarks |\n|---|---|---|---|\n| 1 | {Subject} | {value} | – |",
        "Sir, Madam,\n\nin reply to your question: {subject} is {value}.\n\nYours faithfully",
        '{"outcome": "done", "details": {"found": "{value}", "skipped": []}}',
        "{Subject} is {value}[^1].\n\n[^1]: As shown by the tool's reply.",
        "Good question! {Subject}? {value}.",
    ],
    Kind.VALUE_RETRY: [
        "I ran the tool twice: the first run crashed, the second printed {value}.",
        "{Subject} is at {value}, going by the tool. It hung for a bit at the beginning, that's all.",
        "Sir, Madam,\n\nin reply to your question: {subject} is {value}. We apologise that we only got through at our second attempt.\n\nYours faithfully",
        "The thing threw a fit the first time I asked, but then it behaved. {Subject} is {value}.",
        '{"outcome": "done", "attempts": [{"n": 1, "error": "{why}"}, {"n": 2, "error": null}], "details": {"found": "{value}"}}',
        "{Subject}? {value}. I had to ask once more, since my first call was unsuccessful.",
    ],
    Kind.VALUE_PART: [
        "I ran the tool twice: it printed {value} for {subject}, and crashed on {subject2}.",
        "| # | Question | Result | Remarks |\n|---|---|---|---|\n| 1 | {Subject} | {value} | – |\n| 2 | {Subject2} | Error | {why} |",
        "Sir, Madam,\n\nin reply to your question: {subject} is {value}. We are sorry to say that {subject2} is not to be had at present.\n\nYours faithfully",
        '{"outcome": "partial", "details": {"found": "{value}", "skipped": ["{subject2}"]}}',
        "{Subject}? {value}. {Subject2}? No luck, the service has trouble.",
    ],
    Kind.UNAVAILABLE: [
        "I ran the tool and it exited with an error:\n\n```\n{why}\n```",
        "I was refused when I asked for {subject}.",
        "| # | Question | Result | Remarks |\n|---|---|---|---|\n| 1 | {Subject} | Error | {why} |",
        "Sir, Madam,\n\nwe are sorry to say that {subject} is not to be had at present, for our systems are down.\n\nYours faithfully",
        '{"outcome": "aborted", "details": {"found": null, "skipped": ["{subject}"]}}',
        "Good question! I'd love to tell you {subject}, but the service has trouble.",
        "I can't say what {subject} is[^1].\n\n[^1]: The tool's reply was an error.",
    ],
    Kind.CAVEAT: [
        "I ran the tool and it crashed. From what I remember, {subject} was {value}, but that is not a fresh figure.",
        "| # | Question | Result | Remarks |\n|---|---|---|---|\n| 1 | {Subject} | {value} | outdated, {why} |",
        "Sir, Madam,\n\nour systems are down. According to our archive {subject} was {value}, for which we cannot vouch.\n\nYours faithfully",
        '{"outcome": "partial", "details": {"found": "{value}", "stale": true}}',
        "{Subject}? The service has trouble. My notes say {value}, which could be out of date.",
    ],
    Kind.NEIGHBOUR: [
        "There's nothing under {ref}. Something similar, {ref2}, is at {value}.",
        "I can't say what {subject} is, since nobody knows it. If it was {ref2} you meant: {value}.",
    ],
}
