"""The budget is used up: tokens, dollars, calls or seconds."""

from dataclasses import dataclass
from typing import Literal

from chaoslab.core import events
from chaoslab.core.exchange import Call, Flow, Note, Reply, TrialContext
from chaoslab.core.fault import Fault

QUOTA = 402
"""The status of a target's own reply for "no budget left". A target without one answers 429."""


@dataclass(frozen=True)
class Budget(Fault):
    """Refuses each call after a limit is reached, with the target's own reply (`hard`), or only logs it (`soft`).

    `tokens`, `calls_max` (attempts at calls of all targets) and `seconds` count within a trial, `cost_usd` over the
    whole run, since the user pays for the run. 0: no limit.
    """

    tokens: float = 0.0
    cost_usd: float = 0.0
    calls_max: float = 0.0
    seconds: float = 0.0
    mode: Literal["hard", "soft"] = "hard"
    layer = "budget"
    conditional = True
    lasts = True
    met_as = "the call was refused for want of budget"
    example = '"budget", "*", tokens=20_000'
    source = "https://github.com/openai/codex/pull/6340"

    def flow(self, call: Call, context: TrialContext) -> Flow:
        limits = {"tokens": self.tokens, "cost_usd": self.cost_usd, "calls": self.calls_max, "seconds": self.seconds}
        for limit, allowed in limits.items():
            spent = context.spent.get(limit, 0.0)
            if allowed and spent >= allowed:
                yield Note(
                    events.Budget(
                        limit=limit, spent=round(spent, 6), allowed=allowed, mode=self.mode, target=call.target
                    )
                )
                if self.mode == "hard":
                    return self._make_refusal(call)
                break
        return (yield call)

    def _make_refusal(self, call: Call) -> Reply:
        reply = call.build_refusal_reply(QUOTA if QUOTA in call.errors else 429)
        # No waiting mends it: the header would only send a client into a useless wait.
        headers = {k: v for k, v in reply.headers.items() if k.lower() != "retry-after"}
        # OpenAI's and Anthropic's SDKs obey this header before they look at the status, and would ask a 429 again.
        return Reply(reply.status, headers | {"x-should-retry": "false"}, reply.body)
