"""Equal answers in another notation are the same for certain, other meanings never are; other words are unclear."""

import pytest

from chaoslab.analysis.answers.compare import Likeness, compare_answers

SAME, OTHER, UNCLEAR = Likeness
PRICE, DAY = "The price is 1200 euros.", "The demo is on 7 March 2026."


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        (PRICE, "The price is 1,200.00 euros."),
        (PRICE, "The price is 1.200,00 euros."),
        (PRICE, "The price is 1'200 euros."),
        (PRICE, "The price is 1\u202f200 euros."),
        (PRICE, "**The price** is €1,200."),
        (PRICE, "the price is EUR 1200"),
        ("I paid $45.75.", "I paid 45.75 US dollars."),
        ("It is −5°", "It is -5 degrees"),
        ("12 % on time", "12 per cent on time"),
        (DAY, "The demo is on 07.03.2026."),
        (DAY, "The demo is on 2026/03/07."),
        (DAY, "The demo is on March 7th, 2026."),
        ("It starts at 16:45.", "It starts at 4:45 PM."),
        ("The sum is 0.6000000000000001.", "The sum is 0.6."),
        ('{"sum": 0.6000000000000001}', '{"sum": 0.6}'),
        ("Jos\u00e9 is in.", "Jose\u0301 is in."),
        ("Order BK-17 at 4 PM", "order bk-17 at 4 pm"),
        ("It needs 5kWh.", "It needs 5 kWh."),
        ("It isn't open.", "It is not open."),
        ("| Oslo | Rome |\n|---|---|\n| 12 | 20 |", "| Oslo | Rome |\n| :-: | -: |\n| 12 | 20 |"),
        ("## Balance: 1200", "> Balance: `1200`"),
        ('{"a": 1, "b": [1, 2]}', '{"b": [1, 2.0], "a": 1}'),
        ('{"a": 1, "attempts": 1, "elapsed_s": 3}', '{"a": 1, "attempts": 2, "elapsed_s": 9}'),
        ('{"paid": "1,200.00"}', '{"paid": "1200"}'),
    ],
)
def test_another_notation_is_the_same_for_certain(twin: str, answer: str) -> None:
    for pair in ((twin, answer), (answer, twin)):
        found = compare_answers(*pair)
        assert found.likeness is SAME, found.text


CHANGED = [
    ("Build 31.02.2026 is out.", "Build 30.02.2026 is out."),  # no dates, so they stay as they are
    ("Part 2026/13/45 is here.", "Part 2026/13/46 is here."),
    # parts and other texts
    ("Your room in Oslo is booked.", "Your room in"),
    ("Your room is booked.", "banana"),
    ("The patient is well.", "The patient is."),
    ("I am done now.", "I am done. Now what?"),
    # values
    ("Room 4 is free.", "Room 5 is free."),
    ("Flight LH123", "Flight LH124"),
    ("Oslo has 12, Rome has 20.", "Oslo has 20, Rome has 12."),
    ("Alice owes Bob 5.", "Bob owes Alice 5."),
    ("A dozen eggs", "A hundred eggs"),
    ("It costs three euros.", "It costs five euros."),
    ("The code is 0042.", "The code is 42."),
    # letters
    ("The key is aB3x.", "The key is Ab3X."),
    ("バスです", "ハスです"),
    ("Tôi bạn", "Tôi bán"),
    ("Es ist schön.", "Es ist schon."),
    ("Tengo diez años.", "Tengo diez anos."),
    # negations and opposites
    ("Order 17 is shipped.", "Order 17 is not shipped."),
    ("The 5 orders are shipped.", "The 5 orders aren't shipped."),
    ("I can do 5.", "I can't do 5."),
    ("The heating is on.", "The heating is off."),
    ("Take it before meals.", "Take it after meals."),
    ("12.5 % on time", "12.5 % late"),
    ("It is open.", "It is unopened."),
    # units and signs
    ("Dose: 500 mg", "Dose: 500 g"),
    ("It is 20 °C.", "It is 20 °F."),
    ("20°", "20 %"),
    ("It takes 45 minutes.", "It takes 45 hours."),
    ("It takes 1 hour.", "It takes 58 minutes."),
    ("It is 12.5 km away.", "It is 12.5 miles away."),
    ("The hike is 5 km, the drive 3 mi.", "The hike is 5 km, the drive."),
    ("I paid €45.75.", "I paid $45.75."),
    ("I paid ₹45.", "I paid ₽45."),
    ("It costs A$5.", "It costs C$5."),
    ("Trend: 5 % ↑", "Trend: 5 % ↓"),
    ("Trend ↑", "Trend"),
    ("Status 🟢", "Status 🔴"),
    ("Tasks: ☑ a ☐ b", "Tasks: ☐ a ☑ b"),
    ("🙂", "🙁"),
    ("…", "!"),
    ("x < 5", "x > 5"),
    ("x<5", "x>5"),
    ("x < 5", "x <= 5"),
    ("a = b", "a != b"),
    ("a -> b", "a <- b"),
    ("Blood type O+", "Blood type O-"),
    ("Use C++", "Use C"),
    ("Use C#", "Use C"),
    ("Take 3/4 of it.", "Take 3-4 of it."),
    ("5 × 3", "5 + 3"),
    ("5 ‰", "5"),
    ("Result: (500)", "Result: 500"),
    ("It was 5.", "Was it 5?"),
    ("The demo is at 16:45.", "The demo is at 4:45 AM."),
    ("Plan A is open.", "Plan is open."),
    # lists
    ("1. Open\n2. Close", "1. Close\n2. Open"),
    ("- It is 30 €\n- x", "- x\n- It is 30 $"),
    ("Done:\n- a\n- b\nLeft:\n- c\n- d", "Done:\n- a\n- c\nLeft:\n- b\n- d"),
    ("- Done\n  - a\n- Left\n  - b", "- Done\n  - b\n- Left\n  - a"),
    ("| Oslo | Rome |\n|---|---|\n| 12 | 20 |", "| Rome | Oslo |\n|---|---|\n| 12 | 20 |"),
    # structured answers
    ('{"a": true}', '{"a": 1}'),
    ('{"a": true}', '{"a": false}'),
    ('{"a": 1}', '{"a": 1, "b": 2}'),
    ('{"a": 1}', "{}"),
    ('{"a": 1}', "a is 1"),
    ('{"grade": "A+"}', '{"grade": "A-"}'),
    ('{"trend": "↑"}', '{"trend": "↓"}'),
    ('{"entries": 5}', '{"entries": 3}'),
    ('{"retrieved": 18}', '{"retrieved": 3}'),
    ('{"duration": 30}', '{"duration": 60}'),
    ("[59.9, 10.7]", "[10.7, 59.9]"),
]
"""Pairs of answers of which one does not mean the other."""


