"""A refund desk as a program: it sends a refund again after a timeout, without a key (stripe/ai 402)."""

import json
import os
import sys
import urllib.request
from typing import Any


def ask(path: str, body: Any = None) -> Any:
    """The shop's reply. Raises OSError: it is none, or an error."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["SHOP_URL"] + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=1) as reply:
        return json.load(reply)


def main() -> str:
    """The answer of the desk."""
    total = ask("/orders/17")["total"]
    for _ in range(2):
        try:
            ask("/refunds", {"order": 17, "amount": total})  # bug: repeats POST /refunds
            return f"Refunded {total}."
        except TimeoutError:
            continue
    return "I do not know if it is refunded."


if __name__ == "__main__":
    try:
        print(main())
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"I could not refund it: {error}.")
