"""LlamaIndex's FunctionAgent."""

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI


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
    clerk = FunctionAgent(tools=[price, refund], llm=OpenAI(model="gpt-4o-mini"), system_prompt="You refund orders.")
    return str(await clerk.run(prompt))
