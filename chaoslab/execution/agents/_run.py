"""A run of a user's agent: its world, the stand-ins for its functions, and a function that runs its trials. This module
chooses the place of a trial; the trial itself is the same in both worlds."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from chaoslab.base.phrases import a
from chaoslab.config.settings import name_secrets
from chaoslab.core.plan import Injection, Plan
from chaoslab.execution._place import RealTimePlace, TrialPlace
from chaoslab.execution.agents._baseline import TwinTrial, ask_once, note_once, with_own_twin, without_faults
from chaoslab.execution.agents._calling import Ask, Start, announcing_start
from chaoslab.execution.agents._case import AgentCase, AgentResult
from chaoslab.execution.agents._ground import Grounds
from chaoslab.execution.agents._one_trial import TrialSetup, run_trial
from chaoslab.execution.agents._orders import Orders
from chaoslab.execution.agents.functions import Fresh, find_innermost, make_stand_in, name_of, unwrap_tool
from chaoslab.execution.drawn import Drawn
from chaoslab.execution.forked import wrap_in_child
from chaoslab.execution.spec import TrialSpec
from chaoslab.model import formats
from chaoslab.model.app import ModelApp
from chaoslab.model.prices import cost_usd
from chaoslab.model.script import Scripted
from chaoslab.seams import adapters
from chaoslab.seams.adapters.mcp import read_by_clients
from chaoslab.seams.functions import code_swap, native_errors
from chaoslab.seams.functions.mitigations import KINDS
from chaoslab.seams.functions.references import References
from chaoslab.seams.functions.seam import FunctionSeam, Wrapping
from chaoslab.seams.functions.wrapped import WrappedFunction
from chaoslab.seams.machine.patching import MachineSeam
from chaoslab.seams.services.app import address_of
from chaoslab.seams.services.model import ModelHost
from chaoslab.seams.services.seam import ServiceSeam

WORLDS = ("virtual", "local")
TWINS_MAX = 64
"""The most twins of trials that are kept: a search tries many variations of a few trials."""
Place = Callable[[ServiceSeam, float, str], TrialPlace]
"""Makes the place of a trial; the number is its deadline in seconds, the text its key."""
Hangs = tuple[type[Exception], ...]
"""The exceptions by which a world ends an endless trial."""
Pairs = list[tuple[Any, Any]]
"""Real objects, each with its stand-in."""
_process_lock = threading.Lock()


@dataclass(frozen=True)
class AgentSpec(AgentCase):
    """A run of a user's agent, as a value that any process can carry out."""

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """A context that keeps the world ready, so that `opened` need not make it again, and reserves this process for
        the run. Raises RuntimeError: another trial is under way in this process."""
        # Functions are swapped for the whole process, so two trials at once would meet each other's faults.
        if not _process_lock.acquire(blocking=False):
            raise RuntimeError(
                "another trial is under way in this process, and its functions are swapped: one after the other, or "
                "in processes"
            )
        try:
            with {"virtual": self._virtual, "local": self._local}[self.options.world]():
                yield
        finally:
            _process_lock.release()

    @contextmanager
    def opened(self) -> Iterator[Callable[[TrialSpec], AgentResult]]:
        """A context that gives a function which runs one of the trials in this process."""
        with ExitStack() as stack:
            ready = stack.enter_context(self._ready(ordered=self.options.order != "asked"))
            stack.enter_context(self._gateway(ready.services))
            twins = _Twins(self, ready)
            grounds, orders = Grounds(twins.changed), Orders(twins.changed)

            def run_here(spec: TrialSpec) -> AgentResult:
                # checks that there are services to break: an agent that meets none is at most degraded, which proves
                # nothing. Raises LookupError: one cannot be reached.
                if self.upstreams:
                    from chaoslab.seams.gateway.routes import check_reached

                    for route in self.upstreams.values():
                        check_reached(route)
                twin_case, twin = twins.of(spec)
                case = twin_case.without(spec.off)
                ready.functions.plan = case.plan
                if case.plan is not ready.services.plan:
                    ready.services.change(case.plan)
                result = run_trial(case, spec, ready)
                if self.options.world == "virtual" and not spec.stopped:
                    orders.note(case, spec.number, grounds.note(case, spec.number, result))
                return with_twin(result, twin)

            if not self.options.isolate:
                yield run_here
                return
            twins.do = wrap_in_child(twins.do, self.named, self.limit_s, memory_mb=self.options.memory_mb)
            run_in_child = wrap_in_child(run_here, self.named, self.limit_s, memory_mb=self.options.memory_mb)

            def run_isolated(spec: TrialSpec) -> AgentResult:
                twins.of(spec)  # the trial's own process finds it
                return run_in_child(spec)

            yield run_isolated

    @contextmanager
    def varied(self) -> Iterator[Callable[[Drawn, TrialSpec], AgentResult]]:
        """The same for trials that each have a plan of their own. In virtual time the functions are swapped once for
        all of them."""
        if self.options.isolate or self.options.world != "virtual":

            def run_alone(drawn: Drawn, spec: TrialSpec) -> AgentResult:
                with self.with_drawn(drawn).opened() as run_one:
                    return run_one(spec)

            yield run_alone
            return
        with self._ready(ordered=True) as ready:
            twins = _Twins(self, ready)
            grounds, orders = Grounds(twins.changed), Orders(twins.changed)

            def run_shared(drawn: Drawn, spec: TrialSpec) -> AgentResult:
                twin_case, twin = twins.of(spec)
                case = twin_case.with_drawn(drawn).without(spec.off)
                ready.functions.plan = case.plan
                services = ready.services if not self.services else self._make_service_seam(case.plan)
                if not self.services:  # nothing reaches it, and a new one costs a twentieth of a trial
                    services.change(case.plan)
                result = grounds.note(case, spec.number, run_trial(case, spec, replace(ready, services=services)))
                result = orders.note(case, spec.number, result)
                return with_twin(result, twin)

            yield run_shared

    @contextmanager
    def _ready(self, *, ordered: bool) -> Iterator[TrialSetup]:
        """A context with the world, and with the stand-ins in place. `ordered`: calls may have to wait for a turn."""
        name_secrets(self.options.secret_names or ())
        with ExitStack() as stack:
            new, hung, exchanged = stack.enter_context(
                {"virtual": self._virtual, "local": self._local}[self.options.world]()
            )
            seam = FunctionSeam(self.plan, timeout_s=self.options.timeout_s, ordered=ordered)
            seam.mitigation = KINDS[self.mitigation]() if self.mitigation else None
            machine = MachineSeam(seam) if self.options.files and self.options.world == "virtual" else None
            if machine is not None:
                stack.enter_context(machine.patched())
                exchanged = [*exchanged, *machine.pairs]
            pairs, unheld = stack.enter_context(self._wrap_functions(seam, exchanged))
            ask, of_coroutine = self._ask(self.agent)
            resume = self.options.resume_with
            if isinstance(self.agent, Fresh):  # the functions it will reach are not known yet
                ask, of_coroutine, unheld = self._ask_fresh(self.agent, pairs), False, ()
            again = None if resume is None else self._ask_of(resume, pairs)
            yield TrialSetup(
                seam, self._make_service_seam(self.plan), new, hung, ask, of_coroutine, unheld, again, machine
            )

    def _make_service_seam(self, plan: Plan) -> ServiceSeam:
        models = {name: _make_model_host(self.services.get(name)) for name in self.models}
        reads = read_by_clients(map(unwrap_tool, self.reads))
        seam = ServiceSeam(plan, timeout_s=self.options.timeout_s, models=models, price=cost_usd, mcp_reads=reads)
        seam.models_max = self.options.model_calls_max
        return seam

    @contextmanager
    def _gateway(self, services: ServiceSeam) -> Iterator[None]:
        """A context in which the upstreams stand behind a gateway, whose addresses are in the environment."""
        if not self.upstreams:
            yield
            return
        from chaoslab.config.settings import inherited, with_variables
        from chaoslab.execution.upstreams import GRACE_S, bypass_proxy, open_gateway, provider_variables

        with open_gateway(self.upstreams, services) as (address, shared):
            services.settle, services.acting = partial(shared.settle, GRACE_S), shared.acting
            urls = {name: f"{address}/{name}" for name in self.upstreams}
            url_variables = {f"{name.upper().replace('-', '_')}_URL": url for name, url in urls.items()}
            shared.environment = inherited()
            variables = {
                **bypass_proxy(inherited()),
                **url_variables,
                **provider_variables(self.upstreams, urls.__getitem__),
            }
            with with_variables(variables):
                yield

    # The worlds.

    @contextmanager
    def _virtual(self) -> Iterator[tuple[Place, Hangs, Pairs]]:
        from chaoslab.worlds.virtual.machine.machine import Hung
        from chaoslab.worlds.virtual.network.asgi import Remade, make_application
        from chaoslab.worlds.virtual.network.elsewhere import Elsewhere
        from chaoslab.worlds.virtual.network.serving import serve
        from chaoslab.worlds.virtual.patches import Patches
        from chaoslab.worlds.virtual.world import World

        now = datetime.fromisoformat(self.now)

        def new(seam: ServiceSeam, deadline_s: float, trial: str) -> TrialPlace:
            models = [address_of(name)[0] for name in self.services if name in self.models]
            elsewhere = Elsewhere(self.options.elsewhere, self.services, models)
            world = World(
                self.plan.seed,
                trial,
                now=now,
                deadline_s=deadline_s,
                calls_max=self.options.calls_max,
                elsewhere=elsewhere,
            )
            seam.runaway = world.runaway
            for name, app in self.services.items():
                host, ports = address_of(name)
                if isinstance(app, Fresh):
                    wsgi: Any = Remade(world, app.make, name)
                    seam.outages.resets[name] = wsgi.lose
                else:
                    wsgi = make_application(world, app, name)
                for port in ports:
                    serve(world.network, host, port, wsgi, seam, name=name)
            return world

        with Patches() as patches:
            yield new, (Hung,), patches.exchanged()

    @contextmanager
    def _local(self) -> Iterator[tuple[Place, Hangs, Pairs]]:
        def new(seam: ServiceSeam, deadline_s: float, trial: str) -> TrialPlace:  # noqa: ARG001
            real_time_place = RealTimePlace(deadline_s)
            seam.runaway = real_time_place.runaway
            return real_time_place

        yield new, (), []

    # The agent and its functions.

    def _ask_of(self, agent: Any, pairs: Pairs) -> Ask:
        """The agent as it is asked, whether it is made anew or not."""
        return self._ask_fresh(agent, pairs) if isinstance(agent, Fresh) else self._ask(agent)[0]

    def _ask_fresh(self, fresh: Fresh, pairs: Pairs) -> Ask:
        """A callable that makes the agent, then calls it with the stand-ins in place wherever it can reach the
        functions."""

        def ask(prompt: Any, start: Start) -> Any:
            if start.agent is None:
                start.agent = fresh.make()
            agent = start.agent
            if not callable(agent) and adapters.adapter_of_agent(agent) is None:
                agents = adapters.describe_kinds("a callable", (adapter.agents for adapter in adapters.adapters()))
                raise TypeError(f"{name_of(fresh)} made {a(type(agent).__name__)}: an agent is {agents}")
            with References([agent], pairs):
                return start.loop.fetched(self._ask(agent)[0](prompt, start))

        return ask

    def _ask(self, agent: Any) -> tuple[Ask, bool]:
        """The agent, and True if it is async. A framework's agent is called async if a tool is async only."""
        if (framework := adapters.adapter_of_agent(agent)) is not None:
            is_async_only = any(
                ((adapter := adapters.adapter_of_tool(tool)) is not None and adapter.is_async_only(tool))
                or WrappedFunction("", tool, effect=False).of_coroutine
                for tool in map(unwrap_tool, (*self.tools, *self.reads))
            )
            return announcing_start(framework.callable_of(agent, of_coroutine=is_async_only)), is_async_only
        return announcing_start(agent), WrappedFunction("", agent, effect=False).of_coroutine

    @contextmanager
    def _wrap_functions(self, seam: FunctionSeam, exchanged: Pairs) -> Iterator[tuple[Pairs, tuple[str, ...]]]:
        """A context with the stand-ins in place: in the code of functions, else in the agent's references to them. Also
        those of the world, such as for a clock that the agent keeps in an attribute. Gives the pairs that are swapped
        by reference, and the names of the functions to which no reference was found."""
        pairs, names, swaps = [], [], []
        inner = find_innermost(all_functions := [*map(unwrap_tool, (*self.tools, *self.reads))])
        with ExitStack() as stack:
            for functions, effect in ((self.tools, True), (self.reads, False)):
                for tool in functions:
                    function, name = unwrap_tool(tool), name_of(tool)
                    errors = native_errors.errors_of_tool(self.options.raises, name)
                    wrapping = Wrapping(seam, effect, self.ignore, errors, name)
                    make_wrapped = partial(make_stand_in, wrapping, function)
                    if (adapter := adapters.adapter_of_tool(function)) is not None:
                        swaps.append(adapter.swapped(function, wrapping))
                    elif code_swap.can_swap(function):
                        swaps.append(code_swap.swap_code(inner[id(function)], make_wrapped))
                    else:
                        names.append(name)
                        pairs.append(code_swap.by_reference(function, make_wrapped))
            agent = self.agent.make if isinstance(self.agent, Fresh) else self.agent
            resume = self.options.resume_with
            more = [] if resume is None else [resume.make if isinstance(resume, Fresh) else resume]
            references = References([agent, *more, *all_functions], [*pairs, *exchanged])
            swapped = stack.enter_context(references)
            for swap in swaps:  # after the world's clocks, which the copies of the functions are to have too
                stack.enter_context(swap)
            yield (
                [*pairs, *exchanged],
                tuple(name for name, count in zip(names, swapped.count, strict=False) if not count),
            )


