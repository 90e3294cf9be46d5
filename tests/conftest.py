import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # so that tests in sub-folders can import `srm_reference`

# The same examples in every run; time limits per example say little on a busy machine.
settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")


@pytest.fixture(autouse=True)
def denormals_as_usual() -> Iterator[None]:
    """Flushing denormals is a switch of the whole thread: what one test sets must not reach the next."""
    yield
    torch.set_flush_denormal(False)


@pytest.fixture
def torchmetrics() -> ModuleType:
    """Its measures of classification. It imports torchvision, if installed, whose build may not fit torch's."""
    try:
        from torchmetrics.functional import classification
    except RuntimeError as error:
        pytest.skip(f"torchmetrics cannot be imported, as torchvision does not fit torch: {error}")
    return classification
