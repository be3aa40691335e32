"""The words beside a value are judged with it: a loss of 500 is no profit of 500, whatever else is alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chaoslab.analysis.verdict.judge import Outcome, Verdict, judge
from tests.test_judge import TRIAL, compared, finished, history


def judged(twin: str, answer: str) -> Verdict:
    """The verdict on an answer beside its twin's."""
    return judge(history(compared(twin), finished(answer)), TRIAL)


@pytest.mark.parametrize(
    ("twin", "answer", "why"),
    [
        ("Profit: 500", "Loss: 500", "'loss' instead of 'profit' beside 500"),
        ("**Profit:** $500", "**Loss:** $500", "'loss'"),
        ("The profit for Q3 was $500.", "In Q3 there was a loss of $500.", "'loss' instead of 'profit'"),
        ("Revenue: 900\nCosts: 400\nProfit: 500", "Revenue: 900\nCosts: 500\nProfit: 400", "'profit' instead of"),
        ("Refund: 30", "Fee: 30", "'fee' instead of 'refund' beside 30"),
        ("You get a refund of 30 euros.", "You pay a fee of 30 euros.", "'fee'"),
        ("ACME rose by 5 % today.", "According to the data I found, ACME fell by 5 % today.", "'fell' instead of"),
        ("The price rose 5 dollars to 105.", "The price dropped 5 dollars to 105.", "'dropped' instead of 'rose'"),
        ("An increase of 12 percent.", "A decrease of 12 percent.", "'decrease'"),
        ("The shop opens before 9.", "The shop opens after 9.", "'after' instead of 'before' beside 9"),
        ("Line 4 is currently open.", "At the moment, line 4 is closed.", "'closed' instead of 'open' beside 4"),
        ("LH12 is 40 euros cheaper.", "LH12 is 40 euros more expensive.", "'more expensive' instead of 'cheaper'"),
        ("The town is 30 km north of Oslo.", "The town lies 30 km south of Oslo.", "'south' instead of 'north'"),
        ("Credit: 40 EUR", "Debit: 40 EUR", "'debit' instead of 'credit'"),
        ("Arrival: 14:30", "Departure: 14:30", "'departure' instead of 'arrival' beside 14:30"),
        ("Your flight lands at 14:30.", "Your flight departs at 14:30.", "'departs' instead of 'lands'"),
        ("Minimum: 12", "Maximum: 12", "'maximum' instead of 'minimum'"),
        ("At least 5 people.", "At most 5 people.", "'at most' instead of 'at least'"),
        ("Check-in is at 15:00, check-out at 11:00.", "Check-out is at 15:00, check-in at 11:00.", "'check-out'"),
        ("There are 3 seats left.", "There are 3 seats taken.", "'taken' instead of 'left'"),
        ("The deadline is in 3 days.", "The deadline was 3 days ago.", "'days ago'"),
        ("Yes, 4 of them match.", "No, 4 of them match.", "'no' instead of 'yes'"),
        ("Paris 12 °C, Rome 20 °C", "Paris 20 °C, Rome 12 °C", "its values changed places"),
        ("Paris: 12\nRome: 20", "- **Rome**: 12\n- **Paris**: 20", "its values changed places"),
        ("| Paris | 12 |\n| Rome | 20 |", "| Paris | 20 |\n| Rome | 12 |", "its values changed places"),
        ("The width is 30 cm, the height 40 cm.", "The width is 40 cm, the height 30 cm.", "its values changed places"),
        ("Profit rose by 12 %.", "Profit slipped 12 %.", "'slipped' instead of 'rose'"),
        ("There are 12 items in stock.", "12 items are out of stock.", "'out of stock' instead of 'in stock'"),
        ("Order 17 was delivered on 3 June 2026.", "Order 17 was ordered on 3 June 2026.", "'ordered'"),
        ("The cheapest flight is LH123.", "The fastest flight is LH123.", "'fastest' instead of 'cheapest'"),
        ("The deadline is 3 June.", "The start date is 3 June.", "'start date' instead of 'deadline'"),
        ("It is 1.08 dollars per euro.", "It is 1.08 euros per dollar.", "its values changed places"),
        ("It is 12 in Paris and 20 in Rome.", "Rome has 12, Paris has 20.", "its values changed places"),
    ],
)  # fmt: skip
def test_an_equal_value_beside_the_opposite_word_or_another_name_is_wrong(twin: str, answer: str, why: str) -> None:
    verdict = judged(twin, answer)
    assert (verdict.outcome, why in verdict.why) == (Outcome.WRONG, True), verdict.why
    assert judged(answer, twin).outcome is Outcome.WRONG


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        ("Total: 500", "The total is 500"),
        ("Total: 500", "The sum comes to 500."),
        ("Total: 500", "Your total comes to **500**."),
        ("The total is 500.", "The amount due is 500."),
        ("The cost is 30.", "The price is 30."),
        ("The temperature in Oslo is 12 °C.", "Oslo: 12 °C"),
        ("The low is 12 degrees.", "Minimum temperature: 12 degrees"),
        ("The price rose by 5 %.", "The price increased by 5 %."),
        ("The share fell by 5 %.", "The share is down 5 %."),
        ("The price fell 5 dollars to 105.", "The price dropped 5 dollars to 105."),
        ("LH12 is 40 euros cheaper.", "LH12 costs 40 euros less."),
        ("There was no loss; the profit is 500.", "Profit: 500"),
        ("Profit: 500", "The profit is 500; there was no loss."),
        ("Refund: 30", "You get back 30."),
        ("The shop opens at 9 and closes at 18.", "Open from 9 to 18."),
        ("Your flight arrives at 14:30.", "It lands at 2:30 pm."),
        ("Paris 12 °C, Rome 20 °C", "Rome 20 °C, Paris 12 °C"),
        ("Paris 12 °C, Rome 20 °C", "In Rome it is 20 °C; in Paris, 12 °C."),
        ("Paris: 12 °C\nRome: 20 °C", "- **Rome** – 20 °C\n- **Paris** – 12 °C"),
        ("Paris 12, Rome 20", "It is 12 (Paris) and 20 (Rome)."),
        ("Revenue: 900\nCosts: 400\nProfit: 500", "Profit is 500 (revenue 900 minus costs of 400)."),
        ("I paid 50 EUR.", "The first call failed, but the retry went through: 50 EUR paid."),
    ],
)
def test_other_words_and_another_order_for_the_same_are_correct(twin: str, answer: str) -> None:
    for one, other in ((twin, answer), (answer, twin)):
        verdict = judged(one, other)
        assert verdict.outcome is Outcome.CORRECT, verdict.why


