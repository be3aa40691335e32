"""Prices of models, in USD per million tokens in and out. The figures follow the published price lists of November
2025: Groq's, and in `OTHERS` those of OpenAI, Anthropic and Google for short prompts. Prices change: a user who pays
should set their own. A model that is not listed has an unknown cost, not a cost of nothing."""

import re

OFFLINE = "chaoslab-offline"

PRICES: dict[str, tuple[float, float]] = {
    OFFLINE: (0.0, 0.0),
    "llama-3.1-8b-instant": (0.05, 0.08),
    "llama-3.3-70b-versatile": (0.59, 0.79),
    "meta-llama/llama-4-scout-17b-16e-instruct": (0.11, 0.34),
    "meta-llama/llama-4-maverick-17b-128e-instruct": (0.20, 0.60),
    "moonshotai/kimi-k2-instruct-0905": (1.00, 3.00),
    "openai/gpt-oss-120b": (0.15, 0.60),
    "openai/gpt-oss-20b": (0.075, 0.30),
    "qwen/qwen3-32b": (0.29, 0.59),
}


OTHERS: dict[str, tuple[float, float]] = {
    "gpt-5.1": (1.25, 10.00), "gpt-5": (1.25, 10.00), "gpt-5-mini": (0.25, 2.00), "gpt-5-nano": (0.05, 0.40),
    "gpt-4.1": (2.00, 8.00), "gpt-4.1-mini": (0.40, 1.60), "gpt-4.1-nano": (0.10, 0.40), "gpt-4o": (2.50, 10.00),
    "gpt-4o-mini": (0.15, 0.60), "o3": (2.00, 8.00), "o4-mini": (1.10, 4.40), "claude-opus-4-5": (5.00, 25.00),
    "claude-opus-4-1": (15.00, 75.00), "claude-sonnet-4-5": (3.00, 15.00), "claude-haiku-4-5": (1.00, 5.00),
    "gemini-2.5-pro": (1.25, 10.00), "gemini-2.5-flash": (0.30, 2.50), "gemini-2.5-flash-lite": (0.10, 0.40),
}  # fmt: skip
_DATED = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)\Z")
"""The end of a name that stands for one version of a model, as in claude-haiku-4-5-20251001."""


def compute_cost_usd(model: str, prompt_tokens: int, completion_tokens: int) -> float | None:
    """The cost of one exchange; None if the model's price is unknown. A model with a date in its name costs what it
    does without one."""
    # Groq's names are complete; those of the others may end in a date.
    short = _DATED.sub("", model)
    price = PRICES.get(model) or OTHERS.get(model) or OTHERS.get(short)
    return None if price is None else (prompt_tokens * price[0] + completion_tokens * price[1]) / 1_000_000
