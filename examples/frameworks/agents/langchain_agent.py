"""LangChain's create_agent, a LangGraph graph, with a model of Groq's."""

from langchain.agents import create_agent
from langchain_core.tools import tool


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


agent = create_agent("groq:llama-3.3-70b-versatile", [price, refund], system_prompt="You refund orders.")
