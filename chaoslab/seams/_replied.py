"""The event for a reply that could not be made again."""

from chaoslab.core import events
from chaoslab.core.exchange import Reply

# Headers of a reply that steer the client's next step.
STEERING = ("idempotency-replayed", "retry-after", "retry-after-ms", "x-should-retry")


def make_replied_event(
    target: str, request: int, attempt: int, asked: str, reply: Reply | None, failure: str = ""
) -> events.Replied:
    """The event for a target's reply to an attempt. `reply`: None if there was none, for the reason `failure`."""
    if reply is None:
        return events.Replied(
            target=target,
            request=request,
            attempt=attempt,
            asked=asked,
            status=0,
            content_type="",
            body="",
            failure=failure,
        )
    headers = {name.lower(): value for name, value in reply.headers.items()}
    # "replace": a body may be no text at all, and the log's line has to stay one of JSON.
    kind, body = headers.get("content-type", ""), reply.body.decode("utf-8", "replace")
    # A replay needs no more of the headers than what the client goes by.
    steering = {name: headers[name] for name in STEERING if name in headers}
    return events.Replied(
        target=target,
        request=request,
        attempt=attempt,
        asked=asked,
        status=reply.status,
        content_type=kind,
        body=body,
        failure=failure,
        headers=steering,
    )
