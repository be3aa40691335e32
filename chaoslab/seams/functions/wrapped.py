"""A function of the agent's as the seam takes it: its arguments by name, and its result as a reply."""

import dataclasses
import functools
import inspect
import json
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from chaoslab.base.jsonable import UNCHANGING
from chaoslab.core.exchange import Reply
from chaoslab.seams.functions.inside import find_self_parameter
from chaoslab.seams.functions.native_errors import PYTHON, NativeErrors


class Returned(Reply):
    """A function's result as a reply. Its value is the result itself, of any type. `ok`: the function did its work."""

    ok = True
    done = True
    """False while the function's work goes on after the call."""
    of_function = True
    protocol: ClassVar[str | None] = None
    """The protocol in which the function is called, if logs tell it."""

    def __init__(self, result: Any) -> None:
        # Past the frozen dataclass, and without its checks: one for each call.
        self.__dict__.update(status=200, headers={}, body=b"", stream=None, pipes=(), value=result)

    def with_value(self, value: Any) -> Reply:
        return Returned(value)

    @classmethod
    def make_from_value(cls, value: Any) -> "Returned":
        """The result that the function would give for a value of the lab's own."""
        return cls(value)

    def same_as(self, other: Reply | None) -> bool:
        # By identity first, as a value's own equality may be costly, or raise.
        return isinstance(other, Returned) and (other.value is self.value or bool(other.value == self.value))

    @property
    def native_result(self) -> Any:
        """The result as the function's caller gets it."""
        return self.value


class ReturnedFactory(Protocol):
    """The form of a function's results: a class of `Returned`, or what makes one."""

    @property
    def protocol(self) -> str | None: ...

    def __call__(self, result: Any) -> Returned: ...

    def make_from_value(self, value: Any) -> Returned:
        """The result that the function would give for a value of the lab's own."""


@dataclass(frozen=True)
class WrappedFunction:
    """One function of the agent's. `effect`: a call of it changes the world. `hidden`: the parameters that are not
    arguments of the request. `errors`: the exceptions by which its caller learns of a fault. `returned`: the form of
    its results. `served`: a service does its work, which may note the effect itself (`TrialLog.served`). `keyed`: calls
    with the same arguments have one effect."""

    name: str
    function: Callable[..., Any]
    effect: bool
    hidden: frozenset[str] = frozenset()
    errors: NativeErrors = PYTHON
    returned: ReturnedFactory = Returned
    served: bool = False
    keyed: bool = False
    names: tuple[str, ...] = field(init=False)
    """The parameters' names if all are plain, which saves binding; else empty."""

    def __post_init__(self) -> None:
        names: tuple[str, ...] = ()
        if self._signature is not None:
            parameters = self._signature.parameters.values()
            if all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters):
                names = tuple(p.name for p in parameters)
        # Frozen: the only way to set a field that is worked out.
        object.__setattr__(self, "names", names)

    @functools.cached_property
    def is_coroutine(self) -> bool:
        call = getattr(self.function, "__call__", None)  # noqa: B004 - an object's own, which may be async
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    @functools.cached_property
    def generator_kind(self) -> str:
        """ "sync" or "async" if it is a generator, else empty."""
        function = inspect.unwrap(getattr(self.function, "__func__", self.function))
        return "async" if inspect.isasyncgenfunction(function) else "sync" * inspect.isgeneratorfunction(function)

    def make_typed_result(self, value: Any) -> Returned:
        """A result that a story makes, in the type that the function is annotated to return, where that is plain."""
        # Annotations may be texts, if their evaluation was put off.
        noted = self._signature.return_annotation if self._signature is not None else inspect.Signature.empty
        name = noted if isinstance(noted, str) else str(getattr(noted, "__name__", noted))
        match name:
            case "str" if not isinstance(value, str):
                # A tool that returns text gets text: JSON is what most would have made.
                value = json.dumps(value, ensure_ascii=False, default=str)
            case "bool" if not isinstance(value, bool):
                # True, as most such tools say that it was done.
                value = True
            case "None" | "NoneType":
                value = None
        return self.returned.make_from_value(value)

    @functools.cached_property
    def _signature(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self.function)
        except (TypeError, ValueError):  # some functions written in C
            return None

    @functools.cached_property
    def _self_as_only_parameter(self) -> str:
        """The object parameter of a method that has no other one: its arguments are the object's fields. Else empty."""
        parameters = [] if self._signature is None else [n for n in self._signature.parameters if n not in self.hidden]
        # Only without other parameters: else the object is no arguments.
        return "" if parameters else "".join(find_self_parameter(self.function))

    def bind_arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by parameter name, with defaults; by position if the call does not fit the signature. Those of
        a method of its class that has no parameters are the fields of its object."""
        if not kwargs and len(args) == len(self.names) and not self.hidden:
            return dict(zip(self.names, args, strict=True))
        bound = self._bind_values(args, kwargs)
        if self._self_as_only_parameter in bound:
            return {
                name: value
                for name, value in read_argument_fields(bound[self._self_as_only_parameter]).items()
                if name not in self.hidden
            }
        return {name: value for name, value in bound.items() if name not in self.hidden}

    def replace_arguments(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        """A call with other arguments, by parameter name. An object that keeps them is replaced by a copy."""
        passed = self.get_hidden_values(args, kwargs)
        if self._self_as_only_parameter not in passed:
            return {**passed, **arguments}
        # A copy: the object belongs to the caller.
        keeper = copy(passed[self._self_as_only_parameter])
        for name, value in arguments.items():
            object.__setattr__(keeper, name, value)  # it may be frozen
        return {**passed, self._self_as_only_parameter: keeper}

    def get_hidden_values(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the hidden parameters, by name."""
        if not self.hidden:
            return {}
        return {name: value for name, value in self._bind_values(args, kwargs).items() if name in self.hidden}

    def _bind_values(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """All values of a call, by name."""
        try:
            if self._signature is None:
                raise TypeError
            bound = self._signature.bind(*args, **kwargs)
        except TypeError:
            return {**{f"argument {n}": value for n, value in enumerate(args, 1)}, **kwargs}
        bound.apply_defaults()
        values: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = self._signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                values |= value
            # No empty tuple, so that equal calls stay equal.
            elif kind is not inspect.Parameter.VAR_POSITIONAL or value:
                values[name] = value
        return values


def read_argument_fields(thing: Any) -> dict[str, Any]:
    """The arguments that an object keeps: the fields that its class declares; else the attributes with the names of its
    class's parameters, but for values that may change."""
    kind: Any = type(thing)
    # Declared fields first; attributes may be anything.
    if dataclasses.is_dataclass(kind):
        return {field.name: getattr(thing, field.name) for field in dataclasses.fields(kind)}
    declared = getattr(kind, "model_fields", None) or getattr(kind, "__struct_fields__", None)
    if declared:  # pydantic's, msgspec's
        return {name: getattr(thing, name) for name in declared}
    try:
        names = inspect.signature(kind).parameters
    except (TypeError, ValueError):
        return {}
    # `thing` itself for one that is missing, which is no constant and so left out.
    attributes = {name: getattr(thing, name, thing) for name in names}
    return {name: value for name, value in attributes.items() if type(value) in UNCHANGING}
