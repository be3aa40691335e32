"""The cost of a run of the lab's own agent before it starts."""

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from chaoslab.config import settings
from chaoslab.config.settings import Settings
from chaoslab.execution.estimate import PILOT, CostEstimate, find_earlier_sample, run_pilot
from chaoslab.lab.launch import FEW, LOGS, check, check_installed, make_spec


def estimate_run(words: Sequence[str]) -> CostEstimate:
    """The cost of `chaoslab lab` with these settings. In virtual time a few trials are run; in real time the newest run
    in the same world and with the same model tells. Raises SettingError: a setting is wrong. OSError: something is in
    the way."""
    chosen = settings.load(words)
    check_installed(chosen.world)
    prompts = check(chosen)
    trials = chosen.trials_of(len(prompts))
    if chosen.world == "virtual":
        return _estimate_virtual(chosen, prompts, trials)
    real = bool(chosen.groq_api_key or chosen.model_url)
    sample = find_earlier_sample(LOGS, lambda _: True, world=chosen.world, model=chosen.model_name)
    note = f"no earlier run is known: TRIALS=1 tells what a trial in WORLD={chosen.world} costs"
    limit = chosen.cost_limit_in_force_usd
    name = f"WORLD={chosen.world}, {chosen.model_name}"
    return CostEstimate.build(name, trials, sample, real=real, limit_usd=limit, notes=() if sample else (note,))


def _estimate_virtual(chosen: Settings, prompts: Sequence[object], trials: int) -> CostEstimate:
    from chaoslab.execution.forked import make_executor
    from chaoslab.execution.pipeline import run_trials
    from chaoslab.execution.spec import REAL_LIMIT_S

    spec = make_spec(replace(chosen, trials=min(trials, PILOT)), prompts)
    pool = make_executor(1, REAL_LIMIT_S, at_once=spec.sequential)
    jobs = 1 if spec.sequential else chosen.jobs or (1 if trials <= FEW else os.cpu_count() or 1)
    with closing(run_trials(spec, min(trials, PILOT), executor=pool)) as trial_results:
        return CostEstimate.build("WORLD=virtual", trials, run_pilot(trial_results), real=False, jobs=jobs)
