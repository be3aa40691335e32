"""LangChain's tools and agents: a tool is a function with a schema, or a class with `_run`; an agent has `invoke`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, is_a

# The beginning of the modules whose `_run` and `_arun` only call something else.
OWN = "langchain_core."
FILLED_IN = frozenset({"config", "run_manager", "callbacks"})
"""Parameters that LangChain itself passes along."""


class Langchain(Adapter):
    """LangChain: a tool is a `BaseTool`, an agent a `Runnable`."""

    tools = "a LangChain tool"
    agents = "a LangChain Runnable"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "langchain_core.tools", "BaseTool")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        functions = [function for name in ("func", "coroutine") if (function := getattr(tool, name, None)) is not None]
        methods = [getattr(tool, name) for name in ("_run", "_arun")]
        # LangChain's own methods only call `func` or `coroutine`.
        return functions or [method for method in methods if not str(method.__module__).startswith(OWN)]

    def parameters(self, tool: Any) -> Collection[str] | None:
        if is_a(tool, OWN + "tools", "Tool") and tool.args_schema is None:
            return None  # its one argument is shown under a name that the function need not know
        try:
            # Filled in by LangChain itself, and so shown to no model.
            return set(tool.args) - FILLED_IN
        except Exception:  # noqa: BLE001 - a schema that cannot be made, whatever its annotations hold
            return None

    def is_agent(self, thing: Any) -> bool:
        return is_a(thing, "langchain_core.runnables", "Runnable")

    def callable_of(self, agent: Any, *, of_coroutine: bool) -> Callable[[Any], Any]:
        # the agent as a callable from prompt to answer. A graph with "messages" gets the prompt as the user's message
        # and answers with the text of its last one. Any other Runnable gets the prompt as it is.
        speaks = "messages" in (getattr(agent, "channels", None) or {})

        def make_input(prompt: Any) -> Any:
            return {"messages": [("user", prompt)]} if speaks else prompt

        if of_coroutine:

            async def ask_async(prompt: Any) -> Any:
                return extract_text(await agent.ainvoke(make_input(prompt)))

            return ask_async

        def ask(prompt: Any) -> Any:
            return extract_text(agent.invoke(make_input(prompt)))

        return ask

    def answer(self, given: Any) -> Any:
        return extract_text(given)


def extract_text(answer: Any) -> Any:
    """The text of a message, or of the last one of a conversation such as a LangGraph state; else the answer itself."""
    if isinstance(answer, Mapping) and isinstance(answer.get("messages"), Sequence) and answer["messages"]:
        last = answer["messages"][-1]
        # The last message of a state that has none keeps the state as the answer.
        return answer if extract_text(last) is last and not isinstance(last, str) else extract_text(last)
    if is_a(answer, "langchain_core.messages", "BaseMessage"):
        return str(answer.text)
    if isinstance(answer, Mapping) and {"role", "content"} <= answer.keys():
        # A message may be a plain dict, as in a graph's input.
        return answer["content"]
    return answer
