"""Equal answers in another notation are the same for certain, other meanings never are."""

import pytest

from chaoslab.analysis.answers.compare import Likeness, compare, echoes

SAME, OTHER, OPPOSED, ALIKE, UNCLEAR = Likeness
PRICE, DAY = "The price is 1200 euros.", "The demo is on 7 March 2026."


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        (PRICE, "The price is 1,200.00 euros."),
        (PRICE, "The price is 1.200,00 euros."),
        (PRICE, "The price is 1'200 euros."),
        (PRICE, "The price is 1\u202f200 euros."),
        (PRICE, "The price is twelve hundred euros."),
        (PRICE, "The price is 1.2k euros."),
        (PRICE, "**The price** is €1,200."),
        (PRICE, "the price is EUR 1200"),
        (PRICE, "Sure, the price is now 1200 euros."),
        ("I paid $45.75.", "I paid 45.75 US dollars."),
        ("12.5", "12½"),
        ("There are 21 seats.", "There are twenty-one seats."),
        ("I booked two rooms", "I booked 2 rooms."),
        ("It is -5 degrees.", "It is minus 5 degrees."),
        ("It is −5°", "It is -5 degrees"),
        ("12 % on time", "12 per cent on time"),
        (DAY, "The demo is on 07.03.2026."),
        (DAY, "The demo is on 2026/03/07."),
        (DAY, "The demo is on March 7th, 2026."),
        ("It starts at 16:45.", "It starts at 4:45 PM."),
        ("It takes 90 minutes.", "It takes 1.5 hours."),
        ("It is 2 km away.", "It is 2,000 m away."),
        ("It is 6.5 mm.", "It is 6.5 millimetres."),
        ("The sum is 0.6000000000000001.", "The sum is 0.6."),
        ('{"sum": 0.6000000000000001}', '{"sum": 0.6}'),
        ("Jos\u00e9 is in.", "Jose\u0301 is in."),
        ("Order BK-17 at 4 PM", "order bk-17 at 4 pm"),
        ("It needs 5kWh.", "It needs 5 kWh."),
        ("It isn't open.", "It is not open."),
        ("Results:\n- Oslo: 12\n- Rome: 20", "Results:\n* Rome: 20\n* Oslo: 12"),
        ("| Oslo | Rome |\n|---|---|\n| 12 | 20 |", "| Oslo | Rome |\n| :-: | -: |\n| 12 | 20 |"),
        ("## Balance: 1200", "> Balance: `1200`"),
        ('{"a": 1, "b": [1, 2]}', '{"b": [1, 2.0], "a": 1}'),
        ('{"a": 1, "attempts": 1, "elapsed_s": 3}', '{"a": 1, "attempts": 2, "elapsed_s": 9}'),
        ('{"paid": "1,200.00"}', '{"paid": "1200"}'),
    ],
)
def test_another_notation_is_the_same_for_certain(twin: str, answer: str) -> None:
    for pair in ((twin, answer), (answer, twin)):
        found = compare(*pair)
        assert found.likeness is SAME, found.said


