"""Where and with what a run was made: versions, commit, machine, command line."""

import os
import platform
import subprocess
import sys
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import bayspike
from bayspike.runs.plan.config import RunConfig

PACKAGES = ("torch", "numpy", "scikit-learn", "safetensors", "matplotlib", "plotly", "mlxtend")


def describe_environment(config: RunConfig, command: list[str]) -> dict[str, Any]:
    return {
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": command,
        "seeds": list(config.seeds),
        "git": git_commit(),
        **describe_machine(),
        "threads": config.threads,
        "device": config.device,
    }


def describe_machine() -> dict[str, Any]:
    """Versions and the machine."""
    return {
        "bayspike": bayspike.__version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
        "cuda": torch.cuda.is_available(),
    }


def git_commit() -> str | None:
    """The commit of the package's own checkout, with a mark where it was changed; None for an installed package."""
    folder = Path(bayspike.__file__).resolve().parent
    try:
        asked = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    if sys.platform == "linux":
        try:
            lines = Path("/proc/cpuinfo").read_text().splitlines()
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        except (OSError, StopIteration):
            pass
    return platform.processor()
