"""Agno."""

from agno.agent import Agent
from agno.models.openai import OpenAIChat


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


def agent(prompt: str) -> str:
    clerk = Agent(model=OpenAIChat(id="gpt-4o-mini"), tools=[price, refund], instructions="You refund orders.")
    return clerk.run(prompt).content