CHANGED = [
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
def test_another_meaning_is_never_the_same_and_never_taken_for_other_words(twin: str, answer: str) -> None:
    for pair in ((twin, answer), (answer, twin)):
        found = compare(*pair)
        assert found.likeness not in (SAME, ALIKE), found.said


@pytest.mark.parametrize(
    ("twin", "answer", "said"),
    [
        ("Your balance is 1200.", "Your balance is 1800.", "it says 1800 instead of 1200"),
        ("Your balance is 1200.", "Your balance is -1200.", "it says -1200 instead of 1200"),
        ("There are 3 seats.", "There are three hundred seats.", "it says 300 instead of 3"),
        ("Due on 3 March 2026", "Due on 4 March 2026", "it says 4 instead of 3"),
        ("Oslo has 12, Rome has 20.", "Oslo has 20, Rome has 12.", "it says 20, 12 instead of 12, 20"),
        ('{"a": {"b": [1, 2]}}', '{"a": {"b": [1, 3]}}', "a.b[1] is 3 instead of 2"),
        ('{"to": "room 4"}', '{"to": "room 5"}', 'to is "room 5" instead of "room 4"'),
    ],
)
def test_equal_words_with_other_numbers_are_other_for_certain(twin: str, answer: str, said: str) -> None:
    found = compare(twin, answer)
    assert (found.likeness, said in found.said) == (OTHER, True), found.said


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        (PRICE, "The price is 1.200 euros."),
        (PRICE, "The price is 1 200 euros."),
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
    ],
)
def test_what_may_be_read_in_two_ways_is_neither_the_same_nor_other_for_certain(twin: str, answer: str) -> None:
    found = compare(twin, answer)
    assert found.likeness not in (SAME, OTHER), found.said


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        ("I refunded 30 EUR for your order.", "Your order: 30 EUR refunded."),
        ("The balance of your account is 1200.", "Your account has a balance of 1200."),
        ("It is 12 degrees in Oslo right at this moment.", "It is 12 degrees in Oslo at this moment."),
    ],
)
def test_the_same_values_and_most_words_are_alike_which_is_a_guess(twin: str, answer: str) -> None:
    found = compare(twin, answer)
    assert found.likeness in (ALIKE, UNCLEAR), found.said


def test_alike_needs_a_value_or_a_word_that_the_prompt_does_not_have() -> None:
    twin, asked = "I have refunded order 17.", "Refund order 17."
    assert compare(twin, "I refunded order 17.", asked=asked).likeness is ALIKE
    for answer in ("Order 17 it is.", "I refund order 17 for Ana.", "banana"):
        found = compare(twin, answer, asked=asked)
        assert (found.likeness, "no value proves it" in found.said) == (UNCLEAR, True), found.said


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        ("I booked room 12 on 5 May.", "Room 12 is booked on 5 May."),
        ("The mirror was acquired in 1927.", "We acquired the mirror in 1927."),
        ("You paid 34.90 EUR at Krell on Saturday.", "You paid 34.90 EUR on Saturday, at Krell."),
        ("The pot holds 612.40 GBP.", "It is 612.40 GBP."),
        ("Room 12 is booked.", "Room 12 is booked. Let me know if you need more!"),
        ("Room 12 is booked.", "The first attempt failed. Room 12 is booked."),
        ("Room 12 is booked.", "Room 12 is booked, after one failed attempt."),
        ("Room 12 is booked.", "Room 12 is booked (the first call timed out; the second went through)."),
        ("Yes, room 12 is booked.", "Room 12 is booked."),
        ("It takes 90 minutes.", "It takes 1 h 30 min."),
    ],
)
def test_a_phrase_that_moved_and_a_sentence_that_tells_nothing_change_no_meaning(twin: str, answer: str) -> None:
    found = compare(twin, answer, asked="What about the pot?")
    assert found.likeness is ALIKE, found.said


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        ("I moved 50 from savings to checking.", "I moved 50 from checking to savings."),
        ("100 EUR is 95.40 CHF.", "100 CHF is 95.40 EUR."),
        ("Ana is at 5 on Monday, Bob at 6 on Friday.", "Ana is at 6 on Monday, Bob at 5 on Friday."),
        ("Rechnung 17 ist nicht bezahlt: 30 EUR.", "Rechnung 17 ist bezahlt: 30 EUR."),
        ("Room 12 is booked.", "The second attempt failed again."),
    ],
)
def test_a_word_that_moved_alone_is_never_taken_for_other_words(twin: str, answer: str) -> None:
    for pair in ((twin, answer), (answer, twin)):
        assert compare(*pair).likeness is not ALIKE, compare(*pair).said


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        ("Parking is 14 EUR. Breakfast is included.", "Parking is 14 EUR. Breakfast isn't included."),
        ("Yes, patient 7 has a recorded allergy.", "Patient 7 has no recorded allergy."),
        ("The soil is at 17.5 °C.", "The soil has 17.5 °F."),
        ("The balance of the account is 2915.", "The account's balance is 2195."),
        ("The lamp in room 4 is on.", "The lamp of room 4 is off."),
    ],
)
def test_a_negation_a_unit_or_another_value_in_the_same_words_is_the_opposite(twin: str, answer: str) -> None:
    found = compare(twin, answer)
    assert found.likeness is OPPOSED, found.said
    assert compare(twin, answer, known="2195").likeness is not OPPOSED or "2195" not in answer


