"""Does a rate limit wedge the agent for good?"""

import time
from collections.abc import Callable

from shop import search


def naive() -> Callable[[str], str]:
    def agent(prompt: str) -> str:
        while True:
            try:
                return f"I found {search('kettle')[0]}."
            except Exception:
                time.sleep(60)  # it will pass

    return agent


def careful() -> Callable[[str], str]:
    def agent(prompt: str) -> str:
        for wait_s in (1, 5, 20):
            try:
                return f"I found {search('kettle')[0]}."
            except Exception:
                time.sleep(wait_s)
        return "I could not search: the service refuses for now."

    return agent
