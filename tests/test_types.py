"""The types of the package, read by mypy while other tests run; `make lint` shows the same before a commit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_types() -> None:
    command = [sys.executable, "-m", "mypy", "--no-error-summary"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
