"""A run whose trials are judged in the process that does them, so that the process which takes them only counts."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from chaoslab.execution.agents._case import AgentResult
from chaoslab.execution.drawn import Around
from chaoslab.execution.spec import RunSpec, TrialSpec
from chaoslab.worlds.virtual.run_writer import RunWriter


@dataclass(frozen=True)
class JudgedRun(Around[RunSpec[AgentResult]]):
    """The run with results that are judged. `lines`: the lines of the run's log are spelled out too. `summed`: the
    trials are those from 0 up to this one, and are summed up in blocks; 0: they are not."""

    lines: bool
    summed: int

    def __post_init__(self) -> None:
        if self.summed:
            from chaoslab.analysis.measures import sums  # noqa: F401 - forked workers inherit it

    @property
    def block(self) -> int:
        """See `block_of`."""
        return RunWriter.block if self.summed else 1

    @contextmanager
    def opened(self) -> Iterator[Callable[[TrialSpec], AgentResult]]:
        with self.run.opened() as do:
            block: list[AgentResult] = []

            def judged(spec: TrialSpec) -> AgentResult:
                result = do(spec).judged(lines=self.lines)
                if self.summed:
                    if spec.number % RunWriter.block == 0:
                        block.clear()
                    block.append(result)
                    ends = spec.number + 1 == self.summed or (spec.number + 1) % RunWriter.block == 0
                    if ends and len(block) == spec.number % RunWriter.block + 1:
                        result.sums = made(block)
                return result

            yield judged


def made(results: Sequence[AgentResult]) -> bytes | None:
    """The sums of trials that were run one after the other, by the last one's if they were made where it ran."""
    if results[-1].sums is not None:
        return results[-1].sums
    if not all(result.book.plain for result in results):
        return None  # a log shows no secrets, and its readers are told what it shows
    from chaoslab.analysis.measures import sums  # all measures, which a short run has no use for

    judged = {result.book.key: result.verdict for result in results if result.verdict is not None}
    stories = [result.history.records for result in results]
    return sums.made(stories, judged if len(judged) == len(results) else None)
