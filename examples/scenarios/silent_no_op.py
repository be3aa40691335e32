"""Does the agent look whether a write was written?"""

from collections.abc import Callable

from shop import get_order, opened, refund


def naive() -> Callable[[str], str]:
    opened()

    def agent(prompt: str) -> str:
        return f"Order 17: {refund(17, 49)}."

    return agent


def careful() -> Callable[[str], str]:
    opened()

    def agent(prompt: str) -> str:
        for _ in range(3):
            said = refund(17, 49)
            if get_order(17)["refunded"]:
                return f"Order 17: {said}."
        return "I could not refund order 17: the shop says yes and its books say no."

    return agent
