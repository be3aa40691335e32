"""What goes wrong in a request to the API."""

from __future__ import annotations


class ApiError(Exception):
    """A refusal: an HTTP status and the words that go with it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class BadTarget(Exception):
    """What a request asks for can be no target: the whole request is none."""
