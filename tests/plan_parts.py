"""Shared by the tests of plans: a plan's decision on a call that is the first of its trial."""

from chaoslab.core.chain import ActiveFault
from chaoslab.core.exchange import Call
from chaoslab.core.occasion import Occasion
from chaoslab.core.plan import HITS, Injection, Plan


def first(plan: Plan, call: Call) -> Occasion:
    """The occasion of a call before which nothing was met."""
    return Occasion.from_json(plan.seed, call, {"arguments": call.value})


def roll(plan: Plan, injection: Injection, call: Call) -> ActiveFault | None:
    """The fault with which the injection hits this call, or None."""
    occasion = first(plan, call)
    decision = injection.decide(occasion, occasion.get_hits(injection.name))
    return plan.draw_fault(injection, call) if decision in HITS else None
