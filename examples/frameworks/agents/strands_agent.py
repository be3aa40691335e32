"""Strands Agents with OpenAI, streamed."""

from strands import Agent, tool
from strands.models.openai import OpenAIModel


@tool
def price(order: int) -> int:
    """The price of an order in dollars.

    Args:
        order: the order's number
    """
    return 30


@tool
def refund(order: int, amount: int) -> str:
    """Pay an order's price back.

    Args:
        order: the order's number
        amount: the dollars to pay back
    """
    return f"{amount} dollars paid back for order {order}"


def agent(prompt: str) -> str:
    clerk = Agent(model=OpenAIModel(model_id="gpt-4o-mini"), tools=[price, refund], callback_handler=None)
    return str(clerk(prompt))