class _Twins:
    """The twins that trials have of their own, in this process."""

    def __init__(self, case: AgentSpec, ready: TrialSetup) -> None:
        self._case, self._ready = case, ready
        self._known: dict[int, TwinTrial] = {}
        self.do: Callable[[TrialSpec], AgentResult] = self._calm
        """Runs the trial with that number without faults."""

    def of(self, spec: TrialSpec) -> tuple[AgentSpec, AgentResult | None]:
        """The case of a trial beside its twin, and the twin if it is its own."""
        uncompared = self._case.own_twins
        if uncompared is None or not spec.number or spec.stopped:  # the first trial's twin is known
            return self._case, None
        if spec.number not in self._known:
            if len(self._known) == TWINS_MAX:
                self._known.pop(next(iter(self._known)))
            self._known[spec.number] = TwinTrial(self.do(TrialSpec(spec.number)))
        twin = self._known[spec.number]
        return self._case.beside(with_own_twin(uncompared, twin)), twin.result

    def _calm(self, spec: TrialSpec) -> AgentResult:
        assert self._case.own_twins is not None
        calm_case = without_faults(self._case.own_twins)
        result = self._run(calm_case, spec)
        if (once_case := ask_once(calm_case)) is not None:
            note_once(result, self._run(once_case, spec))
        return result

    def changed(self, number: int, injections: Sequence[Injection]) -> AgentResult:
        """Runs the trial with that number without faults but for these."""
        case = without_faults(self._case.own_twins or self._case)
        return self._run(replace(case, plan=replace(case.plan, injections=tuple(injections))), TrialSpec(number))

    def _run(self, case: AgentSpec, spec: TrialSpec) -> AgentResult:
        self._ready.functions.plan = case.plan
        services = case._make_service_seam(case.plan)
        return run_trial(case, spec, replace(self._ready, services=services))


def with_twin(result: AgentResult, twin: AgentResult | None) -> AgentResult:
    """The result of a trial with its own twin, if it has one."""
    result.twin = twin
    return result


def _make_model_host(app: Any) -> ModelHost:
    """A service that speaks a model's API, for its seam."""
    if isinstance(app, ModelApp):
        host = ModelHost(formats.format_of, formats.errors_of, app.ended)
        return replace(host, said_by=app.said_by) if isinstance(app, Scripted) else host
    return ModelHost(formats.format_of, formats.errors_of, recorded=True)
