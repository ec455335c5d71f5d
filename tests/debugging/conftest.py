"""What the tests of shaders' messages share."""

import pytest


@pytest.fixture
def messages(debugged):
    got = []
    debugged.on_message(got.append)
    return got
