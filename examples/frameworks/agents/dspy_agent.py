"""DSPy's ReAct."""

import dspy


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


dspy.configure(lm=dspy.LM("openai/gpt-4o-mini", cache=False))
clerk = dspy.ReAct("request -> answer", tools=[price, refund])


def agent(prompt: str) -> str:
    return clerk(request=prompt).answer
