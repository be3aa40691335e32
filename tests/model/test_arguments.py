"""A new tool's parameters are filled by what they are said to be."""

from datetime import datetime
from typing import Any

import pytest

from chaoslab.model._arguments import fill_arguments
from chaoslab.model._choosing import OfferedTool
from chaoslab.model._reading import mask_quotes
from chaoslab.model._story import Draft

CONVERT = OfferedTool(
    "convert",
    "Converts an amount of money.",
    {
        "properties": {
            "amount": {"type": "number", "description": "How much"},
            "source": {"type": "string", "description": "Currency to convert from, as in USD"},
            "target": {"type": "string", "description": "Currency to convert to"},
        },
        "required": ["amount", "source", "target"],
    },
)


@pytest.mark.parametrize(
    "clause", ["Convert 100 USD to EUR", "How much is 100 dollars in euros?", "What are 100 USD in EUR"]
)
def test_a_parameter_is_filled_by_its_description(clause: str) -> None:
    draft = Draft((CONVERT,), datetime(2026, 6, 1, 9))
    assert fill_arguments(CONVERT, clause, draft) == {"amount": 100, "source": "USD", "target": "EUR"}


def test_a_number_that_a_parameter_may_take_is_no_text() -> None:
    shares = {"properties": {"count": {"type": "integer"}, "stock": {"type": "string"}}, "required": ["count", "stock"]}
    offer = OfferedTool("trade", "Buys shares.", shares)
    draft = Draft((offer,), datetime(2026, 6, 1, 9))
    assert fill_arguments(offer, "Buy 100 Acme", draft) == {"count": 100, "stock": "Acme"}


TEXT, COUNT = {"type": "string"}, {"type": "integer"}
PARAMETERS: list[tuple[dict[str, Any], list[str], str, dict[str, Any] | None]] = [
    ({"size": {"enum": ["small", "large"]}}, ["size"], "Order a large one", {"size": "large"}),
    ({"n": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, [], "Order 3", {"n": 3}),
    ({"nights": COUNT, "n": COUNT}, ["n"], "Order 3", {"n": 3}),
    ({"express": {"type": "boolean"}}, [], "Order it by express", {"express": True}),
    ({"express": {"type": "boolean"}}, [], "Order it", {}),
    ({"items": {"type": "array"}}, ["items"], "Order it", None),
    ({"items": {"type": "array"}}, ["items"], "Order 'tea' and 'jam'", {"items": ["tea", "jam"]}),
    ({"items": {"type": "object"}}, [], "Order it", {}),
    ({"language": TEXT}, ["language"], "Order it in French", {"language": "fr"}),
    ({"lg": {**TEXT, "description": "The language"}}, ["lg"], "Order it in French", {"lg": "fr"}),
    ({"currency": TEXT}, ["currency"], "Order it", None),
    ({"day": TEXT}, ["day"], "Order it tomorrow", {"day": "2026-06-02"}),
    ({"day": TEXT}, ["day"], "Order it", None),
    ({"at": {**TEXT, "format": "date-time"}}, ["at"], "Order it tomorrow at 3pm", {"at": "2026-06-02T15:00:00"}),
    ({"n": COUNT, "color": TEXT}, ["n"], "Order 3 with color red", {"n": 3, "color": "red"}),
    ({"n": COUNT, "color": TEXT}, ["n"], "Order 3", {"n": 3}),
    ({"city": TEXT}, ["city"], "Order it in New York", {"city": "New York"}),
]


@pytest.mark.parametrize(("properties", "required", "clause", "filled"), PARAMETERS)
def test_a_parameter_is_filled_by_its_type_and_its_name(
    properties: dict[str, Any], required: list[str], clause: str, filled: dict[str, Any] | None
) -> None:
    offer = OfferedTool("order", "Orders it.", {"properties": properties, "required": required})
    masked, quotes = mask_quotes(clause)
    assert fill_arguments(offer, masked, Draft((offer,), datetime(2026, 6, 1, 9), quotes)) == filled
