"""A run of a user's agent: its world, the fakes for its functions, and a function that runs its trials. This module
chooses the place of a trial; the trial itself is the same in both worlds."""

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from chaoslab.base.phrases import add_article
from chaoslab.config.settings import load_secret_names
from chaoslab.core.plan import Injection, Plan
from chaoslab.execution._place import RealTimePlace, TrialPlace
from chaoslab.execution.agents._baseline import (
    TwinTrial,
    attach_equal_turns_once_result,
    fill_case_from_own_twin,
    make_case_with_equal_turns_once,
    remove_faults,
)
from chaoslab.execution.agents._calling import AgentStart, Ask, make_announcing_agent
from chaoslab.execution.agents._case import AgentCase, AgentResult
from chaoslab.execution.agents._ground import LostReadFinder
from chaoslab.execution.agents._one_trial import TrialSetup, run_trial
from chaoslab.execution.agents._orders import CallReordering
from chaoslab.execution.agents.functions import (
    Fresh,
    ProcessAgent,
    get_function_name,
    make_fake_function,
    map_to_inner_functions,
    unwrap_tool,
)
from chaoslab.execution.drawn import DrawnPlan
from chaoslab.execution.forked import make_child_runner
from chaoslab.execution.spec import TrialSpec
from chaoslab.model import formats
from chaoslab.model.app import ModelApp
from chaoslab.model.prices import compute_cost_usd
from chaoslab.model.script import Scripted
from chaoslab.seams import adapters
from chaoslab.seams.adapters.mcp import list_read_only_mcp_names
from chaoslab.seams.functions import code_swap, native_errors
from chaoslab.seams.functions.mitigations import KINDS
from chaoslab.seams.functions.references import References
from chaoslab.seams.functions.seam import FunctionSeam, Wrapping
from chaoslab.seams.functions.wrapped import WrappedFunction
from chaoslab.seams.machine.patching import MachineSeam
from chaoslab.seams.services.app import parse_host_and_ports
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
"""Real objects, each with its fake."""
_process_lock = threading.Lock()


