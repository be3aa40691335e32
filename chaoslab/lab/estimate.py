"""The cost of a run of the lab's own agent before it starts."""

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from chaoslab.config import settings
from chaoslab.config.settings import Settings
from chaoslab.execution.estimate import PILOT, CostEstimate, pilot, remembered
from chaoslab.lab.launch import FEW, LOGS, check, check_installed, spec_of


def estimated(given: Sequence[str]) -> CostEstimate:
    """The cost of `chaoslab lab` with these settings. In virtual time a few trials are run; in real time the newest run
    in the same world and with the same model tells. Raises SettingError: a setting is wrong. OSError: something is in
    the way."""
    chosen = settings.load(given)
    check_installed(chosen.world)
    asked = check(chosen)
    trials = chosen.trials_of(len(asked))
    if chosen.world == "virtual":
        return _virtual(chosen, asked, trials)
    real = bool(chosen.groq_api_key or chosen.model_url)
    found = remembered(LOGS, lambda _: True, world=chosen.world, model=chosen.model_name)
    note = f"no earlier run is known: TRIALS=1 tells what a trial in WORLD={chosen.world} costs"
    limit = chosen.cost_limit_in_force_usd
    name = f"WORLD={chosen.world}, {chosen.model_name}"
    return CostEstimate.of(name, trials, found, real=real, limit_usd=limit, notes=() if found else (note,))


def _virtual(chosen: Settings, asked: Sequence[object], trials: int) -> CostEstimate:
    from chaoslab.execution.forked import children
    from chaoslab.execution.pipeline import results
    from chaoslab.execution.spec import REAL_LIMIT_S

    spec = spec_of(replace(chosen, trials=min(trials, PILOT)), asked)
    does = children(1, REAL_LIMIT_S, at_once=spec.sequential)
    jobs = 1 if spec.sequential else chosen.jobs or (1 if trials <= FEW else os.cpu_count() or 1)
    with closing(results(spec, min(trials, PILOT), executor=does)) as done:
        return CostEstimate.of("WORLD=virtual", trials, pilot(done), real=False, jobs=jobs)
