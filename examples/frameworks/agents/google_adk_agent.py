"""Google's Agent Development Kit with Gemini."""

from google.adk.agents import Agent
from google.adk.runners import InMemoryRunner
from google.genai import types


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
    clerk = Agent(name="clerk", model="gemini-2.5-flash", instruction="You refund orders.", tools=[price, refund])
    runner = InMemoryRunner(clerk, app_name="shop")
    session = await runner.session_service.create_session(app_name="shop", user_id="ana")
    message = types.Content(role="user", parts=[types.Part(text=prompt)])
    answer = ""
    async for event in runner.run_async(user_id="ana", session_id=session.id, new_message=message):
        if event.is_final_response() and event.content:
            answer = event.content.parts[0].text
    return answer
