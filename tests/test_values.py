"""Values: classes whose objects nobody changes, without what a frozen class costs."""

from dataclasses import field

from chaoslab.base.values import fixed


@fixed(frozen=True)
class Square:
    """A square."""

    side: int


@fixed(frozen=True, kw_only=True)
class Named:
    """A square with a name, which says nothing of what it is, and a key, which nobody is shown."""

    square: Square
    name: str = field(default="", compare=False)
    key: int = field(default=0, repr=False)


class Cube(Square):
    """No square."""


@fixed(frozen=True)
class Nothing:
    """A value without fields."""


def test_equal_values_are_equal_and_have_one_hash() -> None:
    assert Square(2) == Square(2) != Square(3)
    assert {Square(2): "two"}[Square(2)] == "two"
    assert repr(Square(2)) == "Square(side=2)"
    assert {Nothing(): "none"}[Nothing()] == "none"
    assert Square(2) != Cube(2)


def test_fields_that_are_left_out_of_comparing_or_of_the_text_are_left_out() -> None:
    one, other = Named(square=Square(2), name="one"), Named(square=Square(2), name="other")
    assert one == other
    assert hash(one) == hash(other)
    assert one != Named(square=Square(2), key=1)
    assert repr(other) == "Named(square=Square(side=2), name='other')"
