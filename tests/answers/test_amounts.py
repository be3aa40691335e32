"""An amount in another unit, and a time in other words, are the same amount and the same time."""

import pytest

from chaoslab.analysis.answers._notation import AMOUNTS_MAX, aligned, clock, plainly
from chaoslab.analysis.answers.compare import Likeness, compare


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        ("It is 20 °C in Oslo.", "It is 68 °F in Oslo."),
        ("It is 21 °C.", "It is 69.8 °F."),
        ("It is -5 °C.", "It is 23F."),
        ("It is 68 °F.", "It is 20 °C."),
        ("It is 20 °C in Oslo.", "It is 20 °C (68 °F) in Oslo."),
        ("It is 20 °C (68 °F) in Oslo.", "It is 20 °C in Oslo."),
        ("From 5 °C to 12 °C.", "From 41 °F to 54 °F."),
        ("It is 10 km away.", "It is 6.2 miles away."),
        ("The parcel weighs 5 kg.", "The parcel weighs 11 pounds."),
        ("5 kg", "11.02 lb"),
        ("Wind: 36 km/h", "Wind: 10 m/s"),
        ("Wind: 100 km/h", "Wind: 62 mph"),
        ("The meeting is at 16:45.", "The meeting is at a quarter to five."),
        ("The meeting is at 16:45.", "The meeting is at quarter to 5 pm."),
        ("The meeting is at 16:45.", "The meeting is at 4.45 pm."),
        ("The meeting is at 16:45.", "The meeting is at 4:45 in the afternoon."),
        ("The meeting is at 16:30.", "The meeting is at half past four."),
        ("The meeting is at half past four.", "The meeting is at 16:30."),
        ("The meeting is at 16:15.", "The meeting is at quarter past 4."),
        ("The meeting is at 9:00.", "The meeting is at nine o'clock."),
        ("The meeting is at 9:00.", "The meeting is at 9 in the morning."),
        ("Open from 15:00 to 17:30.", "Open from 3 pm to 5.30 p.m."),
        ("Open from 00:15 to 12:00.", "Open from 12:15 AM to 12 PM."),
        ("The call is at 21:30.", "The call is at half past nine in the evening."),
        ("The call is at 21:40.", "The call is at 20 minutes to ten."),
        ("The call is at 16:10.", "The call is at ten past four."),
        ("The call is at 16:50.", "The call is at ten to five."),
        ("It takes 90 minutes.", "It takes an hour and a half."),
        ("It takes 30 minutes.", "It takes half an hour."),
        ("The call is at 12:00.", "The call is at noon."),
        ("The call is at 00:00.", "The call is at midnight."),
    ],
)
def test_the_same_amount_or_time_in_another_unit_or_in_words_is_the_same(twin: str, answer: str) -> None:
    found = compare(twin, answer)
    assert found.likeness is Likeness.SAME, found.said


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        ("It is 20 °C.", "It is 20 °F."),
        ("It is 20 °C in Oslo.", "It is 86 °F in Oslo."),
        ("It is 20 °C in Oslo.", "It is about 70 °F in Rome."),
        ("It is 12 °C in Oslo and 20 °C in Rome.", "It is 68 °F in Oslo and 54 °F in Rome."),
        ("It is 1 km away.", "It is 1 mile away."),
        ("It is 10 km away.", "It is 7 miles away."),
        ("It weighs 5 kg.", "It weighs 5 lb."),
        ("It takes 45 minutes.", "It takes 45 hours."),
        ("The call is at 16:45.", "The call is at a quarter past five."),
        ("It sold 09:00 papers.", "It sold 9 in the morning papers."),
        ("The call is at 16:45.", "The call is at a quarter to five in the morning."),
        ("The call is at 09:30.", "The call is at half past nine in the evening."),
        ("The shop opens at 9:00.", "The shop opens at 8."),
        ("From 5 to 10 seats", "From ten to five seats"),
    ],
)
def test_another_amount_or_time_is_another_value_whatever_its_unit(twin: str, answer: str) -> None:
    found = compare(twin, answer)
    assert found.likeness not in (Likeness.SAME, Likeness.ALIKE), found.said


