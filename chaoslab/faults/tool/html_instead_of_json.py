"""A page of HTML comes instead of the service's answer."""

from dataclasses import dataclass

from chaoslab.core.exchange import Call, Flow, Observation, Reply, TrialContext
from chaoslab.core.fault import Fault

PAGE = (
    b"<!DOCTYPE html>\n<html>\n<head><title>Just a moment...</title></head>\n"
    b"<body><h1>Checking your browser before you proceed</h1></body>\n</html>\n"
)


@dataclass(frozen=True)
class HtmlInsteadOfJson(Fault):
    """Answers with a page of HTML and `status`, as a gateway in front of the service does. The service is not asked."""

    status: int = 200
    layer = "tool"
    common = True
    leaves = "garbage"
    example = '"html_instead_of_json", "search", chance=0.1'
    source = "https://github.com/AltimateAI/altimate-code/issues/1119"

    def __post_init__(self) -> None:
        if not 200 <= self.status <= 599 or self.status in (204, 304):
            raise ValueError(
                f"status of html_instead_of_json is {self.status}: it should be one that has a body, from 200 to 599"
            )

    def flow(self, call: Call, context: TrialContext) -> Flow:
        return Reply(self.status, {"Content-Type": "text/html; charset=UTF-8"}, PAGE)
        yield call

    def witnessed(self, observation: Observation) -> str | None:
        return (
            f"a page of HTML with status {self.status} reached the caller"
            if observation.changed_reply_if_received
            else None
        )
