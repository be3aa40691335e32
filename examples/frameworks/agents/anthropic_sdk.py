"""Anthropic's SDK and its tool runner."""

from anthropic import Anthropic, beta_tool

client = Anthropic()


@beta_tool
def price(order: int) -> str:
    """The price of an order in dollars.

    Args:
        order: the order's number
    """
    return "30"


@beta_tool
def refund(order: int, amount: int) -> str:
    """Pay an order's price back.

    Args:
        order: the order's number
        amount: the dollars to pay back
    """
    return f"{amount} dollars paid back for order {order}"


def agent(prompt: str) -> str:
    runner = client.beta.messages.tool_runner(
        model="claude-sonnet-4-5",
        max_tokens=1000,
        tools=[price, refund],
        messages=[{"role": "user", "content": prompt}],
    )
    return runner.until_done().content[0].text
