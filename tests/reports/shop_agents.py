"""Two agents that look up a price: one that asks again, and one that makes it up."""

import time


def price(*, item: str) -> int:
    return len(item)


def patient(_prompt: str) -> str:
    for _ in range(2):
        try:
            return f"It costs {price(item='pen')}."
        except Exception:  # noqa: BLE001
            time.sleep(1)
    return "I could not find the price."


def hasty(_prompt: str) -> str:
    try:
        return f"It costs {price(item='pen')}."
    except Exception:  # noqa: BLE001
        return "It costs <b>99</b>."
