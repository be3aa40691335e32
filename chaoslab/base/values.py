"""Values: data classes that nobody changes once they are made, of which a run makes many. A frozen data class sets each
field through `object.__setattr__`, which takes three times as long. So mypy alone sees that these are frozen. What a
story gets of an exchange (`Call`, `Reply`) is frozen in earnest."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["fixed", "once"]

if TYPE_CHECKING:
    from dataclasses import dataclass as fixed
    from functools import cached_property as once
else:
    import dataclasses
    from operator import attrgetter

    def fixed(*, frozen: bool, kw_only: bool = False) -> Any:
        """As `dataclass` of the same arguments, which mypy takes it for. That has Python compile each of a class's
        methods from text, which takes half of the time in which the events load; so only `__init__` is made like
        this."""
        assert frozen

        def made(cls: type) -> type:
            plain = dataclasses.dataclass(eq=False, repr=False, kw_only=kw_only)(cls)
            fields = dataclasses.fields(plain)
            # The class stands twice, so that it gives a tuple also of a class without fields.
            held = attrgetter("__class__", "__class__", *[each.name for each in fields if each.compare])
            shown = [each.name for each in fields if each.repr]

            def equal(self: Any, other: Any) -> Any:
                return held(self) == held(other) if other.__class__ is self.__class__ else NotImplemented

            plain.__eq__, plain.__hash__ = equal, lambda self: hash(held(self)[2:])
            plain.__repr__ = lambda self: (
                f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"
            )
            return plain

        return made

    class once:
        """As `functools.cached_property`, without the lock that it has up to Python 3.11. Two threads that ask at once
        may both work the value out."""

        def __init__(self, worked_out: Callable[[Any], Any]) -> None:
            self._worked_out, self.__doc__ = worked_out, worked_out.__doc__

        def __set_name__(self, _owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, _owner: type | None = None) -> Any:
            if instance is None:
                return self
            found = instance.__dict__[self._name] = self._worked_out(instance)
            return found
