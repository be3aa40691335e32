"""AG2."""

from ag2 import Agent
from ag2.config import OpenAIConfig


def price(order: int) -> int:
    """The price of an order in dollars.

    Args:
        order: the order's number
    """
    return 30


def refund(order: int, amount: int) -> str:
    """Pay an order's price back.

    Args:
        order: the order's number
        amount: the dollars to pay back
    """
    return f"{amount} dollars paid back for order {order}"


clerk = Agent("clerk", prompt="You refund orders.", config=OpenAIConfig(model="gpt-4o-mini"), tools=[price, refund])


async def agent(prompt: str) -> str:
    return (await clerk.ask(prompt)).body
