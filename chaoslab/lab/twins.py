"""The twins of a run of the lab's agent in real time: each prompt once without faults, in virtual time, before its
first trial. So a run on loopback or in containers is judged as one in virtual time is. With a real model there are
none."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from chaoslab.agent.config import Config
from chaoslab.agent.prompts import Prompt, prompts_to_json
from chaoslab.analysis.verdict.seen import Twin
from chaoslab.config.settings import Settings
from chaoslab.core.plan import Plan
from chaoslab.execution.forked import Child, ChildDied, TooLong, can_fork
from chaoslab.execution.spec import TrialSpec
from chaoslab.lab._virtual_lab import Lab, LabSpec, TwinCache, check_prompts

LIMIT_S = 60.0
"""The most seconds of real time for a twin, which takes some milliseconds."""
SHOWN = 8
"""The most prompts that a line names."""


@contextmanager
def open_twin_maker(
    chosen: Settings, config: Config, prompts: Sequence[Prompt], file: Path, tell: Callable[[str], None]
) -> Iterator[Callable[[int], Twin | None]]:
    """A context that gives a function: the twin of a prompt of the file, by its number from 0; None if it has none.
    They are made in a child process, of which virtual time leaves nothing. `tell`: is told in one line which prompts
    have nothing to be judged by. Raises SettingError: a prompt states what no service can tell or do."""
    if reason := _explain_no_twins(chosen, config):
        unstated = [str(number) for number, prompt in enumerate(prompts, 1) if not prompt.has_facts_or_effects]
        if unstated:
            subject = f"prompt{'s' if unstated[1:] else ''} {', '.join(unstated[:SHOWN])}"
            suffix = f" and {len(unstated) - SHOWN} more" if unstated[SHOWN:] else ""
            tell(
                f"{subject}{suffix}: nothing to judge the answers by, since no facts or effects are stated and {reason}"
            )
        yield lambda _: None
        return
    check_prompts(prompts, file)
    without_faults = LabSpec(
        "calm", chosen.now, replace(chosen, world="virtual"), Plan(chosen.seed), prompts_to_json(prompts)
    )
    with Child(lambda: _open_lab_twin_maker(without_faults)) as child:
        yield _TwinCache(child, len(prompts))


def _explain_no_twins(chosen: Settings, config: Config) -> str:
    """The reason why there are no twins; empty if there are."""
    if chosen.groq_api_key or chosen.model_url:
        return "a real model's answers have no twin"
    if config.services:
        return "answers of real services have no twin"
    return "" if can_fork() else "twins need a system with os.fork"


@contextmanager
def _open_lab_twin_maker(without_faults: LabSpec) -> Iterator[Callable[[TrialSpec], Twin | None]]:
    lab = Lab(without_faults)
    lab_twins = TwinCache(lab)

    def find_or_run_twin(spec: TrialSpec) -> Twin | None:
        twin = lab_twins.find_or_run_twin(spec.number + 1, without_faults)
        return None if twin is None else replace(twin, seconds=None)  # no real ones can be compared with them

    with lab.install_fakes():
        yield find_or_run_twin


@dataclass
class _TwinCache:
    """The twins that the child process has made so far."""

    child: Child[TrialSpec, Twin | None]
    prompts: int
    known: dict[int, Twin | None] = field(default_factory=dict)

    def __call__(self, number: int) -> Twin | None:
        if number not in self.known:
            self.child.send_spec(TrialSpec(number))
            try:
                (self.known[number],) = self.child.wait_for_result(LIMIT_S)[0].iterate_results()
            except (TooLong, ChildDied):
                # A child that hung or died makes no more twins, so the prompts that are left have none.
                self.known = dict.fromkeys(range(self.prompts)) | self.known
            if len(self.known) == self.prompts:
                self.child.kill_and_reap()
        return self.known[number]