@pytest.mark.parametrize(("twin", "answer"), CHANGED)
def test_another_meaning_is_never_the_same(twin: str, answer: str) -> None:
    for pair in ((twin, answer), (answer, twin)):
        found = compare_answers(*pair)
        assert found.likeness is not SAME, found.text


@pytest.mark.parametrize(
    ("twin", "answer", "said"),
    [
        ("Your balance is 1200.", "Your balance is 1800.", "it says 1800 instead of 1200"),
        ("Your balance is 1200.", "Your balance is -1200.", "it says -1200 instead of 1200"),
        ("Due on 3 March 2026", "Due on 4 March 2026", "it says 4 instead of 3"),
        ("Room 0,123", "Room 0,124", "it says 0,124 instead of 0,123"),
        ("It is 1e999999.", "It is 1e999998.", "it says 1e999998 instead of 1e999999"),
        ("Oslo has 12, Rome has 20.", "Oslo has 20, Rome has 12.", "it says 20, 12 instead of 12, 20"),
        ('{"a": {"b": [1, 2]}}', '{"a": {"b": [1, 3]}}', "a.b[1] is 3 instead of 2"),
        ('{"to": "room 4"}', '{"to": "room 5"}', 'to is "room 5" instead of "room 4"'),
    ],
)
def test_equal_words_with_other_numbers_are_other_for_certain(twin: str, answer: str, said: str) -> None:
    found = compare_answers(twin, answer)
    assert (found.likeness, said in found.text) == (OTHER, True), found.text


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        (PRICE, "The price is 1.200 euros."),
        (PRICE, "The price is 1 200 euros."),
        (PRICE, "Sure, the price is now 1200 euros."),
        ("It is 6.5 mm.", "It is 6.5 millimetres."),
        ("The price is 1.2 euros.", "The price is 1.200 euros."),
        ("Best first:\n- Anna\n- Berta", "Best first:\n- Berta\n- Anna"),
        (DAY, "The demo is on 03/07/2026."),
        (DAY, "The demo is on 7 March."),
        ("It takes 90 minutes.", "It takes 1 h 30 min."),
        ("The rate is 12.5%.", "The rate is 0.125."),
        ("I ran 1 attempt.", "I ran 2 attempts."),
        ('{"ok": true, "rows": 3}', '{"ok": false, "rows": 3}'),
        ('{"rows": [17, 18]}', '{"rows": [18, 17]}'),
        ('{"a": 1, "duration_s": 3}', '{"a": 1, "duration_s": 9}'),
        (f"5 {'a b c d e f ' * 400}", f"5 {'a b c d e g ' * 400}"),
        ("5 of 9", f"5 of 9 {'x' * 20_000}"),
        (PRICE, "The price is twelve hundred euros."),
        (PRICE, "The price is 1.2k euros."),
        ("12.5", "12½"),
        ("There are 21 seats.", "There are twenty-one seats."),
        ("I booked two rooms", "I booked 2 rooms."),
        ("It is -5 degrees.", "It is minus 5 degrees."),
        ("It takes 90 minutes.", "It takes 1.5 hours."),
        ("It is 2 km away.", "It is 2,000 m away."),
        ("Results:\n- Oslo: 12\n- Rome: 20", "Results:\n* Rome: 20\n* Oslo: 12"),
        ("There are 3 seats.", "There are three hundred seats."),
        ("It is 20 °C in Oslo.", "It is 68 °F in Oslo."),
        ("It is 20 °C.", "It is 20 °F."),
        ("It is 1 km away.", "It is 1 mile away."),
        ("The parcel weighs 5 kg.", "The parcel weighs 11 pounds."),
        ("The meeting is at 16:45.", "The meeting is at a quarter to five."),
        ("It takes 30 minutes.", "It takes half an hour."),
        ("The shop opens at 09:00.", "It opens at 9."),
        ("I refunded 30 EUR for your order.", "Your order: 30 EUR refunded."),
        ("I booked room 12 on 5 May.", "Room 12 is booked on 5 May."),
        ("Room 12 is booked.", "Room 12 is booked. Let me know if you need more!"),
        ("Room 12 is booked.", "The first attempt failed. Room 12 is booked."),
        ("I moved 50 from savings to checking.", "I moved 50 from checking to savings."),
        ("Rechnung 17 ist nicht bezahlt: 30 EUR.", "Rechnung 17 ist bezahlt: 30 EUR."),
        ("Parking is 14 EUR. Breakfast is included.", "Parking is 14 EUR. Breakfast isn't included."),
        ("The soil is at 17.5 °C.", "The soil has 17.5 °F."),
        ("The lamp in room 4 is on.", "The lamp of room 4 is off."),
        ("I told Ana it is 21.", "I told Bob it is 21."),
    ],
)
def test_what_may_be_read_in_two_ways_is_neither_the_same_nor_other_for_certain(twin: str, answer: str) -> None:
    found = compare_answers(twin, answer)
    assert found.likeness is UNCLEAR, found.text


