"""A chaos lab for LLM agents: break the network, the tools, the model and the budget, and see what the agent does."""

__version__ = "0.1.0"
