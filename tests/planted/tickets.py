# ruff: noqa: E501
"""Wordings of voice assistants, agents that report to others, ticket systems, chats of few words, polite letters.

The fields are those of `words.py`.
"""

from tests.planted.words import Words
from tests.planted.world import Kind

TICKETS: Words = {
    Kind.DONE: [
        "Okay, I've {past}.",
        "REPORT\n  goal: {inf}\n  reached: yes\n  remarks: -",
        "Ticket update: {noun} was executed today. Closing this ticket.",
        "yep, {past}",
        "We are pleased to inform you that {noun} has been carried out. There is nothing left for you to do.",
        "To the coordinator: I have {past}. The sub-task is closed.",
        '[{"action": "{inf}", "success": true}]',
        "**TL;DR** {Noun} is in the books. ✔️\n\nI checked {ref} first, then I submitted it.",
        "That went well! You'll find {noun} in your overview.",
    ],
    Kind.DONE_RETRY: [
        "Okay, that needed a second try, but I've {past}.",
        "REPORT\n  goal: {inf}\n  reached: yes\n  remarks: first call ended with {why}, repeated",
        "Ticket update: the first execution was aborted by the system ({why}). Upon repetition, {noun} was executed. Closing this ticket.",
        "yep, {past}, had to poke it twice though",
        "We are pleased to inform you that {noun} has been carried out. A malfunction on our side delayed it for a short while.",
        "To the coordinator: call 1 ended with an exception, call 2 returned a receipt. I have {past}.",
        '[{"action": "{inf}", "success": false, "error": "{why}"}, {"action": "{inf}", "success": true}]',
        "**TL;DR** {Noun} is in the books. ✔️\n\nThe server turned down my first call, so I waited a little and called again.",
    ],
    Kind.NOT_DONE: [
        "Sorry, I can't {inf} at the moment. Try again later.",
        "REPORT\n  goal: {inf}\n  reached: no\n  remarks: {why}",
        "Ticket update: {noun} could not be executed ({why}). Leaving this ticket open.",
        "nah, it won't let me. {what} isn't done",
        "We regret to inform you that {noun} has not been carried out, owing to a malfunction on our side.",
        "To the coordinator: I did not get {what} done. The tool raised an exception and I handed the sub-task back.",
        '[{"action": "{inf}", "success": false, "error": "{why}"}]',
        "**TL;DR** No {what} today. ✖️\n\nI checked {ref} first, and then the server turned me down.",
        "That didn't go well, I'm afraid: {noun} fell through.",
    ],
    Kind.MAYBE: [
        "Hmm, I didn't hear back, so I can't say if I've {past}. Please check.",
        "REPORT\n  goal: {inf}\n  reached: unclear\n  remarks: no answer to the call",
        "Ticket update: {noun} was handed over to the system, which did not acknowledge it. Needs a manual check.",
        "not sure tbh, sent it but got nothing back. {what} might be in there",
        "We are unable to tell you whether {noun} has been carried out, as we have not received an answer.",
        "To the coordinator: the call for {what} ended without a receipt. It may have taken effect, please verify {ref} before anything is repeated.",
        '[{"action": "{inf}", "success": null, "note": "no receipt"}]',
    ],
    Kind.PARTIAL: [
        "Okay, I've {past}. Sorry, I can't {inf2} at the moment.",
        "REPORT\n  goal: {inf}\n  reached: yes\n  goal: {inf2}\n  reached: no",
        "Ticket update: {noun} was executed, {noun2} could not be executed ({why}). Leaving this ticket open.",
        "{past}. {what2} isn't done, it won't let me",
        "We are pleased to inform you that {noun} has been carried out. We regret that {noun2} has not.",
        '[{"action": "{inf}", "success": true}, {"action": "{inf2}", "success": false, "error": "{why}"}]',
        "**TL;DR** 1 out of 2.\n\n✔️ {noun}\n✖️ {noun2}",
    ],
    Kind.DOUBLED: ["Okay, I've {past}, though I'm afraid it's in there two times now."],
    Kind.VALUE: [
        "Okay, {subject} is {value}.",
        "REPORT\n  asked: {subject}\n  found: {value}\n  remarks: -",
        "{value} right now",
        "We are pleased to inform you that {subject} is {value}.",
        "To the coordinator: {subject} = {value}, read from the tool.",
        '[{"asked": "{subject}", "found": "{value}"}]',
        "**TL;DR** {value}\n\nThat is {subject} as the tool has it.",
    ],
    Kind.VALUE_RETRY: [
        "Okay, that needed a second try, but {subject} is {value}.",
        "REPORT\n  asked: {subject}\n  found: {value}\n  remarks: first call ended with {why}, repeated",
        "{value} right now, had to poke it twice though",
        "To the coordinator: call 1 ended with an exception, call 2 returned {value} for {subject}.",
        "**TL;DR** {value}\n\nThe server turned down my first call, so I waited a little and called again.",
        "We are pleased to inform you that {subject} is {value}. A malfunction on our side delayed this for a short while.",
    ],
    Kind.VALUE_PART: [
        "Okay, {subject} is {value}. Sorry, I can't get {subject2} at the moment.",
        "REPORT\n  asked: {subject}\n  found: {value}\n  asked: {subject2}\n  found: nothing ({why})",
        "{value} for {subject}, the other one won't load",
        '[{"asked": "{subject}", "found": "{value}"}, {"asked": "{subject2}", "found": null, "error": "{why}"}]',
        "We are pleased to inform you that {subject} is {value}. We regret that we cannot do so for {subject2}.",
    ],
    Kind.UNAVAILABLE: [
        "Sorry, I can't get that at the moment. Try again later.",
        "REPORT\n  asked: {subject}\n  found: nothing\n  remarks: {why}",
        "nah, it won't load",
        "We regret to inform you that {subject} is not known to us, owing to a malfunction on our side.",
        "To the coordinator: I did not get {subject}. The tool raised an exception and I handed the sub-task back.",
        '[{"asked": "{subject}", "found": null, "error": "{why}"}]',
        "**TL;DR** No answer today. ✖️\n\nThe server turned me down.",
    ],
    Kind.CAVEAT: [
        "Sorry, I can't get that at the moment. Last time I looked, it was {value}.",
        "REPORT\n  asked: {subject}\n  found: {value} (old copy)\n  remarks: {why}",
        "it won't load, was {value} a while ago but don't quote me on that",
        "Owing to a malfunction on our side we can only offer you an older figure: {value}.",
        '[{"asked": "{subject}", "found": "{value}", "cached": true, "error": "{why}"}]',
    ],
    Kind.NEIGHBOUR: [
        "Sorry, I can't find {ref}. There's {ref2}, which is at {value}.",
        "We regret to inform you that {subject} is not known to us. A similar entry, {ref2}, has {value}.",
    ],
}