def test_an_echo_says_nothing_but_what_the_twin_says() -> None:
    twin, asked = "Pallet 9 weighs 455 kg. I set the stock to 40.", "Weigh pallet 9 and set the stock to 40."
    for answer in ("Pallet 9 weighs 455 kg.", "The stock is set to 40. A mail went to the shop."):
        assert echoes(twin, answer, asked), answer
    for answer in (
        "Pallet 9 weighs 455 kg. The stock is still open.",
        "You must set the stock to 40 yourself.",
        "A look at the shelves: nothing there.",
        '{"stock": 40}',
    ):
        assert not echoes(twin, answer, asked), answer
    assert not echoes("La receta está solicitada.", "La receta está solicitada.", "")


def test_a_number_of_the_effects_that_were_done_contradicts_nothing() -> None:
    twin, answer = "Booked as 4711.", "Booked as 4712."
    assert compare(twin, answer).likeness is OTHER
    assert compare(twin, answer, known="4712").likeness is not OTHER
    twin, answer = '{"id": 4711}', '{"id": 4712}'
    assert compare(twin, answer).likeness is OTHER
    assert compare(twin, answer, known="4712").likeness is UNCLEAR


@pytest.mark.parametrize("other", ["7", "null", "[7]", "true"])
def test_a_text_and_another_kind_of_value_are_no_same_text_either_way_round(other: str) -> None:
    for twin, given in ((f'{{"a": {other}}}', '{"a": "x"}'), ('{"a": "x"}', f'{{"a": {other}}}')):
        found = compare(twin, given)
        assert (found.likeness, found.said.startswith("a is ")) == (Likeness.UNCLEAR, True)


def test_a_reason_names_the_words_that_differ() -> None:
    found = compare("The red pen at 3 is best.", "The pen at 3 is best of all.")
    told = (found.likeness, found.said)
    assert told == (UNCLEAR, "'all' stands in one of the two alone: without 'red', 'of all' added")


@pytest.mark.parametrize(
    ("twin", "answer", "kept", "said"),
    [
        ("I told Ana it is 21.", "I told Bob it is 21.", False, "its names differ: ana, bob: 'bob' instead of 'ana'"),
        ("Ana met Bob at 3.", "Bob met Ana at 3.", False, "it has the same words in another order, such as ana"),
        ("Ana has 3 books.", "Bob has 3 books.", True, "most of its words are other ones: 'bob' instead of 'ana'"),
        ("It is 5 and 6.", "It is 6.", False, "it lacks 5: without '5 and'"),
        ("It is 6.", "It is 5 and 6.", False, "it adds 5: '5 and' added"),
        ("All is well.", "It went fine.", True, "no value proves it, and its words differ: 'it went fine' instead of"),
        ("", "It is 5.", False, "it says nothing of what was asked: 'it is 5' added"),
    ],
)
def test_an_unclear_answer_has_the_first_of_the_reasons(twin: str, answer: str, kept: bool, said: str) -> None:
    found = compare(twin, answer)
    assert (found.likeness, found.kept) == (UNCLEAR, kept)
    assert found.said.startswith(said), found.said


@pytest.mark.parametrize("sign", ["⊕", "<", "?", "≥"])
def test_a_reason_shows_a_sign_as_it_was_written(sign: str) -> None:
    assert f"'{sign}' stands in one of the two alone" in compare("The pen at 3 is.", f"The pen {sign} at 3 is.").said
