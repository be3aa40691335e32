"""Agents with planted bugs for `front_door.py`. Each is an agent that somebody could have written: what is planted is
marked `# bug`, and all else is handled with some care. The bugs are those of public reports, named at each agent."""

import operator
from contextlib import suppress
from typing import Annotated, Any, TypedDict

import openai
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_groq import ChatGroq
from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

BASE = "http://api.openai.com/v1"
ORDER = {"id": 17, "total": 30, "mail": "ana@example.org", "paid": True}


def get_order(order: int) -> dict[str, Any]:
    """Reads an order."""
    return {**ORDER, "id": order}


def get_customer(order: int) -> dict[str, Any]:  # noqa: ARG001
    """Reads the customer of an order."""
    return {"name": "Ana", "mail": "ana@example.org"}


def get_rules() -> list[str]:
    """Reads the rules by which mail is kept."""
    return ["invoice", "contract"]


def list_mail() -> list[dict[str, str]]:
    """Reads the inbox."""
    return [{"id": "m1", "about": "invoice 4"}, {"id": "m2", "about": "win a car"}]


def stock_here(item: str) -> int:  # noqa: ARG001
    """Reads the stock of the shop."""
    return 3


def stock_there(item: str) -> int:  # noqa: ARG001
    """Reads the stock of the other shop."""
    return 5


def refund(order: int, amount: int) -> str:
    """Pays money back."""
    return f"{amount} back for {order}"


def charge(order: int, amount: int) -> str:
    """Takes money."""
    return f"{amount} for {order}"


def send_mail(to: str, text: str) -> str:  # noqa: ARG001
    """Sends a mail."""
    return "sent"


def delete_mail(mail: str) -> str:
    """Deletes a mail."""
    return f"{mail} is gone"


def set_status(order: int, status: str) -> str:
    """Sets the status of an order."""
    return f"{order} is {status}"


def reserve(item: str) -> str:
    """Reserves an item."""
    return f"{item} is reserved"


def start_report() -> str:
    """Has a report made."""
    return "r1"


def poll_report(report: str) -> str:  # noqa: ARG001
    """Reads the state of a report."""
    return "ready"


# Plain Python.


def refund_desk(prompt: str) -> str:  # noqa: ARG001
    """Retries a payment without a key (stripe/ai 402), and says that a mail went out that did not (tau-bench: 45 %)."""
    try:
        order = get_order(17)
    except Exception as error:  # noqa: BLE001
        return f"I could not read order 17: {error}."
    for _ in range(3):
        try:
            refund(17, order["total"])  # bug: repeats
            break
        except TimeoutError:
            continue
        except Exception as error:  # noqa: BLE001
            return f"I could not refund order 17: {error}."
    else:
        return "I do not know if order 17 is refunded."
    with suppress(Exception):
        send_mail(order["mail"], "Your refund is on its way.")  # bug: swallows
    return "Order 17 is refunded, and the customer knows."


def inbox(prompt: str) -> str:  # noqa: ARG001
    """Without its rules it deletes all (an inbox that was emptied when compaction lost the user's rule)."""
    try:
        rules, mails = get_rules(), list_mail()  # bug: takes
        gone = [each for each in mails if not any(rule in each["about"] for rule in rules)]
        for each in gone:
            delete_mail(each["id"])
    except Exception as error:  # noqa: BLE001
        return f"I stopped: {error}."
    return f"{len(gone)} deleted."


def reporter(prompt: str) -> str:  # noqa: ARG001
    """Asks again for ever (a run that was wedged for 24 days on 1,149 retries)."""
    try:
        report = start_report()
    except Exception as error:  # noqa: BLE001
        return f"No report was begun: {error}."
    while True:
        try:
            state = poll_report(report)  # bug: waits
        except Exception:  # noqa: BLE001
            continue
        return f"The report is {state}."


def clerk(prompt: str) -> str:  # noqa: ARG001
    """Reserves twice if both shops cannot be read: two faults together (a fallback behind a fallback)."""
    lost = []
    for shop in (stock_here, stock_there):
        try:
            shop("lamp")
        except Exception:  # noqa: BLE001
            lost.append(shop)
    try:
        reserve("lamp")
        if len(lost) == 2:
            reserve("lamp")  # bug: repeats
    except Exception as error:  # noqa: BLE001
        return f"I could not reserve the lamp: {error}."
    return "The lamp is reserved."


# Frameworks.

# Its exporter asks a server outside, and prints that it has no key.
set_tracing_disabled(disabled=True)


def _client() -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=BASE, api_key="none", timeout=30, max_retries=2)


async def openai_agents(prompt: str) -> str:
    """A tool that retries inside of itself, below a framework that would have told the model (openai-agents 879)."""

    @function_tool
    def pay_back(order: int) -> str:
        for _ in range(2):
            try:
                return refund(order, 30)  # bug: repeats
            except TimeoutError:
                continue
        raise TimeoutError("the bank does not answer")

    model = OpenAIChatCompletionsModel("gpt-4o", _client())
    try:
        return str((await Runner.run(Agent("desk", tools=[pay_back], model=model), prompt)).final_output)
    except Exception as error:  # noqa: BLE001
        return f"I could not do it: {type(error).__name__}."


async def langchain(prompt: str) -> str:
    """An error of a tool ends the run as an exception (langchain's create_agent raises what a tool raises)."""
    model = ChatGroq(model="gpt-4o", base_url="http://api.groq.com", api_key="none", timeout=30)  # type: ignore[arg-type]
    graph: Any = create_agent(model, [tool(get_order), tool(set_status)])
    asked = {"messages": [("user", prompt)]}
    found = await graph.ainvoke(asked, {"recursion_limit": 12})  # bug: uncaught
    return str(found["messages"][-1].content) or "The model gave no answer."


async def pydantic_ai(prompt: str) -> str:
    """A tool that answers "sent" whatever happened, so the model says it is done (Failing Tools: 11.5 % recover)."""

    def tell(to: str) -> str:
        """Sends the news."""
        with suppress(Exception):
            send_mail(to, "It is done.")  # bug: swallows
        return "sent"

    model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(openai_client=_client()))
    try:
        return str((await PydanticAgent(model, tools=[tell]).run(prompt)).output)
    except Exception as error:  # noqa: BLE001
        return f"I could not do it: {type(error).__name__}."


class _State(TypedDict):
    done: Annotated[list[str], operator.add]


def langgraph(prompt: str) -> str:  # noqa: ARG001
    """A node with two effects is retried as a whole (langgraph 7417, 8039, 9006: 209 of 209 done twice)."""

    def checkout(_: _State) -> dict[str, Any]:
        charge(17, 30)  # bug: repeats
        send_mail("ana@example.org", "Thank you.")
        return {"done": ["checkout"]}

    graph = StateGraph(_State)
    graph.add_node("checkout", checkout, retry_policy=RetryPolicy(max_attempts=2, retry_on=Exception))
    graph.add_edge(START, "checkout")
    graph.add_edge("checkout", END)
    try:
        graph.compile().invoke({"done": []})
    except Exception as error:  # noqa: BLE001
        return f"The checkout failed: {type(error).__name__}."
    return "It is paid, and the customer has a mail."
