"""The sums of what verdicts rest on, as a sentence."""

import pytest

from chaoslab.analysis.measures._grounds import VerdictBasisCounts
from chaoslab.analysis.verdict.table import Basis


@pytest.mark.parametrize(
    ("by_basis", "said"),
    [
        ({}, ""),
        ({Basis.END: 1}, "1 verdict was decided: 1 by end"),
        ({Basis.VALUES: 2}, "2 verdicts were decided: 2 by values"),
        ({Basis.SAYS: 2, Basis.JUDGE: 1}, "3 verdicts were decided: 2 by says, 1 by judge"),
    ],
)
def test_what_verdicts_rest_on_is_counted(by_basis: dict[Basis, int], said: str) -> None:
    assert VerdictBasisCounts(by_basis, {}).summary_sentence == said


@pytest.mark.parametrize(
    ("undecided", "said"), [({}, ""), ({"left undone": 2, "as asked": 1}, "3 open: 2 left undone, 1 as asked")]
)
def test_the_open_ones_are_counted_by_their_world(undecided: dict[str, int], said: str) -> None:
    assert VerdictBasisCounts({}, undecided).open_verdicts_summary == said
