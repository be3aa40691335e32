"""The lab's agent: LangChain's `create_agent` with ten tools over HTTP and ChatGroq as its model."""

from chaoslab.agent.put_off import put_off

put_off("langsmith.types")  # several hundred models of an API that is not asked: tracing is off
put_off("httpx._main", "main")  # a command, with all that draws its colours
