"""Install PyTorch: on Linux its CPU build, elsewhere (and where that cannot be reached) the default build.

On Linux the default build brings several gigabytes of CUDA libraries that this book never uses. The address of the
CPU builds comes from the README, through the Makefile.

Usage: ``python tools/install_torch.py VERSION [INDEX]``
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys


def installed() -> str:
    """The version of torch that is installed, without its build; empty if there is none."""
    try:
        return importlib.metadata.version("torch").split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return ""


def main(version: str, index: str) -> None:
    """Try the CPU build, without its dependencies, which requirements.txt pins; leave the rest to pip."""
    if not sys.platform.startswith("linux") or not index or installed() == version:
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--retries", "1", "--timeout", "20", "--index-url", index, f"torch=={version}"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        reason = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"  The CPU build of torch {version} could not be had from {index} ({reason}).")
        print("  Taking the default build instead: several gigabytes on Linux.")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
