"""The text of a test that shows a failure."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from chaoslab.base.jsonable import shown
from chaoslab.core.conversation import Conversation, Turn
from chaoslab.core.plan import Injection
from chaoslab.execution.agents.functions import Fresh
from chaoslab.execution.options import RunOptions
from chaoslab.execution.trial import Trial
from chaoslab.search.variation import Variation

NOT_ASKED = ("faults", "logs", "order")
"""The options that the test states otherwise, or not at all."""


def text_of(trial: Trial, variation: Variation, name: str) -> str:
    """The test of a variation of this trial's agent. `name`: what it is called after. Raises ValueError: something has
    no name that a test could import."""
    if trial.asked is None:
        raise ValueError("this trial holds no agent to run again: give one of lab.run or lab.run_many")
    asked, imports = trial.asked, dict[str, dict[str, None]]()
    words = [_word(asked.agent, imports), _word(asked.prompt, imports)]
    for each in fields(RunOptions):
        value = getattr(asked, each.name)
        if each.name not in NOT_ASKED and value != each.default and not (value in ((), [], {}) or value is None):
            words.append(f"{each.name}={_word(value, imports)}")
    if asked.seed == RunOptions.__dataclass_fields__["seed"].default:
        words.append(f"seed={asked.seed}")
    if variation.order:
        words.append(f"order={ {moment: list(names) for moment, names in variation.order} }".replace("{ ", "{"))
    lines = ["import chaoslab as lab"]
    lines += [f"from {module} import {', '.join(names)}" for module, names in imports.items()]
    lines += ["", "", f"def test_{re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_')[:70]}():"]
    if trial.number == 1 or not trial.drew:
        lines += [f"    trial = lab.run({', '.join(words)}, faults=["]
    else:  # the agent's chance is that of this trial
        lines += [f"    *_, trial = lab.run_many({', '.join(words)}, trials={trial.number}, faults=["]
    lines += [f"        {_injected(each)}," for each in variation.injections]
    return "\n".join([*lines, "    ])", '    assert trial.outcome in ("correct", "degraded"), trial.story()', ""])


def _injected(injection: Injection) -> str:
    """The call of `lab.inject` that makes it."""
    (choice,) = injection.choices
    target = injection.targets[0] if len(injection.targets) == 1 else list(injection.targets)
    usual = f"{choice.fault} on {', '.join(injection.targets)}"
    given: dict[str, Any] = {} if injection.name == usual else {"name": injection.name}
    given |= {"chance": injection.chance} if injection.chance != 1 else {}
    given |= {"calls": list(injection.calls)} if injection.calls else {}
    given |= {**injection.triggers, **choice.params}
    words = [repr(choice.fault), repr(target), *(f"{key}={value!r}" for key, value in given.items())]
    return f"lab.inject({', '.join(words)})"


def _turn(turn: Turn) -> str:
    if turn.say and not turn.after_s:
        return repr(turn.say)
    own = [repr(turn.say)] if turn.say else [f"reply={dict(turn.reply)!r}"]
    return f"lab.turn({', '.join([*own, *([f'after_s={turn.after_s}'] if turn.after_s else [])])})"


def _word(value: Any, imports: dict[str, dict[str, None]]) -> str:
    """The value as Python text; what is imported for it is added to `imports`."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, Fresh):
        return f"lab.fresh({_word(value.make, imports)})"
    if isinstance(value, Conversation):
        return f"lab.turns({', '.join(_turn(each) for each in value.turns)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_word(each, imports)}" for key, each in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_word(each, imports) for each in value) + "]"
    module, name = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    if not name:  # an object that a module holds under a name of its own
        module, name = next(
            (
                (module, own)
                for module, each in list(sys.modules.items())
                for own, other in list(vars(each).items() if hasattr(each, "__dict__") else ())
                if other is value and not module.startswith("chaoslab")
            ),
            ("", ""),
        )
        found = value if name else None
    if found is None or module == "__main__":
        raise ValueError(f"{shown(value)} has no name that a test could import: define it in a module")
    imports.setdefault(module, {}).setdefault(name.partition(".")[0])
    return name
