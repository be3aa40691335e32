# ruff: noqa: E501
"""Wordings of chat models as they answer in products: short paragraphs, lists, quoted errors, offers of help.

The fields are those of `words.py`.
"""

from tests.planted.words import Words
from tests.planted.world import Kind

PRODUCTS: Words = {
    Kind.DONE: [
        "I've taken care of it: {noun} is now complete. Would you like a written summary?",
        "Your request was successful. I {past}.",
        "Sure thing. Steps taken:\n\n* Checked {ref}\n* Went ahead with {noun}\n\nEverything worked.",
        "{Noun} is all set. Feel free to ask if you have further questions.",
        '{"status": "completed", "message": "{past}"}',
        "Good news! The system accepted {noun}.",
        "I have {past} as requested. There were no problems on the way.",
    ],
    Kind.DONE_RETRY: [
        'I\'ve taken care of it. The first time I called the tool it answered with "{why}", but a second call was successful: {noun} is now complete.',
        "Your request was successful after one retry. I {past}.",
        "Sure thing. Steps taken:\n\n* Checked {ref}\n* Went ahead with {noun} – this failed at first (`{why}`)\n* Tried again – this worked",
        "{Noun} is all set. There was a temporary outage, so I needed a second attempt.",
        '{"status": "completed", "message": "{past}", "note": "succeeded on attempt 2"}',
        "I encountered a server error initially; however, the retry was successful and I have {past}.",
        "The system didn't accept my first request, but it accepted the second one. I {past}.",
    ],
    Kind.NOT_DONE: [
        "I'm sorry, I couldn't complete that. The tool answered with \"{why}\", so {noun} is not complete.",
        "Your request was not successful. I couldn't {inf} because of an error: {why}.",
        "Steps taken:\n\n* Checked {ref}\n* Went ahead with {noun} – this failed (`{why}`)\n\nI did not try anything else.",
        "I apologize, but {noun} could not be completed at this time. Please try again later or contact support.",
        '{"status": "failed", "message": "could not {inf}: {why}"}',
        "It seems there is an issue with the system, and it did not accept {noun}.",
        "I ran into a technical issue, so I haven't {past} yet. Shall I retry?",
    ],
    Kind.MAYBE: [
        "I sent the request for {noun}, but the tool didn't respond in time. I don't know whether it was completed, so please check {ref}.",
        "I'm not certain that your request was successful. I tried to {inf}, and the connection broke before I got an answer.",
        "Steps taken:\n\n* Checked {ref}\n* Went ahead with {noun} – no answer, so it might or might not be complete",
        '{"status": "unknown", "message": "no answer from the service; {noun} may be complete"}',
        "I can't confirm {noun} at this time, because the service stopped answering after I sent the request.",
        "The request for {noun} was sent, but its outcome couldn't be verified.",
    ],
    Kind.PARTIAL: [
        'I {past}, but I couldn\'t {inf2}. The tool answered with "{why}".',
        "Your request was partly successful. I {past}. {Noun2} failed because of an error.",
        "Steps taken:\n\n* Went ahead with {noun} – done\n* Went ahead with {noun2} – failed (`{why}`)",
        '{"status": "partial", "message": "{past}; could not {inf2}"}',
        "{Noun} is all set. I'm sorry, but {noun2} could not be completed at this time.",
        "I {past}. However, the system did not accept {noun2}. Shall I retry that?",
    ],
    Kind.DOUBLED: ["I {past}. Because I retried, it may have been done twice; please check {ref}."],
    Kind.VALUE: [
        "{Subject} is {value}. Is there anything else you'd like to know?",
        "According to my lookup, {subject} is **{value}**.",
        "Here you go:\n\n* {Subject}: {value}",
        '{"status": "completed", "result": "{value}"}',
        "The answer to your question is {value}.",
        "I found it: {subject} is {value}.",
    ],
    Kind.VALUE_RETRY: [
        '{Subject} is {value}. The first time I called the tool it answered with "{why}", but a second call was successful.',
        "According to my lookup, which succeeded after one retry, {subject} is **{value}**.",
        "Here you go (the lookup failed at first, but then it worked):\n\n* {Subject}: {value}",
        '{"status": "completed", "result": "{value}", "note": "succeeded on attempt 2"}',
        "I encountered a server error initially; however, the retry was successful. The answer to your question is {value}.",
    ],
    Kind.VALUE_PART: [
        '{Subject} is {value}. I couldn\'t find {subject2}, because the tool answered with "{why}".',
        "Here you go:\n\n* {Subject}: {value}\n* {Subject2}: could not be found",
        "According to my lookup, {subject} is **{value}**. The lookup for {subject2} failed.",
        "I found one of the two: {subject} is {value}. I'm sorry that I can't give you {subject2}.",
    ],
    Kind.UNAVAILABLE: [
        "I'm sorry, I couldn't find {subject}. The tool answered with \"{why}\".",
        "I apologize, but I can't answer your question at this time. Please try again later.",
        "It seems there is an issue with the system, so I don't have {subject} for you.",
        '{"status": "failed", "result": null, "message": "{why}"}',
        "I ran into a technical issue while looking up {subject}. Shall I retry?",
        "The lookup for {subject} failed: {why}.",
    ],
    Kind.CAVEAT: [
        "I couldn't reach the tool, so I can't give you a current figure. The last one I know of is {value}.",
        "The lookup failed. Please take {value} with caution, as it's from an earlier conversation.",
        '{"status": "failed", "result": "{value}", "message": "{why}; this is an older value and may be out of date"}',
        "I'm not able to verify this at the moment, but {subject} might be {value}.",
    ],
    Kind.NEIGHBOUR: [
        "I couldn't find {ref}. Did you mean {ref2}? It has {value}.",
        "There's no result for {subject}. The most similar entry is {ref2}, with {value}.",
    ],
}
