"""Seconds of a recurrent mixer's kernel: the state's updates and reads, matrices and convolutions aside."""

from __future__ import annotations

import numpy as np

from meshwright.cost.compute import Device
from meshwright.program.traffic import local_tokens
from meshwright.spec.mixers import Mixer
from meshwright.spec.plan import Array, PlanTable
from meshwright.spec.software import Software
from meshwright.spec.workload import Training

BACKWARD_FLOPS = 3.0
"""Backward FLOPs over forward ones: the states are computed again (Gu & Dao 2023, section 3.3.2), then the gradients of
both factors of every product."""
BACKWARD_TRAFFIC = 2.0
"""Backward reads every input and its gradient's source again and writes as many gradients."""


def mixer_core_s(
    device: Device, software: Software, mixer: Mixer, workload: Training, plans: PlanTable
) -> tuple[Array, Array]:
    """(forward, backward) seconds for one micro-batch: the longer of the kernel's FLOPs and of its memory traffic.

    Chunked kernels are products in 16 bits and reach the share of the peak that the fused attention kernel does, or, in
    software without one, that large matmuls do; nobody has measured them per profile. Scans run in 32 bits on the
    vector units.
    """
    tokens = local_tokens(workload, plans)
    rate = device.vector_flops_per_s
    if mixer.on_matrix_units:
        rate = device.half_flops_per_s
        if software.attention.fused:
            rate = device.half_peak_flops_per_s * software.attention.share(device.family)
    share = tokens * np.ceil(mixer.heads / plans.tp) / mixer.heads
    arithmetic = share * mixer.core_flops / rate
    traffic = share * mixer.core_elements * device.element_bytes / device.bytes_per_s
    forward = np.maximum(arithmetic, traffic)
    backward = np.maximum(BACKWARD_FLOPS * arithmetic, BACKWARD_TRAFFIC * traffic)
    return np.asarray(forward), np.asarray(backward)
