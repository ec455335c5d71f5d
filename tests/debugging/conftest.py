"""What the tests of shaders' messages share."""

import pytest


@pytest.fixture
def debugged(request, make_manager):
    """A Manager with the words of the module's DEBUG."""
    mgr = make_manager(debug=request.module.DEBUG)
    return mgr


@pytest.fixture
def messages(debugged):
    got = []
    debugged.on_message(got.append)
    return got
