"""What runs the plan: the habits of a training framework that change its time and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from meshwright.spec.attention_kernel import UNFUSED, AttentionKernel
from meshwright.spec.workload import OPTIMIZERS, Training


class GradientHabits(NamedTuple):
    """What becomes of gradients, where it differs by number format. Fields as in `Software`."""

    gradient_bytes: float
    gradient_reduce_bytes: float
    shard_gradient_bytes: float
    gradients_all_reduced: bool = False


@dataclass(frozen=True)
class Software:
    """A software profile. Every number is a catalog entry with its source; none is a constant in code."""

    name: str
    title: str = ""
    year: int = 0
    frameworks: tuple[str, ...] = ()
    """Words by which a table of measurements names the framework."""
    fitted: str = ""
    """What the profile's fitted numbers rest on; written by the calibration."""
    # -- kernels
    attention: AttentionKernel = UNFUSED
    eager_elementwise_factor: float = 0.0
    """`elementwise_factor` of a run without torch.compile, where the profile is of a compiled one; 0: that is no switch
    of the framework."""
    elementwise_factor: float = 1.0
    """Memory traffic of norms, activations, rotary and residuals over the least a fused implementation needs."""
    elementwise_backward_ratio: float = 1.0
    misaligned_64_factor: float = 1.0
    """Time factor of a matmul with a sharded dimension that is not a multiple of 64."""
    misaligned_8_factor: float = 1.0
    """The same where it isn't a multiple of 8."""
    matmul_rows_overhead: float = 0.0
    """A matmul of m rows takes as long as one of m + this many at the full rate."""
    matmul_depth_overhead: float = 0.0
    """The same for the summed dimension."""
    fp8_cast_bytes_per_element: float = 4.0
    """Memory traffic to cast one 16-bit element for matmuls: 2 read, 1 written and 1 written transposed (delayed
    scaling; scaling by the present maximum reads once more)."""
    matmul_factor: float = 1.0
    # -- host
    launch_s_per_layer: float = 0.0
    """Host time to launch the kernels of one layer's forward; the layer can't be faster than that."""
    launch_backward_ratio: float = 1.0
    step_overhead_s: float = 4.4e-3
    # -- communication habits
    tensor_overlap: float = 0.0
    """Share of tensor-parallel collectives hidden behind the matmuls around them."""
    tensor_collective_factor: float = 1.0
    """Slow-down of collectives on the critical path against the same collective in a benchmark loop."""
    data_overlap: bool = True
    """Gradient reduction and parameter gathers run beside the computation."""
    data_exposed_floor: float = 0.28
    """Share of data-parallel communication that stays exposed even where the computation could hide all of it."""
    overlap_contention: float = 0.0
    """Slow-down of the computation by communication running beside it, as a share of the hidden time."""
    expert_overlap: float = 0.0
    expert_imbalance: float = 1.1
    """Tokens of the busiest expert-parallel rank over the mean."""
    expert_dispatch_bytes: float = 2.0
    """Bytes per element of tokens sent to experts."""
    context_attention_factor: float = 1.18
    """Slow-down of the attention kernel when it runs in ring-attention chunks."""
    context_parallel: Literal["ring", "gather"] = "ring"
    scattered_pipeline_transfers: bool = False
    """Without sequence parallelism each tensor rank sends 1/tp of the activations, gathered again on arrival."""
    transfer_overlap: bool = True
    """Pipeline sends and receives run beside the computation."""
    gathers_per_micro_batch: bool = True
    """Sharded parameters are gathered again for every micro-batch; otherwise once a step."""
    reshard_after_forward: bool = True
    """Sharded parameters are dropped after forward and gathered again for backward."""
    stages_stay_gathered: bool = False
    """Under pipeline parallelism, fully sharded parameters stay gathered and their gradients whole from the first
    micro-batch to the last (torch pipelining over FSDP2)."""
    reduces_per_micro_batch: bool = True
    """Sharded gradients are reduce-scattered after every micro-batch; otherwise once a step."""
    shards_whole_tensors: bool = False
    """A sharded optimizer state belongs to one rank a whole tensor, so that each gradient is reduced to its owner and
    each weight broadcast from it; otherwise flat buffers are scattered and gathered."""
    gradients_all_reduced: bool = False
    """With a sharded optimizer (ZeRO-1) every rank sums all gradients and keeps its shard of them; otherwise they are
    scattered."""
    gradient_reduce_bytes: float = 4.0
    """Bytes per gradient element on the wire."""
    parameter_gather_bytes: float = 2.0
    accumulation_bytes_per_parameter: float = 8.0
    """Memory traffic per parameter and micro-batch to add gradients into their accumulator; 0 where the weight-gradient
    matmul adds in place."""
    optimizer_traffic_factor: float = 1.0
    host_update_bytes_per_s: float = 2.5e10
    """Host-memory traffic of an offloaded optimizer step, per accelerator."""
    host_link_efficiency: float = 0.4
    """Share of the host link that pinned copies reach: two accelerators and a network adapter share a root port on most
    servers."""
    host_memory_share: float = 0.8
    """Share of host memory that offloaded tensors may fill."""
    # -- memory habits
    gradient_bytes: float = 4.0
    """Bytes per gradient element as accumulated."""
    shard_gradient_bytes: float = 0.0
    """Further bytes per gradient element whose states the rank holds: a flat fp32 copy of the shard's gradients, which
    the allocator doesn't lend to activations between steps."""
    optimizer_step_bytes: float = 0.0
    """Further bytes per parameter whose states the rank holds, while its optimizer steps, when activations are gone:
    flat copies of the shard's gradients and temporaries of the update."""
    by_dtype: tuple[tuple[str, GradientHabits], ...] = ()
    """Gradient habits of single number formats; the fields above hold for the others."""
    bucket_bytes: float = 0.0
    """The most that flat buffers for reducing gradients and gathering weights take; never more than
    `BUCKET_BYTES_PER_PARAMETER` of each parameter on the rank."""
    separate_master: bool = True
    """16-bit weights beside the fp32 master copy (Megatron, ZeRO). False: the fp32 copy is the weight and 16-bit shards
    exist only while gathered (FSDP2)."""
    master_remainders: bool = False
    """Beside bf16 weights only the 16 bits are kept that make an fp32 master of them (apex, precision-aware
    optimizers)."""
    selective: Literal["attention", "elementwise", "alternate"] = "elementwise"
    """What `recompute: selective` runs again: the attention core, everything that isn't a matmul, or that and every
    second matmul (torchtitan)."""
    checkpoint_stops_early: bool = False
    """Full recompute ends with the last tensor that backward needs, so that a layer's last matmul isn't run again
    (torch.utils.checkpoint without re-entry, from 2.1 on)."""
    fused_gated_activation: bool = True
    column_inputs: Literal["sharded", "gathered", "copied"] = "sharded"
    """What matrices that tensor parallelism splits by columns keep of their input. Of each block's: the
    sequence-parallel shard, gathered again in backward (Megatron), or the gathered input (DTensor); or a gathered copy
    for every matrix: queries, keys, values, gate and up (PaddlePaddle's c_identity)."""
    logit_saved_bytes: float = 4.0
    """Bytes per logit kept from the loss's forward to its backward."""
    logit_peak_bytes: float = 6.0
    """Further bytes per logit at the instant of the loss."""
    runtime_bytes: float = 2.0e9
    """Driver context, communicator and library workspaces."""
    fragmentation: float = 0.03
    """Share of the allocated tensors that the allocator can't use."""
    vocab_multiple: int = 1
    """The vocabulary is padded to a multiple of this × tp."""
    schedules: tuple[str, ...] = ()
    """Schedules the framework has; empty: all."""
    sequence_parallel: bool = True
    """Whether the framework has sequence parallelism beside tensor parallelism."""
    micro_batches_per_stage: int = 0
    """Micro-batches per pipeline stage that the framework runs unless it is told; 0: it must be told."""
    interleaved_stages: int = 0
    """Virtual stages of its interleaved schedule unless it is told; 0: it must be told."""
    usual_sharding: str = ""
    """What the framework shards over data-parallel ranks unless it is told; empty: it must be told."""
    pipeline_sharding: str = "parameters"
    """The furthest that data-parallel states can be sharded together with pipeline parallelism."""
    source: str = ""
    notes: tuple[str, ...] = ()

    def gradient_habits(self, dtype: str) -> GradientHabits:
        """The habits in a number format."""
        own = GradientHabits(*(getattr(self, name) for name in GradientHabits._fields))
        return dict(self.by_dtype).get(dtype, own)


