"""Jobs on a Ray cluster (extra `ray`): each is a Ray task that looks after one worker process.

The process is the one that `Local` would start, so the results are the same bits. Ray decides where it runs, by the
cores and graphics cards that it needs; when a worker or a node dies, the task is begun again elsewhere, and the job
goes on from its last checkpoint. Every node must see the run directory and the data at the same path, and have bayspike
installed. Words from the jobs and the wish to stop go through a mailbox, an actor on the node of whoever called.
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from bayspike.errors import UserError
from bayspike.runs.workers import Errand, Inbox, Worker, WorkerProcess

ATTEMPTS = 5  # how often a job is begun again before its death is told
LOOK_SECONDS = 0.3  # between two looks into the mailbox
CONNECT_SECONDS = 10.0
PASSED_ON = ("PYTHONPATH", "BAYSPIKE_DATA")  # settings of whoever called that a job must see

Words = list[tuple[str, dict[str, Any]]]


class Died(Exception):
    """The process of a job was killed."""


class Mailbox:
    """What jobs have to say, until it is fetched; and whether they are to stop."""

    def __init__(self) -> None:
        self._words: Words = []
        self._stopping: set[str] = set()

    def put(self, job: str, words: list[dict[str, Any]]) -> bool:
        """Leave words; answers whether the job is to stop."""
        self._words += [(job, each) for each in words]
        return job in self._stopping

    def fetch(self) -> Words:
        words, self._words = self._words, []
        return words

    def stop(self, job: str) -> None:
        self._stopping.add(job)

    def begin(self, job: str) -> None:
        """Whatever was wished of an earlier attempt does not hold."""
        self._stopping.discard(job)


def look_after(errand: Errand, mailbox: Any, settings: dict[str, str], folder: str) -> int:
    """A Ray task: the process of one job, from its start to its exit code. If this dies, so does the process."""
    import ray

    os.environ.update(settings)
    with suppress(OSError):  # for code of one's own in the folder of whoever called
        os.chdir(folder)
    if ray.get(mailbox.put.remote(errand.job, [])):  # asked to stop before there was room for it
        return 130
    inbox: Inbox = Queue()
    worker = WorkerProcess(errand, inbox)
    words: list[dict[str, Any]] = []
    asked, told, ended = False, time.monotonic(), False
    while not ended:
        try:
            message = inbox.get(timeout=LOOK_SECONDS)[1]
            ended = message is None
            words += [message] if message else []
        except Empty:
            pass
        if ended or time.monotonic() - told >= LOOK_SECONDS:
            wished = ray.get(mailbox.put.remote(errand.job, words))
            words, told = [], time.monotonic()
            if wished and not asked and not ended:
                asked = True
                worker.ask_to_stop()
    code = worker.wait()
    if code < 0 and not asked:
        raise Died(f"killed by signal {-code}")
    return code


class RayWorker:
    """A task under way, seen from outside."""

    def __init__(self, job: str, task: Any, mailbox: Any) -> None:
        self.job, self.task, self.mailbox = job, task, mailbox

    def ask_to_stop(self) -> None:
        self.mailbox.stop.remote(self.job)

    def wait(self) -> int:
        import ray

        try:
            code: int = ray.get(self.task)
        except ray.exceptions.RayError:  # so many deaths that Ray has given up
            return -9
        return code

    def kill(self) -> None:
        import ray

        ray.cancel(self.task, force=True)
        with suppress(ray.exceptions.RayError):
            ray.get(self.task, timeout=30)


class OnRay:
    """An engine that hands jobs to a cluster one is connected to. See `cluster`."""

    def __init__(self, cpus: int, gpus: int) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._mailbox = ray.remote(Mailbox).options(num_cpus=0, scheduling_strategy=here).remote()
        needs = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": ATTEMPTS, "retry_exceptions": [Died]}
        self._look_after = ray.remote(**needs)(look_after)
        self._settings = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self._under_way: dict[str, Any] = {}
        self._inbox: Inbox | None = None
        self._listener: threading.Thread | None = None

    def start(self, errand: Errand, inbox: Inbox) -> Worker:
        import ray

        if self._inbox is not inbox:
            self.close()
            self._inbox = inbox
            self._listener = threading.Thread(target=self._listen, args=(inbox,), daemon=True)
            self._listener.start()
        ray.get(self._mailbox.begin.remote(errand.job))
        whole = errand._replace(directory=Path(errand.directory).resolve())
        task = self._look_after.options(name=errand.job).remote(whole, self._mailbox, self._settings, os.getcwd())
        self._under_way[errand.job] = task
        return RayWorker(errand.job, task, self._mailbox)

    def _listen(self, inbox: Inbox) -> None:
        """Bring what the mailbox holds to the inbox, and the end of every task after its last word."""
        import ray

        with suppress(ray.exceptions.RayError):  # the cluster is gone: so are the tasks, as their waiters will find
            while self._inbox is inbox:
                tasks = dict(self._under_way)
                ended = set(ray.wait(list(tasks.values()), num_returns=len(tasks), timeout=0)[0]) if tasks else set()
                for job, message in ray.get(self._mailbox.fetch.remote()):
                    inbox.put((job, message))
                for job, task in tasks.items():
                    if task in ended:
                        del self._under_way[job]
                        inbox.put((job, None))
                time.sleep(LOOK_SECONDS)
            return
        for job in self._under_way:
            inbox.put((job, None))

    def close(self) -> None:
        """Listen no more. Ray must not be left while a thread still asks it something."""
        self._inbox = None
        if self._listener is not None:
            self._listener.join()


@contextmanager
def cluster(address: str | None, cpus: int, gpus: int) -> Iterator[OnRay]:
    """Connected to a Ray cluster by its address, or to one of this machine that is started for the purpose."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing about a run leaves the machine
    try:
        import ray
    except ImportError as error:
        raise UserError("--engine ray needs Ray: pip install 'bayspike[ray]'.") from error
    ours = not ray.is_initialized()
    if ours:
        _connect(address)
    engine = None
    try:
        most = max((node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]), default=0)
        if most < cpus:
            raise UserError(f"A job needs {cpus} cores, but no node of the cluster has more than {most:g}.")
        engine = OnRay(cpus, gpus)
        yield engine
    finally:
        if engine is not None:
            engine.close()
        if ours:
            ray.shutdown()


def _connect(address: str | None) -> None:
    import ray

    if address:
        _require_answer(address)
    before = signal.getsignal(signal.SIGTERM)
    try:
        options = {"address": address} if address else {"include_dashboard": False}
        ray.init(log_to_driver=False, logging_level="ERROR", **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = f"at {address}" if address else "on this machine"
        said = " ".join(str(error).split())[:200]
        raise UserError(f"There is no Ray cluster {where} to work with ({said}): check --address.") from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)  # Ray would end the process at once, we stop at a safe point


def _require_answer(address: str) -> None:
    """Ray itself would try for many minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdecimal():  # such as `auto`
        return
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise UserError(f"There is no Ray cluster at {address} ({error}): check --address.") from error
