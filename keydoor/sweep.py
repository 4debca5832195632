"""Many seeds and settings, on one core or on many machines, with nothing lost.

One run says nothing of a method: it is one draw from a wide distribution. :func:`sweep` trains every seed with every
setting and writes each finished run at once, as a line of its own, to a results file. A sweep that was stopped, by an
interrupt, a full disk or a crash, goes on where it was when it is called again. :mod:`keydoor.summaries` says what may
be concluded from the rows.

**What is promised.** A line of the file is whole or not there. A run is in it once. Rows do not depend on the engine,
on how the runs were spread over workers, or on interruptions: they differ in ``seconds`` alone. (On a cluster of
different processors they may differ by rounding, as training itself does.) A file is refused if its runs come from
another version of the code, or were made with other settings under the same name.

**Engines.** ``stacked`` trains the seeds of a block together in this process. ``joblib`` spreads blocks over processes
of this machine, ``ray`` over a cluster: a local one that lives as long as the sweep, or the one at ``address``, on
whose nodes the same version of this package has to be installed. Where a worker or a machine dies, Ray computes its
block elsewhere. In a process that is connected to a Ray already, that one is used.

The notes of a sweep, such as that a torn line was cut off, go to the logger ``keydoor.sweep`` at the level INFO.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from keydoor._checks import one_of, refuse, sequence, whole
from keydoor._engines import ENGINES, get_engine, need
from keydoor._models import load_model, save_model, write_whole
from keydoor._results import SweepError, code_version, file_path, open_results, read_results
from keydoor._settings import full_settings
from keydoor.training import _progress

__all__ = [
    "ENGINES",
    "SweepError",
    "code_version",
    "full_settings",
    "load_model",
    "read_results",
    "save_model",
    "sweep",
]


def sweep(
    seeds: Iterable[int],
    settings: Mapping[str, Mapping[str, Any]],
    *,
    results: str | os.PathLike[str],
    engine: str = "stacked",
    block: int | None = None,
    workers: int | None = None,
    address: str | None = None,
    models: str | os.PathLike[str] | None = None,
) -> list[dict[str, Any]]:
    """Train every seed with every setting; what the results file holds already is not trained again.

    Args:
        seeds: seeds of the runs, integers in :math:`[0, 2^{63})`, none twice.
        settings: named settings, see :func:`full_settings`.
        results: the results file, JSON Lines; made if there is none, else continued. Beside it stands a file with
            ``.lock`` after its name, by which a second sweep on the same file is refused.
        engine: ``"stacked"``, ``"joblib"`` or ``"ray"``, see :mod:`keydoor.sweep`.
        block: how many seeds are trained together, at least 1; ``None``: at most 8, and so few that all workers have
            something to do. A block is finished, and written, as a whole.
        workers: processes of joblib or cores of a local Ray, at least 1; ``None``: one for each core. A Ray at an
            address uses all that it has.
        address: of a running Ray, ``"auto"``, ``host:port`` or ``ray://host:port``; ``None``: a local one.
        models: a folder, made if there is none, that gets the network of each run as ``SETTING-seedN.pt``, to be read
            by :func:`load_model`. A run whose file is missing there is trained again. ``None``: none is kept.

    Returns:
        A row for each run, setting by setting in the order of the seeds, as it stands in the file. It holds
        ``setting`` and ``seed``; ``success``, the exact success probability of greedy play after the training;
        ``seconds``, the time of its training (of a block, in equal shares); ``code``, see :func:`code_version`;
        ``settings`` in full; and ``curve``, as :func:`keydoor.training.train_actor_critic` returns it.

    Raises:
        ValueError: an argument is outside of its range, or the file holds something else, runs of another version of
            the code, or runs with other settings under the same name. Nothing has been trained then.
        ImportError: the engine is not installed; the message says which extra brings it.
        ConnectionError: no Ray answers at the address.
        SweepError: another sweep uses the file; an engine has failed; or a training has diverged, which is told after
            the other runs.
        OSError: a run could not be written, for want of space for one. No part of its line is left in the file.

    Example:
        >>> import os, tempfile
        >>> tiny = {"updates": 1, "episodes_per_update": 2, "evaluation_episodes": 2}
        >>> both = {mode: {"reward_mode": mode, **tiny} for mode in ("sparse", "potential")}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = os.path.join(folder, "results.jsonl")
        ...     rows = sweep([1], both, results=file)
        ...     more = sweep([1, 2], both, results=file)  # trains with seed 2 alone
        >>> [(row["setting"], row["seed"]) for row in more]
        [('sparse', 1), ('sparse', 2), ('potential', 1), ('potential', 2)]
        >>> more[0] == rows[0]
        True
    """
    known = _seeds(seeds)
    plain = full_settings(settings)
    path = file_path(results, "results")
    if not path.absolute().parent.is_dir():
        refuse("results", str(path), "the name of a file in a folder that there is")
    one_of(engine, "engine", ENGINES)
    block = None if block is None else whole(block, "block", least=1)
    workers = None if workers is None else whole(workers, "workers", least=1)
    folder = None if models is None else file_path(models, "models")
    compute = get_engine(engine, address)
    need("filelock", "a sweep", "sweep")
    code = code_version()
    faults = []
    with open_results(path) as file:
        file.check(plain, code)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        todo = [
            (name, plain[name], seed)
            for name in plain
            for seed in known
            if (name, seed) not in file.rows or (folder is not None and not _model(folder, name, seed).is_file())
        ]
        if todo:
            finished = compute(todo, code, folder is not None, block, workers, address)
            with _progress(len(todo), "sweep") as advance, closing(finished):
                for runs in finished:
                    for run in runs:
                        if run.fault is not None:
                            faults.append(f"{run.setting!r}, seed {run.seed}: {run.fault}")
                        if run.model is not None and folder is not None:  # first, so that no row is without its file
                            write_whole(_model(folder, run.setting, run.seed), run.model)
                        if run.row is not None and (run.setting, run.seed) not in file.rows:
                            file.append(run.row)
                        advance()
    if faults:
        raise SweepError(f"{len(faults)} of {len(todo)} runs have failed, and the others are kept: {'; '.join(faults)}")
    return [file.rows[name, seed] for name in plain for seed in known]


def _seeds(seeds: Any) -> list[int]:
    known = [whole(seed, f"seeds[{i}]", least=0, bits=63) for i, seed in enumerate(sequence(seeds, "seeds"))]
    if not known:
        refuse("seeds", [], "at least one seed")
    first: dict[int, int] = {}
    for i, seed in enumerate(known):
        if first.setdefault(seed, i) != i:
            refuse(f"seeds[{i}]", seed, f"another seed than seeds[{first[seed]}]")
    return known


def _model(folder: Path, name: str, seed: int) -> Path:
    return folder / f"{name}-seed{seed}.pt"
