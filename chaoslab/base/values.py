"""Values: data classes that nobody changes once they are made, of which a run makes many. A frozen data class sets each
field through `object.__setattr__`, which takes three times as long. So mypy alone sees that these are frozen. What a
story gets of an exchange (`Call`, `Reply`) is frozen in earnest."""

from typing import TYPE_CHECKING, Any

__all__ = ["fixed"]

if TYPE_CHECKING:
    from dataclasses import dataclass as fixed
else:
    from dataclasses import dataclass

    def fixed(*, frozen: bool, kw_only: bool = False) -> Any:
        """As `dataclass` of the same arguments, which mypy takes it for."""
        assert frozen
        return dataclass(unsafe_hash=True, kw_only=kw_only)
