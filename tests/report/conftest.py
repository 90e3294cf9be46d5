"""Run directories are made once; the tests only read them."""

from pathlib import Path

import pytest
from synthetic import make_run, make_two_moons

from bayspike.report import write_report


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "plain", foreign=True)


@pytest.fixture(scope="session")
def simulated_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "made-up", foreign=True, simulated=True, seeds=1)


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "hostile", foreign=True, hostile=True, seeds=1)


@pytest.fixture(scope="session")
def two_moons(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_two_moons(tmp_path_factory.mktemp("runs") / "moons")


@pytest.fixture(scope="session")
def report(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([run], tmp_path_factory.mktemp("out") / "report.html")
