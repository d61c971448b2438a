"""What a row measured, as seconds of a step: which of its columns counts, and by which convention FLOP/s are meant."""

from __future__ import annotations

import re
from typing import NamedTuple

from meshwright.measure.cells import number, words
from meshwright.measure.comparison import Row
from meshwright.spec.cluster import Cluster
from meshwright.spec.model import Model
from meshwright.spec.workload import Training


class Measured(NamedTuple):
    """Seconds of a step and where they come from."""

    step_time_s: float
    how: str


def step_time(row: Row, model: Model, cluster: Cluster, workload: Training, accelerators: int) -> Measured | None:
    """The measured step: step_time_s, else from tokens/s per GPU, samples/s, FLOP/s, MFU or a derived step time; None
    where the row states none of them (a run that was out of memory)."""
    cells = row.cells
    seconds = number(cells, "step_time_s")
    if seconds is not None:
        return Measured(seconds, "step_time_s")
    tokens = number(cells, "tokens_per_s_per_gpu")
    if tokens is not None:
        return Measured(workload.tokens_per_step / (tokens * accelerators), "tokens_per_s_per_gpu")
    samples = number(cells, "samples_per_s")
    if samples is not None:
        return Measured(workload.global_batch / samples, "samples_per_s")
    tflops = number(cells, "tflops_per_gpu")
    if tflops is not None:
        flops, convention = step_flops(words(cells, "tflops_def"), words(cells, "recompute"), model, workload)
        return Measured(flops / (tflops * 1e12 * accelerators), f"tflops_per_gpu, {convention}")
    derived = number(cells, "derived_step_time_s")
    if derived is not None:
        return Measured(derived, "derived_step_time_s")
    mfu = number(cells, "mfu_pct")
    if mfu is not None:
        flops, convention = step_flops("model", "", model, workload)
        peak = cluster.accelerator.peak(cluster.accelerator.unit(workload.dtype))
        return Measured(flops / (mfu / 100 * peak * accelerators), f"mfu_pct, {convention}")
    return None


def step_flops(definition: str, recompute: str, model: Model, workload: Training) -> tuple[float, str]:
    """(FLOPs of a step by the convention that `definition` words, the convention's name).

    - approximate hardware: 8 N per token with the forward run twice, 6 N without;
    - hardware: model FLOPs with full attention, those of the layers times 4/3 where everything is recomputed; the head
      is not run again. Of a GPT that is 96 B s l h² (1 + s/6h + V/16lh) (Narayanan et al. 2021, equation 3);
    - model (the default): 6 N per token of the matrices, head included, and attention over all pairs, as in PaLM
      (Chowdhery et al. 2022, appendix B); causal: over half of them. Where the words say that N includes the
      embeddings, it is all parameters.
    """
    again = 1.0 if recompute.startswith(("none", "selective")) else 4 / 3
    if "approx" in definition or "8*n" in definition or "8n" in definition:
        per_token = 6.0 * model.num_parameters
        name, factor = ("6 N", 1.0) if "6n" in definition else ("8 N", 4 / 3)
        return factor * per_token * workload.tokens_per_step, f"approximate FLOPs, {name}"
    causal = "causal" in definition and "non-causal" not in definition
    flops = model.flops_per_token(workload.seq_len, causal=causal) * workload.tokens_per_step
    if "hardware" in definition:
        head = 6.0 * model.hidden * model.vocab * workload.tokens_per_step if model.vocabulary_head else 0.0
        return again * (flops - head) + head, "hardware FLOPs, full attention"
    if re.search(r"includ\w* (the )?embed", definition):
        flops += 6.0 * (model.active_parameters - model.matmul_parameters) * workload.tokens_per_step
        return flops, "model FLOPs of all parameters, full attention"
    return flops, "model FLOPs, causal attention" if causal else "model FLOPs, full attention"
