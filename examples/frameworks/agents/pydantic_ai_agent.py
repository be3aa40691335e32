"""Pydantic AI."""

from pydantic_ai import Agent

clerk = Agent("openai:gpt-4o-mini", instructions="You refund orders.")


@clerk.tool_plain
def price(order: int) -> int:
    """The price of an order in dollars.

    Args:
        order: the order's number
    """
    return 30


@clerk.tool_plain
def refund(order: int, amount: int) -> str:
    """Pay an order's price back.

    Args:
        order: the order's number
        amount: the dollars to pay back
    """
    return f"{amount} dollars paid back for order {order}"


async def agent(prompt: str) -> str:
    return (await clerk.run(prompt)).output
