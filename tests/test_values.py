"""Values: classes whose objects nobody changes, without what a frozen class costs."""

from chaoslab.base.values import fixed, once

asked: list[int] = []


@fixed(frozen=True)
class Square:
    """A square."""

    side: int

    @once
    def area(self) -> int:
        """Its area."""
        asked.append(self.side)
        return self.side**2


def test_equal_values_are_equal_and_have_one_hash() -> None:
    assert Square(2) == Square(2) != Square(3)
    assert {Square(2): "two"}[Square(2)] == "two"
    assert repr(Square(2)) == "Square(side=2)"


def test_a_property_is_worked_out_when_it_is_asked_for_and_once() -> None:
    asked.clear()
    square = Square(4)
    assert asked == []
    assert [square.area, square.area, Square(5).area] == [16, 16, 25]
    assert asked == [4, 5]
    assert Square.area.__doc__ == "Its area."
