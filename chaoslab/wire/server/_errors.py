"""Errors of requests to the API."""

from __future__ import annotations


class ApiError(Exception):
    """A refusal: an HTTP status and its message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class BadTarget(Exception):
    """A request's target is malformed, so the request is invalid."""
