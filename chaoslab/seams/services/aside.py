"""The attempt that a request to a service is: one that is numbered and noted, or one that no trial is about."""

from chaoslab.record.trial_log import TrialLog
from chaoslab.seams.services._enveloped import WantedCall
from chaoslab.seams.services.line import ClientEnd, Line, Started
from chaoslab.seams.services.messages import HttpRequest
from chaoslab.seams.services.seam import ServiceAttempt, ServiceSeam, Take


class UncountedAttempt(ServiceAttempt):
    """A request that only keeps up a session of its protocol, or asks for a list of tools that no fault is aimed at. It
    is answered as without the seam, and neither numbered nor noted."""

    # Of the class: nothing of the base's own making is run, as it would number the request.
    of_model, chat, hit, over, waited_s = False, None, False, False, None
    reads = 0

    def __init__(
        self, seam: ServiceSeam, book: TrialLog, name: str, request: HttpRequest, wanted_call: WantedCall
    ) -> None:
        self.seam, self.book, self.name, self.request, self.tool = seam, book, name, request, wanted_call.tool
        self.value, self.message, self.clock, self.deadline_s = (
            wanted_call.value,
            wanted_call.message,
            seam.clock,
            seam.timeout_s,
        )
        self.began_s = self.clock.monotonic()
        # It was reached, so a trial whose services nobody asked is told rightly.
        seam.asked_of.add(name)
        seam.open[id(self)] = self

    @property
    def request_label(self) -> str:
        return self.tool

    @property
    def may_still_act(self) -> bool:
        return False

    def make_part_receiver(self, started: Started) -> Take:
        keep = self._make_part_recorder(started)

        def receive_part(piece: bytes | None) -> None:
            keep(piece)
            self.wait_for_pause_end()

        return receive_part

    def wait_for_pause_end(self) -> None:
        if self.seam.outages.find_pause_fault(self.name) is not None:
            # A paused process answers no session's message either.
            self.clock.sleep(max(0.0, self.seam.outages.get_last_outage_end_s(self.name) - self.clock.monotonic()))

    def handle_client_end(self, end: ClientEnd) -> None:  # noqa: ARG002
        if not self.over:
            self.over = True
            del self.seam.open[id(self)]

    def end_with_trial(self) -> None:
        self.over = True
        del self.seam.open[id(self)]


def make_service_attempt(seam: ServiceSeam, name: str, request: HttpRequest, line: Line) -> ServiceAttempt | None:
    """The attempt that a request to a service is; None outside of a trial."""
    if seam.book is None:
        return None
    call = WantedCall(request, seam.find_model_host(name, request), seam.tasks[name])
    # Before the first line: an event may have a part of it.
    seam.book.hide_secrets(request.find_secrets(body=call.long))
    if seam.is_session_upkeep(name, call):
        return UncountedAttempt(seam, seam.book, name, request, call)
    return ServiceAttempt(seam, seam.book, name, request, line, call)


def make_unknown_host_attempt(seam: ServiceSeam, name: str, request: HttpRequest) -> ServiceAttempt | None:
    """The attempt that a request is to a host which is no service of the trial; None outside of one."""
    if seam.book is None:
        return None
    attempt = UncountedAttempt(seam, seam.book, name, request, WantedCall(request))
    attempt.message = None  # whatever protocol it is in, nothing of it is read
    return attempt
