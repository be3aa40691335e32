"""CrewAI: a crew of one agent with one task."""

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool


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
    llm = LLM(model="openai/gpt-4o-mini")
    clerk = Agent(role="clerk", goal="Refund orders.", backstory="Works in a shop.", tools=[price, refund], llm=llm)
    task = Task(description=prompt, expected_output="What was refunded.", agent=clerk)
    return Crew(agents=[clerk], tasks=[task]).kickoff().raw
