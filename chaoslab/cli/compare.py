"""`chaoslab compare`: is the new side worse than the base, on the same trials?"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chaoslab.analysis.verdict.standing import OPEN_MAX
from chaoslab.base.commandline import (
    PROVES_NOTHING,
    add_json_option,
    make_argument_type,
    make_integer_type,
    parse_nonempty,
    print_error,
    print_json,
    seed,
)
from chaoslab.base.parsers import parse_bounded_number
from chaoslab.cli._ended import print_on_interrupt, select_scenarios, wrap_for_exit_code
from chaoslab.cli._requirements import SHARE

if TYPE_CHECKING:
    from chaoslab.scenarios.scenario import Scenario
    from chaoslab.search.compared import Comparison

HELP = "run two versions through the same trials until it is clear which is worse"
EXAMPLE = "chaoslab compare refund.chaos.yml --agent shop.agent:new"
IS_APART = True
FAILED = 1


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("base", metavar="BASE", type=parse_nonempty, help="the base's scenario file, or a run in logs/")
    parser.add_argument("new", metavar="NEW", type=parse_nonempty, nargs="?", help="those of the new side")
    parser.add_argument(
        "--agent", type=parse_nonempty, metavar="NAME", help="the agent of the new side, as module:name"
    )
    parser.add_argument("--fresh", type=parse_nonempty, metavar="NAME", help="the factory of the new side's agent")
    parser.add_argument("--prompt", type=parse_nonempty, metavar="TEXT", help="the prompt of the new side")
    parser.add_argument(
        "--model", type=parse_nonempty, metavar="NAME", help="the value of MODEL for the new side's agent"
    )
    parser.add_argument(
        "--revisions",
        type=parse_nonempty,
        nargs="+",
        metavar="REV",
        help="two Git revisions of the code, or one and now's",
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a value of the new side")
    parser.add_argument(
        "-n", "--trials", type=make_integer_type(1, 100_000), default=200, help="at most this many pairs (%(default)s)"
    )
    parser.add_argument("--alpha", type=parse_alpha, default=0.05, help="the chance of a false verdict (%(default)s)")
    add_open_max_option(parser)
    parser.add_argument(
        "--a-a", type=make_integer_type(1, 1000), metavar="N", help="compare the base with itself, this many times"
    )
    parser.add_argument(
        "--shrink",
        action="store_true",
        help="reduce a pair that changed to the faults that it needs",
    )
    parser.add_argument("--seed", type=seed, help="seed of the faults' dice, instead of the scenario's")
    parser.add_argument("--jobs", type=make_integer_type(1, 1024), default=1, help="processes (%(default)s)")
    parser.add_argument(
        "-k", dest="only", default="", metavar="TEXT", help="only scenarios with this text in their name"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print no progress, and five lines at most")
    add_json_option(parser)


@make_argument_type
def parse_alpha(text: str) -> float:
    """The type of an argument that is a chance."""
    value = parse_bounded_number(text, 0.0, 1.0, rule := "a number between 0 and 1, as in 0.05")
    # At 0 nothing is ever shown, at 1 everything is.
    if value in (0.0, 1.0):
        raise ValueError(rule)
    return value


def add_open_max_option(parser: argparse.ArgumentParser) -> None:
    """Adds the option --open-max."""
    parser.add_argument(
        "--open-max",
        type=SHARE,
        default=OPEN_MAX,
        metavar="SHARE",
        help="the share of trials that may be open beside those that decide (%(default)s)",
    )


@wrap_for_exit_code
def run(options: argparse.Namespace) -> int:
    from chaoslab.scenarios.located import SUFFIXES

    of_scenarios = [Path(side).suffix in SUFFIXES for side in (options.base, options.new) if side]
    changed = [f"{key}={getattr(options, key)}" for key in ("agent", "fresh") if getattr(options, key)]
    # As JSON, since the value of a setting is read as YAML.
    prompt = [] if options.prompt is None else [f"prompt={_quote_as_json(options.prompt)}"]
    ways = [name for name in ("model", "revisions", "a_a") if getattr(options, name) is not None]
    new_side_options = [options.new, *options.set, *changed, *prompt]
    # Two of them would say two new sides.
    if len(ways) > 1 or (ways and any(new_side_options)):
        named = f"--{ways[0].replace('_', '-')}"
        return print_error(ValueError(f"{named} says what the new side is: leave out what else says so"))
    if not all(of_scenarios):
        if any(of_scenarios) or options.new is None or ways or any(new_side_options[1:]):
            return print_error(ValueError("runs are compared with runs: give two of them, by their names in logs/"))
        from chaoslab.scenarios.comparing import compare_runs

        try:
            return _print_comparison(
                compare_runs(options.base, options.new, alpha=options.alpha, open_max=options.open_max), options
            )
        except LookupError as error:
            return print_error(error)
    if not ways and not any(new_side_options):
        choices = "NEW, --agent, --fresh, --prompt, --model, --revisions or --set, or --a-a N"
        return print_error(ValueError(f"both sides are the same: give {choices}"))
    if options.a_a is not None:
        return _compare_with_itself(options)
    with ExitStack() as stack:
        name, base, new = _open_sides(options, [*options.set, *changed, *prompt], stack)
        return _print_comparison(_compare_sides(options, base, new, name), options)


def _open_sides(options: argparse.Namespace, changed: list[str], stack: ExitStack) -> tuple[str, Any, Any]:
    """The name of what is compared, and both sides."""
    from chaoslab.scenarios.comparing import open_scenario_sides
    from chaoslab.scenarios.revisions import SideWork, open_model_sides, open_revision_sides

    work = SideWork(Path(options.base), (), options.only, options.seed, options.jobs)
    if options.revisions:
        names = " and ".join([*options.revisions, *(["now"] if len(options.revisions) == 1 else [])])
        return f"{options.base}, {names}", *stack.enter_context(open_revision_sides(work, options.revisions))
    if options.model:
        return f"{options.base}, model {options.model}", *stack.enter_context(open_model_sides(work, options.model))
    bases = _load_scenarios(options, options.base)
    news = _load_scenarios(options, options.new or options.base, changed)
    # The prompt itself differs, so it is no difference of the scenarios.
    ignored_keys = ("prompt", "turns") if options.prompt is not None else ()
    name = bases[0].name if len(bases) == 1 else options.base
    return name, *open_scenario_sides(bases, news, seed=options.seed, jobs=options.jobs, but=ignored_keys)


def _compare_sides(options: argparse.Namespace, base: Any, new: Any, name: str) -> Comparison:
    from chaoslab.scenarios.comparing import compare_sides

    so_far: list[Comparison] = []

    def print_progress(comparison: Comparison) -> None:
        so_far[:] = [comparison]
        if not options.quiet:
            print(
                f"{len(comparison.pairs)} of {options.trials} pairs: {comparison.verdict}", file=sys.stderr, flush=True
            )

    limits = {
        "trials": options.trials, "alpha": options.alpha, "shrink": options.shrink, "open_max": options.open_max,
    }  # fmt: skip
    with print_on_interrupt(lambda: so_far[0].render_comparison_lines()[0] if so_far else "no pair was tried"):
        result = compare_sides(base, new, tell=print_progress, name=name, **limits)
    # An agent that does not read MODEL would be compared with itself.
    if options.model and not any(options.model in pair.new.models for pair in result.pairs):
        result.notes.append(f"no request of the new side asked for {options.model}: its agent has to read MODEL")
    return result


def _load_scenarios(options: argparse.Namespace, file: str, changed: list[str] | None = None) -> list[Scenario]:
    from chaoslab.scenarios.load import load_file_scenarios

    return select_scenarios(load_file_scenarios(Path(file), changed=changed or []), options.only, file)


def _compare_with_itself(options: argparse.Namespace) -> int:
    from chaoslab.scenarios.comparing import compare_with_itself

    bases = _load_scenarios(options, options.base)
    # Other seeds each time, by the first one's.
    base_seed = bases[0].spec.seed if options.seed is None else options.seed
    with print_on_interrupt(lambda: f"not all {options.a_a} comparisons with itself are done, and none is kept"):
        worse_count, differ = compare_with_itself(
            bases,
            options.a_a,
            seed=base_seed,
            trials=options.trials,
            jobs=options.jobs,
            alpha=options.alpha,
            open_max=options.open_max,
        )
    if options.json:
        print_json(times=options.a_a, worse=worse_count, differ=differ)
    else:
        name = bases[0].name if len(bases) == 1 else options.base
        print(f"{name}: called worse than itself {worse_count} of {options.a_a} times, each with other seeds")
        same = f"trials {differ} differ: it is not deterministic" if differ else "no trial differs"
        print(f"with the same seed {same}")
    return 0


def _print_comparison(comparison: Comparison, options: argparse.Namespace) -> int:
    """Prints the comparison and returns the exit code."""
    from chaoslab.search.pairs import FEW, OPEN, WORSE

    if options.json:
        print_json(name=comparison.name, **comparison.to_json_values())
    else:
        print("\n".join(filter(None, [comparison.name, *comparison.render_comparison_lines()])))
    # Better and same are well; what was not shown is no failure.
    return {WORSE: FAILED, FEW: PROVES_NOTHING, OPEN: PROVES_NOTHING}.get(comparison.verdict, 0)


def _quote_as_json(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)
