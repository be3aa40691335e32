"""The parts of a text page."""

import pytest

from chaoslab.reports.page import NAME_LEAST, WIDTH, ListBounds, format_percent, group_alike_texts, render_table

COLUMNS = ["x" * 30, "y" * 30]
ROOM = WIDTH - 64


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("level network on services", ["level network on", "    services"]),
        ("  reset_peer on calculator", ["  reset_peer on", "      calculator"]),
        ("circular_reference", ["circular_refere…"]),
        ("one two three four five six seven eight", ["one two three", "    four five", "    six seven …"]),
        ("short", ["short"]),
        ("", [""]),
    ],
)
def test_a_name_without_room_goes_on_below_its_row(name: str, lines: list[str]) -> None:
    assert ROOM > NAME_LEAST
    first, *more = render_table(["f" * ROOM, *COLUMNS], [[name, "1", "2"]])[1:]
    assert first == f"{lines[0]:{ROOM}}  {'1':>30}  {'2':>30}"
    assert more == lines[1:]


def test_long_names_of_one_family_are_told_apart() -> None:
    names = [f"  on {'x' * 20}_number_{n}" for n in (1, 2, 10)]
    lines = render_table(["f" * ROOM, *COLUMNS], [[name, "1", "2"] for name in names])[1:]
    assert [line[:ROOM].strip() for line in lines] == ["on xxxxxx…r_1", "on xxxxxx…r_2", "on xxxxxx…_10"]


def test_only_none_is_0_percent_and_only_all_are_100() -> None:
    assert [format_percent(count / 1000) for count in (0, 1, 6, 500, 994, 996, 1000)] == [
        "0%", "<1%", "1%", "50%", "99%", ">99%", "100%",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("faults", "targets", "kept"),
    [
        (12, 20, [(n, 0) for n in range(12)]),
        (20, 1, [(n, 0) for n in range(12)]),
        (2, 20, [(0, n) for n in range(11)] + [(1, 0)]),
        (3, 3, [(fault, n) for fault in range(3) for n in range(4)]),
        (1, 12, [(0, n) for n in range(13)]),
        (1, 13, [(0, n) for n in range(12)]),
    ],
)
def test_a_long_table_keeps_the_first_groups_and_then_the_first_of_their_parts(
    faults: int, targets: int, kept: list[tuple[int, int]]
) -> None:
    groups = [[[f"{fault}.{n}"] for n in range(targets + 1)] for fault in range(faults)]
    lines = ListBounds("chaoslab summary x --full").render_table(["name"], groups)
    assert [line for line in lines[1:] if "more" not in line] == [f"{fault}.{n}" for fault, n in kept]
    left = faults * (targets + 1) - len(kept)
    assert lines[len(kept) + 1 :] == ([f"  … and {left} more rows: chaoslab summary x --full"] if left else [])
    assert len(ListBounds().render_table(["name"], groups)) == faults * (targets + 1) + 1


def test_trials_that_ended_alike_in_other_places_of_their_stories_are_one_group() -> None:
    told = [("paid twice (events 7, 19 of the trial)", "p1.r1"), ("late", "p1.r2"), ("late", "p1.r4")]
    told += [("paid twice (events 12, 24 … of the trial)", "p1.r3"), ("paid twice (event 3 of the trial)", "p1.r5")]
    assert group_alike_texts(told) == [
        ("paid twice (events 7, 19 of the trial)", ["p1.r1", "p1.r3", "p1.r5"]),
        ("late", ["p1.r2", "p1.r4"]),
    ]


def test_trials_whose_answers_say_the_same_in_other_words_are_one_group() -> None:
    head = "the answer says that it was not done, and the ledger does not have it"
    told = [(f'{head}: "i could not send the note"', "p1.r1"), (f'{head}: "sorry: no table"', "p1.r2"), (head, "p1.r3")]
    told += [('the answer does not say so: "sent."', "p1.r4"), ('missing: send("Ann")', "p1.r5")]
    told += [('the answer does not say so: "done: all of it', "p1.r6"), ('missing: send("Bob")', "p1.r7")]
    assert [trials for _, trials in group_alike_texts(told)] == [
        ["p1.r1", "p1.r2"], ["p1.r4", "p1.r6"], ["p1.r3"], ["p1.r5"], ["p1.r7"],
    ]  # fmt: skip