@pytest.mark.parametrize(
    ("twin", "answer"),
    [
        ("It is 20 °C in Oslo.", "Oslo currently has 68 degrees Fahrenheit."),
        ("It is 21 °C in Oslo.", "It is about 70 °F in Oslo."),
        ("It is 20 °C (68 °F) in Oslo.", "Oslo: 68 °F"),
        ("It is 10 km away.", "It is about 6 miles away."),
        ("It is 10,000 km away.", "It is about 6,200 miles away."),
        ("The shop opens at 9.", "Opening time: 9:00"),
        ("The shop opens at 09:00.", "It opens at 9."),
    ],
)
def test_a_rounded_amount_and_one_in_other_words_is_neither_the_same_nor_other_for_certain(
    twin: str, answer: str
) -> None:
    found = compare(twin, answer)
    assert found.likeness not in (Likeness.SAME, Likeness.OTHER, Likeness.OPPOSED), found.said


def test_texts_of_hundreds_of_amounts_are_compared_in_the_units_that_they_have() -> None:
    few, many = (" ".join(f"{number} km," for number in range(count)) for count in (AMOUNTS_MAX, AMOUNTS_MAX + 1))
    in_metres = (text.replace(" km", "000 m").replace("0000 m", "0 m") for text in (few, many))
    found = [aligned(text, other) == (text, other) for text, other in zip((few, many), in_metres, strict=True)]
    assert found == [False, True]


@pytest.mark.parametrize(
    ("text", "like", "found"),
    [
        ("It ends at 10 at night.", "", "It ends at 22:00."), ("It ends at 5 at night.", "", "It ends at 17:00."),
        ("It ends at 4 at night.", "", "It ends at 04:00."), ("It ends at 12 at night.", "", "It ends at 00:00."),
        ("11.15 at night", "", "23:15"), ("quarter to ten at night", "", "21:45"),
        ("ten minutes past two at night", "", "02:10"), ("half past eleven at night", "", "23:30"),
        ("12 in the morning", "", "12 in the morning"), ("12 pm, 12 am", "", "12:00, 00:00"),
        ("quarter before one p.m.", "", "12:45"), ("25 minutes to 1", "", "12:35"),
        ("five o’clock in the evening", "", "17:00"),
        ("high noon, noon, 12 midnight", "", "high noon, 12:00, 00:00"), ("at quarter past 4", "16:15", "at 16:15"),
        ("at quarter past 4", "16:15 or 4:15", "at 04:15"), ("half past 12", "00:30", "12:30"),
        ("at 9", "09:00", "at 9:00"), ("at 9", "19:00", "at 9"), ("at 9 degrees", "09:00", "at 9 degrees"),
    ],
)  # fmt: skip
def test_a_time_is_read_in_24_hours_where_its_words_tell(text: str, like: str, found: str) -> None:
    assert clock(text, like) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("01.02.2026, 2026/2/1", "2026-02-01, 2026-02-01"), ("30.02.2026", "30.02.2026"),
        ("three hundred and five", "305"), ("two thousand three", "2003"),
        ("one million two hundred thousand and ten", "1200010"), ("twelve of thirteen", "twelve of 13"),
        ("hundred", "hundred"),
        ("five twenty, twenty fifteen, twenty thirty", "five twenty, twenty fifteen, twenty thirty"),
        ("ninety-nine", "99"), ("2.5 million, 3k, 1.5bn, 4 hundred", "2500000, 3000, 1500000000, 400"),
        ("12'345'678, 1.234,5, 1,234.5", "12345678, 1234.5, 1,234.5"),
        ("4 °C below zero, 3 below freezing, minus 4, 5 minus 4", "-4 °C, -3, -4, 5 minus 4"),
        ("half an hour, one hour and a half", "30 minutes, 90 minutes"),
    ],
)  # fmt: skip
def test_numbers_and_dates_in_other_notations_are_read_where_there_is_one_way(text: str, found: str) -> None:
    assert plainly(text) == found
