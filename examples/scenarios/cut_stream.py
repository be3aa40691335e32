"""Does a cut stream pass for an answer?"""

import json
from collections.abc import Callable, Iterator

import httpx

import chaoslab as lab

TEXT = "The kettle holds 2 litres, costs 49 EUR, and must never be run without water in it."
model = lab.scripted([TEXT])


def streamed() -> Iterator[tuple[str, str | None]]:
    """The pieces of an answer, each with its finish_reason."""
    body = {"model": "gpt-4o-mini", "stream": True, "messages": [{"role": "user", "content": "Tell me of the kettle."}]}
    with httpx.stream("POST", "http://api.openai.com/v1/chat/completions", json=body, timeout=10) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    yield choice["delta"].get("content") or "", choice["finish_reason"]


def naive() -> Callable[[str], str]:
    def agent(prompt: str) -> str:
        text = ""
        try:
            for piece, _ in streamed():
                text += piece
        except httpx.HTTPError:
            pass  # what has come is better than nothing
        return text

    return agent


def careful() -> Callable[[str], str]:
    def agent(prompt: str) -> str:
        for _ in range(4):
            try:
                found = list(streamed())
            except httpx.HTTPError:
                continue
            if found and found[-1][1] is not None:  # only a stream that says its end is whole
                return "".join(piece for piece, _ in found)
        return "I could not get the whole answer of the model."

    return agent
