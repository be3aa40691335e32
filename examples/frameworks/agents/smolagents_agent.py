"""Smolagents' ToolCallingAgent."""

from smolagents import OpenAIModel, ToolCallingAgent, tool


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
    clerk = ToolCallingAgent(tools=[price, refund], model=OpenAIModel(model_id="gpt-4o-mini"), verbosity_level=0)
    return str(clerk.run(prompt))
