"""A Python that a test starts while lines are noted notes its own."""

import os

if {"MUTATION_NOTES", "PYTEST_CURRENT_TEST"} <= {*os.environ}:
    from tests.mutation.noting import start

    start()
