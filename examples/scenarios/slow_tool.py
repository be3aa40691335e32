"""Does one slow tool hold up everything?"""

from collections.abc import Callable

import httpx


def shop(request: object) -> dict[str, object]:
    return {"item": "kettle", "left": 3}


def left(timeout_s: float) -> str:
    return f"There are {httpx.get('http://shop.test/stock', timeout=timeout_s).json()['left']} kettles."


def naive() -> Callable[[str], str]:
    return lambda prompt: left(timeout_s=120)


def careful() -> Callable[[str], str]:
    def agent(prompt: str) -> str:
        try:
            return left(timeout_s=5)
        except httpx.TimeoutException:
            return "I could not look up the stock in time."

    return agent
