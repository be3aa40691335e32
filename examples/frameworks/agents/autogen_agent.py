"""AutoGen's AssistantAgent."""

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient


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


async def agent(prompt: str) -> str:
    clerk = AssistantAgent(
        "clerk",
        OpenAIChatCompletionClient(model="gpt-4o-mini"),
        tools=[price, refund],
        max_tool_iterations=5,
    )
    return (await clerk.run(task=prompt)).messages[-1].content