@dataclass(frozen=True)
class AgentSpec(AgentCase):
    """A run of a user's agent, as a value that any process can carry out."""

    @contextmanager
    def prepare_world(self) -> Iterator[None]:
        """A context that keeps the world ready, so that `open_runner` need not make it again, and reserves this process
        for the run. Raises RuntimeError: another trial is under way in this process."""
        # Functions are swapped for the whole process, so two trials at once would meet each other's faults.
        if not _process_lock.acquire(blocking=False):
            raise RuntimeError(
                "another trial is under way in this process, and its functions are swapped: one after the other, or "
                "in processes"
            )
        try:
            with {"virtual": self._open_virtual_world, "local": self._open_real_time_world}[self.options.world]():
                yield
        finally:
            _process_lock.release()

    @contextmanager
    def open_runner(self) -> Iterator[Callable[[TrialSpec], AgentResult]]:
        """A context that gives a function which runs one of the trials in this process."""
        with ExitStack() as stack:
            ready = stack.enter_context(self._open_trial_setup(ordered=self.options.order != "asked"))
            stack.enter_context(self._open_gateway(ready.services))
            twins = _TwinRunner(self, ready)
            grounds, orders = LostReadFinder(twins.run_with_injections), CallReordering(twins.run_with_injections)

            def run_in_process(spec: TrialSpec) -> AgentResult:
                # checks that there are services to break: an agent that meets none is at most degraded, which proves
                # nothing. Raises LookupError: one cannot be reached.
                if self.upstreams:
                    from chaoslab.seams.gateway.routes import ensure_reachable

                    for route in self.upstreams.values():
                        ensure_reachable(route)
                twin_case, twin = twins.find_or_run_own_twin(spec)
                case = twin_case.with_injections_off(spec.off)
                ready.functions.plan = case.plan
                if case.plan is not ready.services.plan:
                    ready.services.change_plan(case.plan)
                result = run_trial(case, spec, ready)
                if self.options.world == "virtual" and not spec.stopped:
                    orders.add_reordered_results(
                        case, spec.number, grounds.add_lost_read_events(case, spec.number, result)
                    )
                return attach_twin(result, twin)

            if not self.options.isolate:
                yield run_in_process
                return
            twins.do = make_child_runner(
                twins.do, self.get_work_item_name, self.real_time_limit_s, memory_mb=self.options.memory_mb
            )
            run_in_child = make_child_runner(
                run_in_process, self.get_work_item_name, self.real_time_limit_s, memory_mb=self.options.memory_mb
            )

            def run_isolated(spec: TrialSpec) -> AgentResult:
                twins.find_or_run_own_twin(spec)  # the trial's own process finds it
                return run_in_child(spec)

            yield run_isolated

    @contextmanager
    def open_varied_runner(self) -> Iterator[Callable[[DrawnPlan, TrialSpec], AgentResult]]:
        """The same for trials that each have a plan of their own. In virtual time the functions are swapped once for
        all of them."""
        if self.options.isolate or self.options.world != "virtual":

            def run_in_own_setup(drawn: DrawnPlan, spec: TrialSpec) -> AgentResult:
                with self.with_drawn_plan(drawn).open_runner() as run_one:
                    return run_one(spec)

            yield run_in_own_setup
            return
        with self._open_trial_setup(ordered=True) as ready:
            twins = _TwinRunner(self, ready)
            grounds, orders = LostReadFinder(twins.run_with_injections), CallReordering(twins.run_with_injections)

            def run_in_shared_setup(drawn: DrawnPlan, spec: TrialSpec) -> AgentResult:
                twin_case, twin = twins.find_or_run_own_twin(spec)
                case = twin_case.with_drawn_plan(drawn).with_injections_off(spec.off)
                ready.functions.plan = case.plan
                setup = ready
                if self.services:
                    setup = replace(ready, services=self._make_service_seam(case.plan))
                else:  # nothing reaches it, and a new one costs a twentieth of a trial
                    ready.services.change_plan(case.plan)
                result = grounds.add_lost_read_events(case, spec.number, run_trial(case, spec, setup))
                result = orders.add_reordered_results(case, spec.number, result)
                return attach_twin(result, twin)

            yield run_in_shared_setup

    @contextmanager
    def _open_trial_setup(self, *, ordered: bool) -> Iterator[TrialSetup]:
        """A context with the world, and with the fakes in place. `ordered`: calls may have to wait for a turn."""
        load_secret_names(self.options.secret_names or ())
        with ExitStack() as stack:
            new, hung, exchanged = stack.enter_context(
                {"virtual": self._open_virtual_world, "local": self._open_real_time_world}[self.options.world]()
            )
            seam = FunctionSeam(self.plan, timeout_s=self.options.timeout_s, ordered=ordered)
            seam.mitigation = KINDS[self.mitigation]() if self.mitigation else None
            machine = MachineSeam(seam) if self.options.files and self.options.world == "virtual" else None
            if machine is not None:
                stack.enter_context(machine.install_fakes())
                exchanged = [*exchanged, *machine.pairs]
            pairs, unheld = stack.enter_context(self._swap_functions(seam, exchanged))
            ask, of_coroutine = self._make_plain_agent_caller(self.agent)
            resume = self.options.resume_with
            if isinstance(self.agent, Fresh):  # the functions it will reach are not known yet
                ask, of_coroutine, unheld = self._make_fresh_agent_caller(self.agent, pairs), False, ()
            again = None if resume is None else self._make_agent_caller(resume, pairs)
            yield TrialSetup(
                seam, self._make_service_seam(self.plan), new, hung, ask, of_coroutine, unheld, again, machine
            )

    def _make_service_seam(self, plan: Plan) -> ServiceSeam:
        models = {name: _make_model_host(self.services.get(name)) for name in self.models}
        reads = list_read_only_mcp_names(map(unwrap_tool, self.reads))
        seam = ServiceSeam(
            plan, timeout_s=self.options.timeout_s, models=models, price=compute_cost_usd, mcp_reads=reads
        )
        seam.models_max = self.options.model_calls_max
        return seam

    @contextmanager
    def _open_gateway(self, services: ServiceSeam) -> Iterator[None]:
        """A context in which the upstreams stand behind a gateway, whose addresses are in the environment."""
        if not self.upstreams:
            yield
            return
        from chaoslab.config.settings import copy_environment, set_variables
        from chaoslab.execution.upstreams import (
            GRACE_S,
            make_address_variables,
            make_no_proxy_variables,
            make_provider_variables,
            open_gateway,
            prepare_proxy_variables,
        )

        by_proxy = self.options.proxy
        with (
            open_gateway(self.upstreams, services, proxy=(0, "pass") if by_proxy else None) as (address, shared),
            TemporaryDirectory(prefix="chaoslab-") as folder,
        ):
            services.settle, services.acting = partial(shared.wait_until_idle, GRACE_S), shared.list_pending_requests
            # Over a proxy a service keeps its own address: the gateway's would be asked over the proxy too.
            urls = {name: route.url if by_proxy else f"{address}/{name}" for name, route in self.upstreams.items()}
            shared.environment = copy_environment()
            provided = {} if by_proxy else make_provider_variables(self.upstreams, urls.__getitem__)
            near = any(route.is_local for route in self.upstreams.values())
            variables = {
                **make_no_proxy_variables(copy_environment()),
                **make_address_variables(urls, urls.__getitem__),
                **provided,
                **prepare_proxy_variables(shared, folder, near=near),
            }
            with set_variables(variables):
                yield

    # The worlds.

    @contextmanager
    def _open_virtual_world(self) -> Iterator[tuple[Place, Hangs, Pairs]]:
        from chaoslab.worlds.virtual.machine.machine import Hung
        from chaoslab.worlds.virtual.network.asgi import RecreatedService, wrap_as_wsgi
        from chaoslab.worlds.virtual.network.elsewhere import OutsideHosts
        from chaoslab.worlds.virtual.network.serving import serve_application
        from chaoslab.worlds.virtual.patches import Patches
        from chaoslab.worlds.virtual.world import World

        now = datetime.fromisoformat(self.now)

        def make_world(seam: ServiceSeam, deadline_s: float, trial: str) -> TrialPlace:
            models = [parse_host_and_ports(name)[0] for name in self.services if name in self.models]
            elsewhere = OutsideHosts(self.options.elsewhere, self.services, models)
            world = World(
                self.plan.seed,
                trial,
                now=now,
                deadline_s=deadline_s,
                calls_max=self.options.calls_max,
                elsewhere=elsewhere,
            )
            seam.runaway = world.end_runaway_trial
            for name, app in self.services.items():
                host, ports = parse_host_and_ports(name)
                if isinstance(app, Fresh):
                    wsgi: Any = RecreatedService(world, app.make, name)
                    seam.outages.resets[name] = wsgi.forget_application
                else:
                    wsgi = wrap_as_wsgi(world, app, name)
                for port in ports:
                    serve_application(world.network, host, port, wsgi, seam, name=name)
            return world

        with Patches() as patches:
            yield make_world, (Hung,), patches.list_swapped_pairs()

    @contextmanager
    def _open_real_time_world(self) -> Iterator[tuple[Place, Hangs, Pairs]]:
        def make_place(seam: ServiceSeam, deadline_s: float, trial: str) -> TrialPlace:  # noqa: ARG001
            agents = [agent for agent in (self.agent, self.options.resume_with) if isinstance(agent, ProcessAgent)]
            real_time_place = RealTimePlace(deadline_s, [agent.kill for agent in agents])
            seam.runaway = real_time_place.end_runaway_trial
            return real_time_place

        yield make_place, (), []

    # The agent and its functions.

    def _make_agent_caller(self, agent: Any, pairs: Pairs) -> Ask:
        """The agent as it is asked, whether it is made anew or not."""
        return (
            self._make_fresh_agent_caller(agent, pairs)
            if isinstance(agent, Fresh)
            else self._make_plain_agent_caller(agent)[0]
        )

    def _make_fresh_agent_caller(self, fresh: Fresh, pairs: Pairs) -> Ask:
        """A callable that makes the agent, then calls it with the fakes in place wherever it can reach the
        functions."""

        def make_agent_and_ask(prompt: Any, start: AgentStart) -> Any:
            if start.agent is None:
                start.agent = fresh.make()
            agent = start.agent
            if not callable(agent) and adapters.find_agent_adapter(agent) is None:
                agents = adapters.describe_accepted_kinds(
                    "a callable", (adapter.agents for adapter in adapters.load_adapters())
                )
                raise TypeError(
                    f"{get_function_name(fresh)} made {add_article(type(agent).__name__)}: an agent is {agents}; "
                    "return its method"
                )
            with References([agent], pairs):
                return start.loop.resolve_answer(self._make_plain_agent_caller(agent)[0](prompt, start))

        return make_agent_and_ask

    def _make_plain_agent_caller(self, agent: Any) -> tuple[Ask, bool]:
        """The agent, and True if it is async. A framework's agent is called async if a tool is async only."""
        if (framework := adapters.find_agent_adapter(agent)) is not None:
            is_async_only = any(
                ((adapter := adapters.find_tool_adapter(tool)) is not None and adapter.is_async_only(tool))
                or WrappedFunction("", tool, effect=False).is_coroutine
                for tool in map(unwrap_tool, (*self.tools, *self.reads))
            )
            ask = framework.callable_of(agent, of_coroutine=is_async_only)
            return make_announcing_agent(ask), inspect.iscoroutinefunction(ask)
        return make_announcing_agent(agent), WrappedFunction("", agent, effect=False).is_coroutine

    @contextmanager
    def _swap_functions(self, seam: FunctionSeam, exchanged: Pairs) -> Iterator[tuple[Pairs, tuple[str, ...]]]:
        """A context with the fakes in place: in the code of functions, else in the agent's references to them. Also
        those of the world, such as for a clock that the agent keeps in an attribute. Gives the pairs that are swapped
        by reference, and the names of the functions to which no reference was found."""
        pairs, names, swaps = [], [], []
        inner = map_to_inner_functions(all_functions := [*map(unwrap_tool, (*self.tools, *self.reads))])
        with ExitStack() as stack:
            for functions, effect in ((self.tools, True), (self.reads, False)):
                for tool in functions:
                    function, name = unwrap_tool(tool), get_function_name(tool)
                    errors = native_errors.choose_tool_errors(self.options.raises, name)
                    wrapping = Wrapping(seam, effect, self.ignore, errors, name)
                    make_wrapped = partial(make_fake_function, wrapping, function)
                    if (adapter := adapters.find_tool_adapter(function)) is not None:
                        swaps.append(adapter.swapped(function, wrapping))
                    elif code_swap.can_swap(function):
                        swaps.append(code_swap.swap_code(inner[id(function)], make_wrapped))
                    else:
                        names.append(name)
                        pairs.append(code_swap.make_reference_replacement(function, make_wrapped))
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


