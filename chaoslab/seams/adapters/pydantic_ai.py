"""Pydantic AI's tools and agents."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, is_a, of_schema


class PydanticAi(Adapter):
    """Pydantic AI: a tool is a `Tool`, an agent an `Agent`."""

    tools = "a Pydantic AI Tool"
    agents = "a Pydantic AI Agent"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "pydantic_ai", "Tool")

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        return [tool.function]

    def parameters(self, tool: Any) -> Collection[str] | None:
        return of_schema(tool.function_schema.json_schema)

    def is_agent(self, thing: Any) -> bool:
        return is_a(thing, "pydantic_ai", "Agent")

    def callable_of(self, agent: Any, *, of_coroutine: bool) -> Callable[[Any], Any]:  # noqa: ARG002
        async def ask(prompt: Any) -> Any:
            return (await agent.run(prompt)).output

        return ask
