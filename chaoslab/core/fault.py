"""`Fault`, the base of every fault, and `load_fault`, which checks a fault before it is used. A fault is a dataclass of
its parameters that derives from `Fault` and overrides what differs. Everything that the lab has to know of a fault is a
trait of its class, so nothing outside of `chaoslab.faults` names one. `OutageCut` is the failure that clients meet
during an `Outage`."""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import Field, dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, ClassVar, Literal, Self, cast, get_args

from chaoslab.base.boundary import Through, is_foreign_error
from chaoslab.base.dice import Dice
from chaoslab.base.jsonable import describe_error
from chaoslab.base.registry import load_plugin as load_plugin
from chaoslab.base.registry import make_broken_plugin_error, register_plugin
from chaoslab.core.exchange import Arrival, Call, Failure, Flow, Observation, Toxic, TrialContext

GROUP = "faults"
LAYERS = ("budget", "context", "meaning", "tool", "stream", "wire")
"""The layers, outermost first: an exhausted budget masks all others, the wire is reached when all others let a call
pass."""
HALVES = ("", "call", "reply")
Left = Literal["", "value", "part", "nothing", "garbage"]
UNUSABLE = {"nothing": "no body", "garbage": "no JSON"}
"""The words for a reply that nobody can use, by what a fault leaves of it."""


