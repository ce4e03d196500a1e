"""The container as it is composed: every provider builds, and no slice takes another's place."""

from collections import Counter
from pathlib import Path

import pytest
from dependency_injector import providers

from infrastructure.container import Container
from infrastructure.settings import load_settings

ACTS = {"upgrade_schema"}
"""Providers that do something when they are called, instead of building."""


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Container:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DRAGOMAN_SECRET_KEY", "a key that is given, so that none is written")
    return Container(settings=load_settings())


async def test_every_provider_builds_and_touches_no_file(container: Container) -> None:
    built = {name: provider() for name, provider in container.providers.items() if name not in ACTS}
    assert built.keys() | ACTS == Container.providers.keys()
    assert not container.home().path.exists()


def test_no_two_slices_define_a_provider_of_one_name() -> None:
    named = Counter(name for slice_ in Container.__bases__ for name in vars(slice_)["cls_providers"])
    assert {name for name, times in named.items() if times > 1} == set()
    assert named.keys() == Container.providers.keys()


def test_two_containers_share_nothing_and_the_slices_of_one_do(container: Container) -> None:
    other = Container(settings=container.settings())
    of_one, of_other = (set(map(id, each.traverse([providers.Provider]))) for each in (container, other))
    assert len(of_one) > len(Container.providers)
    assert not of_one & of_other
    assert id(container.run_queue) in set(map(id, container.recover_runs.traverse([providers.Provider])))
