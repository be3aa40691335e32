"""Is a refund paid twice when the shop's answer is lost?"""

from collections.abc import Callable

from shop import opened, refund


def naive() -> Callable[[str], str]:
    opened()

    def agent(prompt: str) -> str:
        for _ in range(3):
            try:
                return f"Order 17: {refund(17, 49)}."
            except OSError:
                continue
        return "I could not refund order 17."

    return agent


def careful() -> Callable[[str], str]:
    opened()

    def agent(prompt: str) -> str:
        for _ in range(3):
            try:
                return f"Order 17: {refund(17, 49, idempotency_key='refund-17')}."  # the shop knows it again
            except OSError:
                continue
        return "I could not confirm the refund of order 17; it may have been paid."

    return agent
