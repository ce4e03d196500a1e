"""The scene of these tests."""

import pytest
from pytest_mock import MockerFixture

from tests.unit.application.gateway.authorization.scene import Scene


@pytest.fixture
def scene(mocker: MockerFixture) -> Scene:
    return Scene(mocker)
