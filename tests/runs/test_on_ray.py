"""Jobs on a Ray cluster of two nodes on this machine, one of them killed in the middle: the same bits as locally."""

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from compared import begin, content, differing
from rich.console import Console

from bayspike.errors import UserError
from bayspike.experiments.registry import WORKER, experiment
from bayspike.runs.engine import open_bench, run_jobs
from bayspike.runs.jobs import Interrupted, Stop, Workbench
from bayspike.runs.outcome.summary import read_results, summarise
from bayspike.runs.plan.config import config_from_json
from bayspike.runs.plan.resolve import Changes, resolve
from bayspike.runs.reporting import Moment, Quiet
from bayspike.storage.files import read_json, write_json

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'bayspike[ray]'")

from ray.cluster_utils import Cluster  # noqa: E402

from bayspike.runs.on_ray import Mailbox, cluster  # noqa: E402


def test_a_mailbox_gives_every_word_once_and_passes_on_the_wish_to_stop() -> None:
    box = Mailbox()
    assert not box.put("a", [{"say": "one"}])
    box.stop("a")
    assert box.put("a", [{"say": "two"}])
    assert not box.put("b", [])
    box.begin("a")
    assert not box.put("a", [])
    assert box.fetch() == [("a", {"say": "one"}), ("a", {"say": "two"})]
    assert box.fetch() == []


def test_no_cluster_at_the_address_is_one_sentence() -> None:
    with pytest.raises(UserError, match="no Ray cluster at nowhere:1"), cluster("nowhere:1", 1, 0):
        pass


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(each for each in sys.path if each))
    nodes = {"num_cpus": 1, "num_gpus": 0, "include_dashboard": False, "object_store_memory": 80 * 2**20}
    made = Cluster(initialize_head=True, head_node_args=nodes)
    made.second = made.add_node(**{key: value for key, value in nodes.items() if key != "include_dashboard"})
    made.wait_for_nodes()
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="module")
def bench() -> Workbench:
    changes = Changes(
        methods=["bayes", "ewc", "bayes-binary"],
        network={"hidden": (32,)},
        training={"batch": 4, "evaluations": 1, "fisher_examples": 5, "coreset_share": 0.2},
        data={"time": 20, "train_examples": 120, "test_examples": 20},
        judging={"members": 2, "interim_examples": 10, "stored_examples": 10},
        run={"threads": 1, "log_every": 2, "checkpoint_seconds": 0.0},
    )
    return open_bench(resolve(experiment("digits"), "demo", changes), experiment("digits"))


class Watching(Quiet):
    """Remembers how far every job has come, and does something once two of them are well under way."""

    def __init__(self, act: object = None) -> None:
        super().__init__(Console(quiet=True))
        self.seen: dict[str, list[int]] = {}
        self.act, self.acted = act, 0.0

    def batch(self, moment: Moment) -> None:
        self.seen.setdefault(moment.job, []).append(moment.done)
        if self.act is not None and sum(len(each) > 3 for each in self.seen.values()) >= 2 and not self.acted:
            self.acted = time.monotonic()
            self.act()  # type: ignore[operator]


def finished(run, bench: Workbench) -> dict[str, object]:
    config = config_from_json(read_json(run.config), "config")
    write_json(run.summary, summarise(bench.experiment, config, read_results(run, config)))
    return content(run, replace(bench, config=config))


@pytest.mark.slow
def test_a_node_killed_in_the_middle_costs_nothing(bench: Workbench, two_nodes: Cluster, tmp_path: Path) -> None:
    plain = begin(tmp_path / "plain", bench)
    run_jobs(plain, bench, Quiet(Console(quiet=True)), Stop())
    expected = finished(plain, bench)

    killed = begin(tmp_path / "killed", bench)
    told = Watching(lambda: two_nodes.remove_node(two_nodes.second, allow_graceful=False))
    with cluster(two_nodes.address, 1, 0) as engine:
        run_jobs(killed, bench, told, Stop(), 10, WORKER, engine)
    assert told.acted
    assert differing(finished(killed, bench), expected) == []

    stopped = begin(tmp_path / "stopped", bench)  # on the node that is left: Ctrl-C, then resumed
    stop = Stop()

    class Impatient(Watching):
        def batch(self, moment: Moment) -> None:
            stop.asked = True

    with cluster(two_nodes.address, 1, 0) as engine:
        with pytest.raises(Interrupted):
            run_jobs(stopped, bench, Impatient(), stop, 10, WORKER, engine)
        run_jobs(stopped, bench, Watching(), Stop(), 10, WORKER, engine)
    assert differing(finished(stopped, bench), expected) == []
