"""Prices of models, in USD per million tokens in and out.

The figures follow Groq's published price list of November 2025. Prices change: a user who pays should set their own. A
model that is not listed has an unknown cost, not a cost of nothing.
"""

from __future__ import annotations

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


def cost_usd(model: str, prompt_tokens: int, completion_tokens: int) -> float | None:
    """The cost of one exchange; None if the model's price is unknown."""
    price = PRICES.get(model)
    return None if price is None else (prompt_tokens * price[0] + completion_tokens * price[1]) / 1_000_000
