"""A new tool's parameters are filled by what they are said to be."""

from datetime import datetime

import pytest

from chaoslab.model._arguments import fill_arguments
from chaoslab.model._choosing import OfferedTool
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