def test_a_number_of_the_effects_that_were_done_contradicts_nothing() -> None:
    twin, answer = "Booked as 4711.", "Booked as 4712."
    assert compare_answers(twin, answer).likeness is OTHER
    assert compare_answers(twin, answer, known="4712").likeness is not OTHER
    twin, answer = '{"id": 4711}', '{"id": 4712}'
    assert compare_answers(twin, answer).likeness is OTHER
    assert compare_answers(twin, answer, known="4712").likeness is UNCLEAR


@pytest.mark.parametrize("other", ["7", "null", "[7]", "true"])
def test_a_text_and_another_kind_of_value_are_no_same_text_either_way_round(other: str) -> None:
    for twin, given in ((f'{{"a": {other}}}', '{"a": "x"}'), ('{"a": "x"}', f'{{"a": {other}}}')):
        found = compare_answers(twin, given)
        assert (found.likeness, found.text.startswith("a is ")) == (Likeness.UNCLEAR, True)


@pytest.mark.parametrize(
    ("twin", "answer", "same_values", "text"),
    [
        ("I told Ana it is 21.", "I told Bob it is 21.", True, "it has its twin's values in other words"),
        ("It is 5 and 6.", "It is 6.", False, "it lacks 5"),
        ("It is 6.", "It is 5 and 6.", False, "it adds 5"),
        ("It is 6.", "There are 5 of them.", False, "it lacks 6 and adds 5"),
        ("", "It is 5.", False, "it adds 5"),
        ("A {}", '{"a": 1}', False, "only one of the two answers is structured"),
    ],
)
def test_an_unclear_answer_is_told_by_its_values(twin: str, answer: str, same_values: bool, text: str) -> None:
    found = compare_answers(twin, answer)
    assert (found.likeness, found.same_values, found.text) == (UNCLEAR, same_values, text)


def test_a_value_of_the_prompt_is_not_lacking() -> None:
    assert compare_answers("Order 17 costs 30.", "It is 30.", asked="Order 17?").same_values
