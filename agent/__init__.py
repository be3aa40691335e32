"""The lab's agent: LangChain's `create_agent` with ten tools over HTTP and ChatGroq as its model."""
