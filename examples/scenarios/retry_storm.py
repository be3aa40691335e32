"""A storm of 429 under stacked retries."""

import time
from collections.abc import Callable
from typing import Any

from shop import search


def tried(times: int, wait_s: float, work: Callable[[], Any]) -> Any:
    for n in range(times):
        try:
            return work()
        except Exception:
            if n == times - 1:
                raise
            time.sleep(wait_s * 2**n)
    return None


def naive() -> Callable[[str], str]:
    def agent(prompt: str) -> str:
        try:  # the client tries three times, the tool three times, the agent three times
            found = tried(3, 0, lambda: tried(3, 0, lambda: tried(3, 0, lambda: search("kettle"))))
        except Exception:
            return "I could not search."
        return f"I found {found[0]}."

    return agent


def careful() -> Callable[[str], str]:
    def agent(prompt: str) -> str:
        try:
            return f"I found {tried(3, 1, lambda: search('kettle'))[0]}."
        except Exception:
            return "I could not search."

    return agent
