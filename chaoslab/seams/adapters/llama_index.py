"""LlamaIndex's function tools."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

from chaoslab.seams.adapters import Adapter, is_a


class LlamaIndex(Adapter):
    """LlamaIndex: a tool is a `FunctionTool`."""

    tools = "a LlamaIndex FunctionTool"

    def recognises(self, thing: Any) -> bool:
        return is_a(thing, "llama_index", "FunctionTool")

    def name(self, tool: Any) -> str:
        return str(tool.metadata.name)

    def functions(self, tool: Any) -> Sequence[Callable[..., Any]]:
        # Given one form, LlamaIndex makes the other one of its own code.
        forms = [tool.real_fn, *(getattr(tool, name, None) for name in ("_fn", "_async_fn"))]
        user_forms = [
            form for form in forms if form is not None and not str(form.__module__).startswith("llama_index.")
        ]
        # One function may be both forms.
        return list(dict.fromkeys(user_forms))

    def parameters(self, tool: Any) -> Collection[str] | None:
        schema = tool.metadata.fn_schema
        return None if schema is None else set(schema.model_fields)
