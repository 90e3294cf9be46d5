"""TensorBoard event files, an extra: `pip install 'bayspike[tensorboard]'`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bayspike.errors import UserError


class EventWriter:
    """Writes nothing: the writer of runs without TensorBoard."""

    def batch(self, job: str, step: int, entry: Mapping[str, Any]) -> None:
        pass

    def evaluation(self, job: str, step: int, entry: Mapping[str, Any]) -> None:
        pass


class TensorBoardWriter(EventWriter):
    """Loss, accuracy, rates and replay share of batches, and the scores of evaluations."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def batch(self, job: str, step: int, entry: Mapping[str, Any]) -> None:
        for name in ("loss", "accuracy", "replay_share"):
            self._writer.add_scalar(f"{job}/batch/{name}", entry[name], step)
        for layer, rate in enumerate(entry["rates"]):
            self._writer.add_scalar(f"{job}/rate/layer{layer}", rate, step)

    def evaluation(self, job: str, step: int, entry: Mapping[str, Any]) -> None:
        for measure in ("accuracy", "ece", "nll", "brier"):
            self._writer.add_scalar(f"{job}/{entry['predictor']}/{measure}", entry["overall"][measure], step)


@contextmanager
def open_writer(folder: Path | None) -> Iterator[EventWriter]:
    """A writer into `folder`, or one that writes nothing."""
    if folder is None:
        yield EventWriter()
        return
    require_tensorboard()
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        yield TensorBoardWriter(writer)


def require_tensorboard() -> None:
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError as error:
        raise UserError(
            "--tensorboard needs the package tensorboard: install it with pip install 'bayspike[tensorboard]'."
        ) from error
