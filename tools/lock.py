"""Pin ``requirements.txt`` anew from ``requirements.in``, for Python 3.11 to 3.13 on Linux, macOS and Windows.

Needs ``uv`` (``pip install uv``). The CUDA packages that the default build of torch asks for on Linux are left out:
the CPU build does without them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = """\
# The complete pinned set for building and testing the book, made from requirements.in by `make lock`.
# On Linux install torch first from the address that the README names, or let `make venv` do it: a CPU build.
"""


def compile_pins(*extra: str) -> str:
    """What uv resolves."""
    command = ["uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--no-header"]
    command += ["--annotation-style", "line", *extra, "requirements.in"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"uv could not resolve the requirements:\n{result.stderr}")
    return result.stdout


def main() -> None:
    """Resolve once to learn the names of the CUDA packages, and again without them."""
    cuda = re.findall(r"^((?:nvidia|cuda)[\w-]*|triton)==", compile_pins(), flags=re.M)
    pins = compile_pins(*(f"--no-emit-package={name}" for name in cuda))
    comments = re.compile(r"^# The following packages were excluded.*?(?=^\w|\Z)", flags=re.M | re.S)
    (ROOT / "requirements.txt").write_text(HEAD + comments.sub("", pins), "utf8")


if __name__ == "__main__":
    main()