class Fault:
    """One kind of fault; an instance holds its parameters.

    Traits, which a class states once for all its instances:

    - `layer`: the layer that its story runs in, one of `LAYERS`.
    - `conditional`: its story decides itself if it acts. It is scheduled when it acts, and its rate says nothing
      about dice.
    - `corrupts`: "call" or "reply", the half of the exchange that it changes without an error. Nobody can notice it, so
      nobody recovers.
    - `leaves`: what its caller has in the place of the right reply: "value" for another value, "part" for the beginning
      of the right one, "nothing" for an empty one, "garbage" for one that cannot be read as what it should be. An
      attempt that meets it is not right, whatever its status. It has failed if nothing or garbage is left and the fault
      does not corrupt in silence.
    - `needs`: what it must find to have something to change, after "it needs", as in "a list in the answer".
    - `lasts`: it goes on until its trial ends, so nothing recovers from it.
    - `unanswered`: its caller has no answer, and cannot know if the work was done.
    - `common`: reports of production name it most, so a search tries it before others of its danger.
    - `redelivers`: the call is made more often than its caller knows.
    - `delays`: it only makes a call slow. An attempt that meets it may succeed.
    - `of_effect`: it is about calls that change something, and so aims at the first of those where only its name and a
      target are given.
    - `looks_back`: its story reads `context.earlier`.
    - `of_model`: it acts on the messages or the answers of a model, which other targets have none of.
    - `of_tools`: it changes the values of a tool's answer or arguments, which models have none of.
    - `of_listing`: it changes the list of a service's tools, which no other fault does.
    - `breaks_form`: it changes the form of an answer, which others keep where the target promises one, as a tool of MCP
      does by its output schema.
    - `evident`: whoever looks at the reply can tell, though it has no error and the right form.
    - `of_text`: it acts on the text of a tool call's arguments, which some models have none of: theirs are objects.
    - `of_bytes`: it acts on the bytes of an answer, which a function's has none of.
    - `of_process`: it acts on the process of a service, for all clients of the service (see `outage`).
    - `of_agent`: it ends the process of the agent, which is then made to go on (`resume_with`).
    - `of_user`: whoever asks the agent does it: it asks again, asks more, or stops the agent.
    - `of_turns`: it needs a next turn of a conversation.
    - `of_container`: it is done by a container's engine alone, so it exists in the compose world alone.
    - `of_stdio`: it acts between the lines of a server's standard output, which `chaoslab mcp` alone has.
    - `of_clock`: it moves the wall clock of its target, which there is one of only in virtual time.
    - `of_machine`: it breaks the files or the commands of the agent's own machine: these targets of a trial with
      `files=`, and functions.
    - `dose`: its parameter, in seconds, that decides if the caller gives the call up; a search tries it on both sides
      of the caller's timeout.
    - `refuses`: its connection is refused. It needs no lane of its own, and no toxics.
    - `closes`: it closes the connection. The client sees it closed, or reset if some of its request was still unread.
    - `refuses_at`: the step of making a connection that fails then: the lookup of the name, the connection itself, or
      the handshake of TLS.

    - `drawn`: its parameters that are left to chance, with what each is drawn from where it is 0 or empty; () for a
      share from 0 to 1, which is drawn where it is below 0.

    - `met_as`: the evidence that its caller met the reply that its story made. `{status}` in it is that of the reply,
      `{name}` the parameter of this name.

    For its reader and for `inject`:

    - `bounds`: the least and the greatest value of a parameter, by name. Of others, numbers are 0 or more.
    - `example`: the arguments of an `inject(...)` that shows it, as Python text.
    - `source`: a report from the real world, or the documentation of a service that does this.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    layer: ClassVar[str]
    conditional: ClassVar[bool] = False
    corrupts: ClassVar[Literal["", "call", "reply"]] = ""
    leaves: ClassVar[Left] = ""
    needs: ClassVar[str] = ""
    lasts: ClassVar[bool] = False
    delays: ClassVar[bool] = False
    of_effect: ClassVar[bool] = False
    unanswered: ClassVar[bool] = False
    common: ClassVar[bool] = False
    redelivers: ClassVar[bool] = False
    looks_back: ClassVar[bool] = False
    of_model: ClassVar[bool] = False
    of_tools: ClassVar[bool] = False
    of_listing: ClassVar[bool] = False
    breaks_form: ClassVar[bool] = False
    evident: ClassVar[bool] = False
    of_text: ClassVar[bool] = False
    of_bytes: ClassVar[bool] = False
    of_process: ClassVar[bool] = False
    of_agent: ClassVar[bool] = False
    of_user: ClassVar[bool] = False
    of_turns: ClassVar[bool] = False
    of_container: ClassVar[bool] = False
    of_stdio: ClassVar[bool] = False
    of_clock: ClassVar[bool] = False
    of_machine: ClassVar[Sequence[str]] = ()
    dose: ClassVar[str] = ""
    refuses: ClassVar[bool] = False
    closes: ClassVar[bool] = False
    refuses_at: ClassVar[Literal["lookup", "connection", "handshake"]] = "connection"
    drawn: ClassVar[Mapping[str, Sequence[Any]]] = {}
    met_as: ClassVar[str] = "the changed reply reached the caller"
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {}
    example: ClassVar[str] = ""
    source: ClassVar[str] = ""

    def draw(self, dice: Dice) -> Self:
        """The fault for one exchange, with all its chances drawn: before its story, so that the scheduled event, the
        toxic and the story say the same."""
        fault: dict[str, Any] = {}
        for name, among in self.drawn.items():
            value = getattr(self, name)
            if among and not value:
                fault[name] = dice(name).pick(among)
            elif not among and value < 0:
                fault[name] = dice(name).uniform()
        return replace(self, **fault) if fault else self

    def flow(self, call: Call, context: TrialContext) -> Flow:  # noqa: ARG002 - it needs nothing of the trial
        """The fault's story for a call (see `exchange`)."""
        return (yield call)

    def toxics(self) -> Sequence[Toxic]:
        """The toxics of its lane; none for a fault that is not of the wire."""
        return ()

    def outage(self) -> "Outage | None":
        """The outage of the service that begins when the story acts; None for a fault of one call alone."""
        return None

    def witnessed(self, observation: Observation) -> str | None:
        """The evidence that the caller met this fault, in words, or None. By default: the call or the reply that the
        story changed came through unaltered."""
        if observation.changed_reply is not None:
            reply = {**vars(self), "status": observation.changed_reply.status}
            return self.met_as.format_map(reply) if observation.changed_reply.same_as(observation.reply) else None
        if (
            observation.changed_call is None
            or observation.sent is None
            or observation.sent.value != observation.changed_call.value
        ):
            return None
        return "the changed call was sent"

    def describe_deviation(self, got: Arrival) -> str:  # noqa: ARG002 - most faults promise nothing of pieces
        """The difference, in words, between an answer that met the fault and what its page says of the bytes; empty if
        there is none."""
        return ""

    def explain_idle(self, observation: Observation) -> str:  # noqa: ARG002 - most faults of the wire meet every call
        """The reason, in words, that a lane with this fault had nothing to do with the call; empty if there is none, so
        that an unwitnessed fault makes its trial invalid."""
        return ""


class BrokenFault(Through):
    """A fault's own code raised, which is no failure of the agent. One line names the fault, its package and the
    error."""


class guarded:
    """A context for the code of the fault of this name, which raises BrokenFault where the code raised anything but a
    `Failure`. As a class it takes a third of the time."""

    __slots__ = ("_method", "_name")

    def __init__(self, name: str, method: str) -> None:
        self._name, self._method = name, method

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        if error is not None and not isinstance(error, Failure) and is_foreign_error(error):
            raise make_broken_fault_error(self._name, self._method, error) from error


def make_broken_fault_error(name: str, method: str, error: BaseException) -> BrokenFault:
    """The error for a fault of this name whose method raised that error."""
    return BrokenFault(make_broken_plugin_error(GROUP, name, f"its {method}() raised {describe_error(error)}").args[0])


