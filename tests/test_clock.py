"""A moment in words is the same whatever moment was told before it."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from chaoslab.base.clock import format_iso

MOMENTS = st.datetimes(
    min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30),
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=2))]),
)  # fmt: skip


@given(st.lists(MOMENTS, min_size=1), st.integers(-1_000_000, 1_000_000))
def test_a_moment_is_told_in_utc_with_its_microseconds(moments: list[datetime], later_us: int) -> None:
    for moment in (*moments, moments[-1] + timedelta(microseconds=later_us), moments[0]):
        assert (
            format_iso(moment) == moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        )
