"""How fast the search is: Llama-3.1-405B on 2,048 DGX H100, as a cold process and warm.

Prints legal plans considered (time and memory computed), seconds, plans per second and peak memory. One process, one
core. `BENCH_QUICK=1` repeats less.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time

JOB = {"model": "llama-3.1-405b", "cluster": "2048xdgx-h100", "global_batch": 2048, "seq_len": 8192}
REPEATS = 3 if os.environ.get("BENCH_QUICK") else 7
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def cold() -> None:
    """The command as a person runs it, process start included."""
    command = [
        sys.executable, "-c", "from meshwright.cli import main; main()",
        "plan", str(JOB["model"]), "--cluster", str(JOB["cluster"]),
        "--global-batch", str(JOB["global_batch"]), "--seq-len", str(JOB["seq_len"]), "--json",
    ]  # fmt: skip
    seconds, considered = [], 0
    for _ in range(REPEATS):
        started = time.perf_counter()
        done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, **ONE_THREAD})
        seconds.append(time.perf_counter() - started)
        considered = json.loads(done.stdout)["considered"]
    peak_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"cold process: {considered:,} legal plans considered; {min(seconds):.2f} s best, "
        f"{statistics.median(seconds):.2f} s median of {REPEATS}; peak {peak_mib:.0f} MiB"
    )


def warm() -> None:
    """The search alone, again and again in one process."""
    from meshwright.choose.search import search
    from meshwright.sources.clusters import load_cluster
    from meshwright.sources.models import load_model
    from meshwright.sources.software import load_software
    from meshwright.spec.rules import Job
    from meshwright.spec.workload import Training

    cluster = load_cluster(str(JOB["cluster"]))
    workload = Training(int(JOB["global_batch"]), int(JOB["seq_len"]))
    job = Job(load_model(str(JOB["model"])), cluster, load_software(), workload)
    seconds, considered = [], 0
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        considered = search(job, cluster.accelerators, {}, "throughput", 10).considered
        seconds.append(time.perf_counter() - started)
    best, median = min(seconds[1:]), statistics.median(seconds[1:])
    print(
        f"warm search: {considered:,} legal plans; {best:.2f} s best, {median:.2f} s median of {REPEATS}; "
        f"{considered / best / 1e6:.2f} M plans/s best, {considered / median / 1e6:.2f} M plans/s median, one core"
    )


if __name__ == "__main__":
    os.environ.update(ONE_THREAD)
    cold()
    warm()