class _TwinRunner:
    """The twins that trials have of their own, in this process."""

    def __init__(self, case: AgentSpec, ready: TrialSetup) -> None:
        self._case, self._ready = case, ready
        self._known: dict[int, TwinTrial] = {}
        self.do: Callable[[TrialSpec], AgentResult] = self._run_without_faults
        """Runs the trial with that number without faults."""

    def find_or_run_own_twin(self, spec: TrialSpec) -> tuple[AgentSpec, AgentResult | None]:
        """The case of a trial beside its twin, and the twin if it is its own."""
        uncompared = self._case.own_twins
        if uncompared is None or not spec.number or spec.stopped:  # the first trial's twin is known
            return self._case, None
        if spec.number not in self._known:
            if len(self._known) == TWINS_MAX:
                self._known.pop(next(iter(self._known)))
            self._known[spec.number] = TwinTrial(self.do(TrialSpec(spec.number)))
        twin = self._known[spec.number]
        return self._case.with_twin_from(fill_case_from_own_twin(uncompared, twin)), twin.result

    def _run_without_faults(self, spec: TrialSpec) -> AgentResult:
        assert self._case.own_twins is not None
        calm_case = remove_faults(self._case.own_twins)
        result = self._run_case(calm_case, spec)
        if (once_case := make_case_with_equal_turns_once(calm_case)) is not None:
            attach_equal_turns_once_result(result, self._run_case(once_case, spec))
        return result

    def run_with_injections(self, number: int, injections: Sequence[Injection]) -> AgentResult:
        """Runs the trial with that number without faults but for these."""
        case = remove_faults(self._case.own_twins or self._case)
        return self._run_case(replace(case, plan=replace(case.plan, injections=tuple(injections))), TrialSpec(number))

    def _run_case(self, case: AgentSpec, spec: TrialSpec) -> AgentResult:
        self._ready.functions.plan = case.plan
        services = case._make_service_seam(case.plan)
        return run_trial(case, spec, replace(self._ready, services=services))


def attach_twin(result: AgentResult, twin: AgentResult | None) -> AgentResult:
    """The result of a trial with its own twin, if it has one."""
    result.twin = twin
    return result


def _make_model_host(app: Any) -> ModelHost:
    """A service that speaks a model's API, for its seam."""
    if isinstance(app, ModelApp):
        host = ModelHost(formats.find_format, formats.get_error_replies, app.handle_answer_as_received)
        return replace(host, said_by=app.get_answer_source) if isinstance(app, Scripted) else host
    return ModelHost(formats.find_format, formats.get_error_replies, recorded=True)
