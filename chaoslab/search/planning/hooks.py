"""The plug-ins of planning, behind one boundary: what one of them raises is one line that names its package."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from chaoslab.base.boundary import let_through
from chaoslab.base.jsonable import describe_error
from chaoslab.base.registry import broken, load, names

T = TypeVar("T")
PLACE = "search.planning"


def all_of(group: str) -> Iterator[tuple[str, Any]]:
    """The plug-ins of a group by name, each made anew: those that a package brings first, then the lab's own. Raises
    BrokenPlugin: one cannot be used."""
    own = names(f"{PLACE}.{group}")
    for name in sorted(own, key=lambda name: (load_of(group, name).__module__.startswith("chaoslab."), name)):
        yield name, ask_plugin(group, name, load_of(group, name))


def load_of(group: str, name: str) -> Any:
    """The class of a plug-in. Raises LookupError: there is none of this name. BrokenPlugin: it cannot be imported."""
    return load(f"{PLACE}.{group}", name)


def ask_plugin(group: str, name: str, question: Callable[[], T]) -> T:
    """The answer of a plug-in. Raises BrokenPlugin: it raised."""
    try:
        return question()
    except BaseException as error:
        let_through(error)
        raise broken(f"{PLACE}.{group}", name, describe_error(error)) from error
