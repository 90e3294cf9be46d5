import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # so that the tests here can import `writers`


@pytest.fixture
def real_data() -> Path:
    """The folder of real data, or a skip where there is none."""
    folder = os.environ.get("BAYSPIKE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("BAYSPIKE_DATA names no folder of real data")
    return Path(folder)
