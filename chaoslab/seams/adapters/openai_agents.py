"""The OpenAI Agents SDK: in a function tool the user's function is closed over by the one that the SDK calls."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, find_enclosed_function, is_a, of_schema


class OpenaiAgents(Adapter):
    """The OpenAI Agents SDK: a tool is a `FunctionTool`, an agent an `Agent`."""

    tools = "an OpenAI Agents FunctionTool"
    agents = "an OpenAI Agents Agent"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "agents", "FunctionTool")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        called = tool.on_invoke_tool
        # Some versions of the SDK put an object around the function.
        called = getattr(called, "_invoke_tool_impl", called)
        return [find_enclosed_function(called) or called]

    def parameters(self, tool: Any) -> Collection[str] | None:
        # A tool that a user made by hand takes the arguments as one text of JSON.
        made_by_hand = self.functions(tool) == [tool.on_invoke_tool]
        return {"input", "args", "arguments"} if made_by_hand else of_schema(tool.params_json_schema)

    def is_agent(self, thing: Any) -> bool:
        return is_a(thing, "agents", "Agent")

    def callable_of(self, agent: Any, *, of_coroutine: bool) -> Callable[[Any], Any]:  # noqa: ARG002
        from agents import Runner

        # Async always: the SDK calls its tools so, and `run_sync` refuses a loop that is running.
        async def ask(prompt: Any) -> Any:
            return (await Runner.run(agent, prompt)).final_output

        return ask
