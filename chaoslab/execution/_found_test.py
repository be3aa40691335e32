"""The text of a test that shows a failure."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from chaoslab.base.jsonable import repr_one_line
from chaoslab.core.conversation import Conversation, Turn
from chaoslab.core.plan import Injection
from chaoslab.execution.agents.functions import Fresh
from chaoslab.execution.options import RunOptions
from chaoslab.execution.trial import Trial
from chaoslab.search.variation import Variation

NOT_ASKED = ("faults", "logs", "order")
"""The options that the test states otherwise, or not at all."""


def render_found_test(trial: Trial, variation: Variation, name: str) -> str:
    """The test of a variation of this trial's agent. `name`: what it is called after. Raises ValueError: something has
    no name that a test could import."""
    if trial.asked is None:
        raise ValueError("this trial holds no agent to run again: give one of lab.run or lab.run_many")
    arguments, imports = trial.asked, dict[str, dict[str, None]]()
    argument_texts = [_render_value(arguments.agent, imports), _render_value(arguments.prompt, imports)]
    for option in fields(RunOptions):
        value = getattr(arguments, option.name)
        # An empty option says the same as its default.
        if option.name not in NOT_ASKED and value != option.default and not (value in ((), [], {}) or value is None):
            argument_texts.append(f"{option.name}={_render_value(value, imports)}")
    # The default seed is written out too, since the failure belongs to this seed.
    if arguments.seed == RunOptions.__dataclass_fields__["seed"].default:
        argument_texts.append(f"seed={arguments.seed}")
    if variation.order:
        argument_texts.append(
            # The space keeps the brace of the set display from being read as an escaped brace of the f-string.
            f"order={ {moment: list(names) for moment, names in variation.order} }".replace("{ ", "{")
        )
    lines = ["import chaoslab as lab"]
    lines += [f"from {module} import {', '.join(names)}" for module, names in imports.items()]
    lines += ["", "", f"def test_{re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_')[:70]}():"]
    if trial.number == 1 or not trial.drew:
        lines += [f"    trial = lab.run({', '.join(argument_texts)}, faults=["]
    else:  # the agent's chance is that of this trial
        lines += [f"    *_, trial = lab.run_many({', '.join(argument_texts)}, trials={trial.number}, faults=["]
    lines += [f"        {_render_injection(option)}," for option in variation.injections]
    return "\n".join([*lines, "    ])", '    assert trial.outcome in ("correct", "degraded"), trial.story()', ""])


def _render_injection(injection: Injection) -> str:
    """The call of `lab.inject` that makes it."""
    (choice,) = injection.choices
    target = injection.targets[0] if len(injection.targets) == 1 else list(injection.targets)
    default_name = f"{choice.fault} on {', '.join(injection.targets)}"
    keywords: dict[str, Any] = {} if injection.name == default_name else {"name": injection.name}
    keywords |= {"chance": injection.chance} if injection.chance != 1 else {}
    keywords |= {"calls": list(injection.calls)} if injection.calls else {}
    keywords |= {**injection.triggers, **choice.params}
    argument_texts = [repr(choice.fault), repr(target), *(f"{key}={value!r}" for key, value in keywords.items())]
    return f"lab.inject({', '.join(argument_texts)})"


def _render_turn(turn: Turn) -> str:
    if turn.say and not turn.after_s:
        return repr(turn.say)
    argument_texts = [repr(turn.say)] if turn.say else [f"reply={dict(turn.reply)!r}"]
    return f"lab.turn({', '.join([*argument_texts, *([f'after_s={turn.after_s}'] if turn.after_s else [])])})"


def _render_value(value: Any, imports: dict[str, dict[str, None]]) -> str:
    """The value as Python text; what is imported for it is added to `imports`."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, Fresh):
        return f"lab.fresh({_render_value(value.make, imports)})"
    if isinstance(value, Conversation):
        return f"lab.turns({', '.join(_render_turn(item) for item in value.turns)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_render_value(item, imports)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_render_value(item, imports) for item in value) + "]"
    module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
    value_there: Any = sys.modules.get(module or "")
    for attribute in name.split("."):
        value_there = getattr(value_there, attribute, None)
    if not name:  # an object that a module holds under a name of its own
        # Copies, since an import in another thread may add to either while it is read.
        module, name = next(
            (
                (module, global_name)
                for module, item in list(sys.modules.items())
                for global_name, global_value in list(vars(item).items() if hasattr(item, "__dict__") else ())
                if global_value is value and not module.startswith("chaoslab")
            ),
            ("", ""),
        )
        value_there = value if name else None
    # A script is __main__ only while it runs: a test would import it under another name, and run it once more.
    if value_there is None or module == "__main__":
        raise ValueError(f"{repr_one_line(value)} has no name that a test could import: define it in a module")
    imports.setdefault(module, {}).setdefault(name.partition(".")[0])
    return name