BUCKET_BYTES_PER_PARAMETER = 4.0
"""A bucket's 16-bit elements and the flattened copy that is reduced (DeepSpeed, `allreduce_bucket`)."""


class StateBytes(NamedTuple):
    """Bytes per parameter: what a rank keeps of it, and what a gathered copy and its gradient on the wire take.

    `owned_gradient` is a further copy of the gradients whose states the rank holds; `step` is what the optimizer needs
    beside all that while it steps."""

    weight: float
    gradient: float
    owned_gradient: float
    step: float
    master: float
    moment: float
    gather: float
    reduce: float

    @property
    def kept(self) -> float:
        """Weight, gradients and optimizer states together."""
        return self.weight + self.gradient + self.owned_gradient + self.master + self.moment


def state_bytes(software: Software, workload: Training) -> StateBytes:
    """Bytes per parameter of the model states in the workload's format.

    In fp32 no weight or gradient takes less than 4 bytes, whatever the profile does with 16-bit numbers, the weight is
    its own master and no further copy of a gradient exists. Otherwise a master copy lies beside the 16-bit weight, or
    is the weight (`separate_master: false`) unless the optimizer has none.
    """
    state = OPTIMIZERS[workload.optimizer]
    habits = software.gradient_habits(workload.dtype)
    if workload.dtype == "fp32":
        return StateBytes(
            weight=workload.weight_bytes,
            gradient=max(4.0, habits.gradient_bytes),
            owned_gradient=0,
            step=software.optimizer_step_bytes,
            master=0,
            moment=state.moment_bytes,
            gather=workload.weight_bytes,
            reduce=max(4.0, habits.gradient_reduce_bytes),
        )
    separate = software.separate_master or not state.master_bytes
    master = state.master_bytes
    if software.master_remainders and master and workload.dtype != "fp16":
        master -= workload.weight_bytes
    return StateBytes(
        weight=workload.weight_bytes if separate else state.master_bytes,
        gradient=habits.gradient_bytes,
        owned_gradient=habits.shard_gradient_bytes,
        step=software.optimizer_step_bytes,
        master=master if separate else 0,
        moment=state.moment_bytes,
        gather=software.parameter_gather_bytes,
        reduce=habits.gradient_reduce_bytes,
    )
