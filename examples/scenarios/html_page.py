"""Is an error page taken for data?"""

from collections.abc import Callable

import httpx

URL = "http://shop.test/price"


def shop(request: object) -> dict[str, object]:
    return {"item": "kettle", "price": 49}


def naive() -> Callable[[str], str]:
    def agent(prompt: str) -> str:
        return f"The kettle: {httpx.get(URL, timeout=5).text}"

    return agent


def careful() -> Callable[[str], str]:
    def agent(prompt: str) -> str:
        for _ in range(4):
            try:
                return f"The kettle: {httpx.get(URL, timeout=5).raise_for_status().json()['price']} EUR, kettle."
            except (httpx.HTTPError, ValueError, KeyError):
                continue
        return "I could not get the price of the kettle."

    return agent