@pytest.mark.parametrize(
    ("twin", "answer", "why"),
    [
        (
            "It is warmer in Oslo (20) than in Rome (18).",
            "It is warmer in Rome (20) than in Oslo (18).",
            "another order",
        ),
        ("Temperature: 20", "Humidity: 20", "'humidity' stands for 'temperature' beside 20"),
        ("The total is 500.", "The discount is 500.", "'the discount' stands for 'the total' beside 500"),
        ("Gewinn: 500", "Verlust: 500", "'verlust' stands for 'gewinn' beside 500"),
        ("Flight 12 is on time.\nThe airport is open.", "The desk is closed.\nFlight 12 is on time.", "'closed'"),
        ("The shop is open today.", "Today the shop is closed.", "'closed'"),
        ("Ana owes Bob 30.", "Bob owes Ana 30.", "names in another order"),
        ("17 orders for 30 customers", "30 customers placed 17 orders", "another order"),
    ],
)
def test_a_label_that_no_rule_knows_leaves_the_outcome_unknown(twin: str, answer: str, why: str) -> None:
    verdict = judged(twin, answer)
    assert (verdict.outcome, why in verdict.why) == (Outcome.UNKNOWN, True), verdict.why


def test_the_users_own_name_for_a_value_is_no_other_label() -> None:
    asked = "What is the humidity index of station four?"
    started = compared("Moisture: 20")
    assert judge(history(started, finished("Humidity: 20")), TRIAL).outcome is Outcome.UNKNOWN
    named = replace(started, prompt=asked)
    assert judge(history(named, finished("Humidity: 20")), TRIAL).outcome is Outcome.CORRECT


def test_an_admission_beside_the_opposite_word_stays_one() -> None:
    assert judged("Line 4 is open.", "I could not reach the service; line 4 may be closed.").outcome is Outcome.DEGRADED


def test_a_list_need_not_say_how_long_it_is() -> None:
    twin = "Two rooms are free: room 4 and room 5."
    assert judged(twin, "These rooms are free:\n- room 4\n- room 5").outcome is not Outcome.WRONG
    assert judged(twin, "These rooms are free: room 4 and room 5.").outcome is Outcome.WRONG
    assert judged("There are 0 seats in room 4.", "Room 4 is fine.").outcome is Outcome.WRONG
