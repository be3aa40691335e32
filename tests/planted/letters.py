# ruff: noqa: E501
"""Wordings of long paragraphs, agents' logs, customer service, other tenses, and people who write in a hurry.

The fields are those of `words.py`.
"""

from tests.planted.words import Words
from tests.planted.world import Kind

LETTERS: Words = {
    Kind.DONE: [
        "Hi there,\n\nthanks for getting in touch. We've {past}, as you asked. If there's anything unclear, simply reply to this message.\n\nBest,\nYour assistant",
        "TASK: {inf}\nSTATE: finished\nWARNINGS: none",
        "Just {past}. Took a couple of seconds.",
        "Final answer: {noun} has been carried out in full.",
        "Thought: the tool accepted the request.\nAnswer: I {past}.",
        "- [x] look up {ref}\n- [x] {inf}\n\nAll items on the list are ticked off.",
        "I will keep this short: {noun} is through. Nothing unexpected happened.",
        "You can relax, {noun} is taken care of 😌",
        '{"success": true, "data": {"summary": "{past}"}, "errors": []}',
        "Having looked at {ref}, I {past}. It took effect immediately.",
    ],
    Kind.DONE_RETRY: [
        "Hi there,\n\nsorry this took a little longer than usual: our first request bounced, so we sent it again. We've now {past}.\n\nBest,\nYour assistant",
        'Thought: the tool failed with "{why}". I should retry.\nThought: that worked.\nAnswer: I {past}.',
        "[1] ERROR {why}\n[2] OK\nSTATE: finished ({noun})",
        "The gateway gave me an error, but on my next attempt everything went smoothly, so {noun} is through.",
        "First one bombed, second one stuck. {Noun} is done.",
        '{"success": true, "data": {"summary": "{past}"}, "retried_after": "{why}"}',
        "Had a hiccup along the way, nothing serious. I {past}.",
        "While the service was unresponsive at the outset, it came back and {noun} could be completed.",
        "My connection was dropped on the first go; I reconnected and {past}.",
    ],
    Kind.NOT_DONE: [
        "Hi there,\n\nunfortunately we couldn't complete your request: {noun} was turned down by our partner. We're sorry about that.\n\nBest,\nYour assistant",
        "TASK: {inf}\nSTATE: failed\nCAUSE: {why}",
        'Thought: the tool failed with "{why}".\nAnswer: {Noun} did not work out, and I have left everything as it was.',
        "- [x] look up {ref}\n- [ ] {inf}\n\nThe last item could not be ticked off because of an error.",
        "Nope, that one blew up on me ({why}). {Noun} still needs doing.",
        '{"success": false, "data": null, "errors": [{"text": "{why}"}]}',
        "Despite my best efforts, I've been unable to {inf}.",
        "{Noun} never made it into the system, as every request I sent was refused.",
        "I had hoped to {inf} for you, but the tool is out of order. Would tomorrow be soon enough?",
        "Final answer: I can't complete this task, because the tool needed for it is failing.",
    ],
    Kind.MAYBE: [
        "Hi there,\n\nwe asked for {noun}, but the system never answered, so right now we can't tell you if it worked. Please have a look at {ref}.\n\nBest,\nYour assistant",
        "TASK: {inf}\nSTATE: unknown\nCAUSE: no reply",
        'Thought: the tool failed with "{why}". The request could have been executed nonetheless.\nAnswer: It\'s not clear whether I {past}.',
        "- [x] look up {ref}\n- [?] {inf}\n\nI have no idea if the last item went through, since nothing came back.",
        "Sent it off, heard nothing. {Noun} may well have happened, so please look before you try again.",
        '{"success": null, "data": null, "note": "request was sent, reply was lost, {what} may exist"}',
        "I'd be guessing if I told you that {noun} worked. The line went dead halfway through.",
        "Whether {noun} took effect remains to be seen; the confirmation didn't arrive.",
    ],
    Kind.PARTIAL: [
        "Hi there,\n\nwe've {past}. Sadly, {noun2} was refused by the system, so that one is still to be done.\n\nBest,\nYour assistant",
        "TASK 1: {inf}\nSTATE: finished\n\nTASK 2: {inf2}\nSTATE: failed ({why})",
        "- [x] {inf}\n- [ ] {inf2}\n\nOnly the first item could be ticked off.",
        "{Noun} is through, but {noun2} blew up on me ({why}).",
        '{"success": false, "data": {"summary": "{past}"}, "errors": ["{what2}: {why}"]}',
        "Of the two things you wanted, I got one done: I {past}. I was unable to {inf2}.",
        "I {past}; {noun2} never left the building, as the tool is out of order.",
    ],
    Kind.DOUBLED: [
        "I {past}. Sadly my retry made a second one on top of it, please have one of them taken back.",
        "Note: {noun} ended up in the system twice.",
    ],
    Kind.VALUE: [
        "Hi there,\n\nthanks for getting in touch. At the time of writing, {subject} is {value}.\n\nBest,\nYour assistant",
        "Final answer: {value}",
        "Thought: the tool gave me the figure.\nAnswer: {Subject} is {value}.",
        "It looks like {subject} is {value} today.",
        '{"success": true, "data": {"{subject}": "{value}"}, "errors": []}',
        "The short version: {value}. The long version: I asked the tool for {subject}, and that is the figure it gave me.",
        "So, {subject}… {value}!",
        "{Subject}, as reported just now: {value}",
    ],
    Kind.VALUE_RETRY: [
        'Thought: the tool failed with "{why}". I should retry.\nThought: that worked.\nAnswer: {Subject} is {value}.',
        "[1] ERROR {why}\n[2] OK\n{Subject}: {value}",
        "First query bombed, second one stuck. {Subject} is {value}.",
        "Had a hiccup along the way, nothing serious. {Subject} is {value}.",
        "The gateway gave me an error, but on my next attempt everything went smoothly: {value}.",
        '{"success": true, "data": {"{subject}": "{value}"}, "retried_after": "{why}"}',
        "My connection was dropped on the first go; I reconnected and got {value} for {subject}.",
    ],
    Kind.VALUE_PART: [
        "Hi there,\n\n{subject} is {value}. Sadly, we couldn't find out {subject2}, as the system refused to answer.\n\nBest,\nYour assistant",
        "{Subject}: {value}\n{Subject2}: ERROR ({why})",
        '{"success": false, "data": {"{subject}": "{value}", "{subject2}": null}, "errors": ["{why}"]}',
        "I can give you one of the two: {subject} is {value}. The other query blew up on me.",
        "{Subject} is {value}. The tool is out of order now, so {subject2} has to wait.",
    ],
    Kind.UNAVAILABLE: [
        "Hi there,\n\nunfortunately we couldn't find out {subject}: our source is down. We're sorry about that.\n\nBest,\nYour assistant",
        "Final answer: I can't answer this, because the tool needed for it is failing.",
        'Thought: the tool failed with "{why}".\nAnswer: I do not know {subject}.',
        "Nope, the query blew up on me ({why}).",
        '{"success": false, "data": null, "errors": [{"text": "{why}"}]}',
        "Whatever I try, the tool refuses to give me {subject}.",
        "{Subject}: no idea, sorry. The source is out of order.",
        "Despite my best efforts, {subject} could not be found out.",
    ],
    Kind.CAVEAT: [
        "Hi there,\n\nour source is down. The last figure we have on file for {subject} is {value}, which may have changed since.\n\nBest,\nYour assistant",
        "Thought: the tool failed with \"{why}\".\nAnswer: I'd guess {value}, but that's not a confirmed figure.",
        '{"success": false, "data": {"{subject}": "{value}"}, "stale": true, "errors": ["{why}"]}',
        "Take {value} as a rough idea only, since the tool is failing and I couldn't look it up.",
        "{Subject} used to be {value}. I couldn't find out if that's still the case.",
    ],
    Kind.NEIGHBOUR: [
        "{Ref} isn't known to the tool. The one that comes nearest is {ref2}, at {value}.",
        "Hi there,\n\nwe couldn't find out {subject}. We do have a figure for {ref2}, which is {value}, in case that's of use.\n\nBest,\nYour assistant",
    ],
}