def load_fault(name: str) -> type[Fault]:
    """The class of the fault of this name, checked.

    Raises: LookupError: no such fault. BrokenPlugin: it cannot be loaded or used; the line names the package that
    brings it.
    """
    class_ = load_plugin(GROUP, name)
    if wrong := _find_class_defect(class_):
        raise make_broken_plugin_error(GROUP, name, wrong)
    return cast(type[Fault], class_)


def register_given_fault(fault: Fault) -> tuple[str, dict[str, Any]]:
    """The name and the parameters of a fault that is given as an object. A class that no package registers is known by
    its name from now on: `LateReply` is the fault "late_reply". Raises BrokenPlugin: it is no fault. ValueError:
    another fault has its name."""
    fault_class: Any = type(fault)
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", fault_class.__name__).lower()
    if wrong := _find_class_defect(fault_class):
        raise make_broken_plugin_error(GROUP, name, wrong)
    try:
        is_registered = load_plugin(GROUP, name) is fault_class
    except LookupError:
        is_registered = False
    if not is_registered:
        register_plugin(GROUP, name, fault_class)
    return name, {parameter.name: getattr(fault, parameter.name) for parameter in fields(fault)}


def get_trait(fault: object, name: str) -> Any:
    """A trait of a fault; the default for a class that does not derive from `Fault` and does not state it."""
    return getattr(fault, name, getattr(Fault, name))


def describe_unusable_reply(fault: object) -> str:
    """The words for the reply that a fault leaves, if its caller cannot use it and can tell; else an empty text."""
    return "" if get_trait(fault, "corrupts") else UNUSABLE.get(get_trait(fault, "leaves"), "")


@cache
def _find_class_defect(candidate: Hashable) -> str:
    """The reason, in words, that a class cannot be used as a fault; empty if it can."""
    if not isinstance(candidate, type) or not is_dataclass(candidate):
        return "it is no dataclass"
    layer = getattr(candidate, "layer", None)
    if layer not in LAYERS:
        text = "it has no layer" if layer is None else f"its layer is {layer!r:.60}"
        return f"{text}: it should be one of {', '.join(LAYERS)}"
    for method in ("draw", "flow", "toxics", "witnessed"):
        if not callable(getattr(candidate, method, None)):
            return f"it has no method {method}()"
    if get_trait(candidate, "corrupts") not in HALVES:
        return f"its corrupts is {get_trait(candidate, 'corrupts')!r:.60}: it should be 'call', 'reply' or ''"
    if get_trait(candidate, "leaves") not in get_args(Left):
        leaves = f"its leaves is {get_trait(candidate, 'leaves')!r:.60}"
        return f"{leaves}: it should be 'value', 'part', 'nothing', 'garbage' or ''"
    if not isinstance(get_trait(candidate, "needs"), str):
        return f"its needs is {get_trait(candidate, 'needs')!r:.60}: it should be a text"
    own_fields = {
        method for method in ("flow", "toxics", "witnessed") if getattr(candidate, method) is not getattr(Fault, method)
    }
    if not own_fields & {"flow", "toxics"}:
        return "it has neither a flow() nor toxics() of its own, so it does nothing"
    if layer == "wire" and "witnessed" not in own_fields:
        return "it is of the wire and has no witnessed() of its own, so nobody could tell that it was met"
    if layer == "wire" and "toxics" not in own_fields and not get_trait(candidate, "refuses"):
        return "it is of the wire and has no toxics() of its own"
    return ""


@dataclass(frozen=True)
class Outage:
    """The outage that a fault begins in the moment in which it acts: the process of the service answers nobody.

    `for_s`: its length in seconds. `lost`: the process begins without the state that it had. `held`: gives
    the fault of a call that comes when so many seconds are left, for a process that is paused; None for one that is
    down, whose connections are refused. `after_effect`: it begins when the work is done, before the caller has
    the answer. `deed`: what a container's engine does in place of that: "partitioned", "throttled" (to `share` of a
    CPU) or "out of memory".
    """

    for_s: float
    lost: bool = False
    after_effect: bool = False
    held: Callable[[float], Fault] | None = None
    deed: str = ""
    share: float = 1.0

    @property
    def how(self) -> str:
        """The action in a word: killed, paused, or what the engine does."""
        return self.deed or ("paused" if self.held else "killed")


WORDS = {"refused": "connection refused", "reset": "connection reset", "dns": "the name was not found"}


@dataclass(frozen=True)
class OutageCut(Fault):
    """The fault of a call that an outage meets on its way: `error` is refused, reset, or dns where a container's
    name goes with it."""

    error: Literal["refused", "reset", "dns"]
    layer = "tool"
    conditional: ClassVar[bool] = True

    def witnessed(self, observation: Observation) -> str | None:
        if self.error == "reset" and observation.error == "closed":
            return "connection closed without an answer"
        return WORDS[self.error] if observation.error == self.error else None
