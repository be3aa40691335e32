"""The OpenAI Agents SDK."""

from agents import Agent, Runner, function_tool


@function_tool
def price(order: int) -> int:
    """The price of an order in dollars.

    Args:
        order: the order's number
    """
    return 30


@function_tool
def refund(order: int, amount: int) -> str:
    """Pay an order's price back.

    Args:
        order: the order's number
        amount: the dollars to pay back
    """
    return f"{amount} dollars paid back for order {order}"


clerk = Agent(name="clerk", instructions="You refund orders.", model="gpt-4o-mini", tools=[price, refund])


async def agent(prompt: str) -> str:
    return (await Runner.run(clerk, prompt)).final_output
