"""The sums of what verdicts rest on, as a sentence."""

import pytest

from chaoslab.analysis.measures._grounds import Grounds
from chaoslab.analysis.verdict.table import Basis


@pytest.mark.parametrize(
    ("by_basis", "said"),
    [
        ({}, ""),
        ({Basis.END: 1}, "1 of 1 verdict rests on the trial's end, effects, state or values"),
        ({Basis.VALUES: 2}, "2 of 2 verdicts rest on effects, state or values"),
        ({Basis.VALUES: 1, Basis.WORDS: 2}, "1 of 3 verdicts rest on effects, state or values; 2 on words"),
        (
            {Basis.WORDS: 1, Basis.JUDGE: 1},
            "0 of 2 verdicts rest on effects, state or values; 1 on a model; 1 on words",
        ),
    ],
)
def test_what_verdicts_rest_on_is_counted(by_basis: dict[Basis, int], said: str) -> None:
    assert Grounds(by_basis, {}).said == said


@pytest.mark.parametrize(
    ("unknown", "said"), [({}, ""), ({"left undone": 2, "as asked": 1}, "3 unknown: 2 left undone, 1 as asked")]
)
def test_the_unknown_are_counted_by_their_world(unknown: dict[str, int], said: str) -> None:
    assert Grounds({}, unknown).undecided == said
