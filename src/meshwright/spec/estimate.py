"""What a plan costs: memory by part, time by part, traffic, throughput and an honest range."""

from __future__ import annotations

from dataclasses import dataclass, field

from meshwright.spec.cluster import Cluster
from meshwright.spec.model import Model
from meshwright.spec.plan import Plan
from meshwright.spec.software import Software
from meshwright.spec.workload import Training

MEMORY_PARTS = (
    "weights",
    "gradients",
    "optimizer",
    "activations",
    "logits",
    "kv_cache",
    "communication",
    "runtime",
)
TIME_PARTS = (
    "compute",
    "recompute",
    "tensor_parallel",
    "context_parallel",
    "expert_parallel",
    "pipeline_bubble",
    "pipeline_transfer",
    "data_parallel",
    "optimizer",
    "offload",
    "overhead",
)
COMMUNICATION_PARTS = (
    "tensor_parallel",
    "context_parallel",
    "expert_parallel",
    "pipeline_transfer",
    "data_parallel",
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A rule that the plan breaks, or memory that it lacks, with the smallest change that mends it."""

    rule: str
    message: str
    fix: str


@dataclass(frozen=True, slots=True)
class Traffic:
    """One kind of communication of the slowest rank, per step. `seconds` is work, `hidden_s` what of it runs beside the
    computation, `exposed_s` what the step waits for, the slow-down of that computation included."""

    axis: str
    collective: str
    level: str
    group_size: int
    payload_bytes_per_call: float
    calls_per_step: float
    wire_bytes_per_step: float
    seconds: float
    exposed_s: float
    hidden_s: float = 0.0


@dataclass(frozen=True, repr=False)
class Estimate:
    """One plan priced. Seconds, bytes and tokens per second; `time_s` parts are exposed and add up to `step_time_s`;
    `memory_bytes` parts are those of the worst rank at its peak instant and add up to `memory_total_bytes`."""

    model: Model
    cluster: Cluster
    software: Software
    workload: Training
    plan: Plan
    num_micro_batches: int
    memory_bytes: dict[str, float]
    capacity_bytes: float
    worst_rank: int
    worst_stage: int
    time_s: dict[str, float]
    pipeline_efficiency: float
    traffic: tuple[Traffic, ...] = ()
    problems: tuple[Problem, ...] = ()
    hidden_s: dict[str, float] = field(default_factory=dict)
    """Communication that ran beside the computation, by part."""
    range_factors: tuple[float, float] = (1.0, 1.0)
    """The step time's honest range, as factors on it."""

    def __repr__(self) -> str:
        plan = self.plan
        degrees = " ".join(f"{axis} {getattr(plan, axis)}" for axis in ("tp", "cp", "ep", "dp", "pp"))
        memory = f"{self.memory_total_bytes / 2**30:.1f} of {self.capacity_bytes / 2**30:.1f} GiB"
        return f"<Estimate {self.model.name} on {self.cluster.name}, {degrees}: {self.step_time_s:.4g} s, {memory}>"

    @property
    def estimate(self) -> Estimate:
        """Itself: an entry of a ranking has a plan and an estimate."""
        return self

    @property
    def valid(self) -> bool:
        return not any(problem.rule != "memory" for problem in self.problems)

    @property
    def memory_total_bytes(self) -> float:
        return sum(self.memory_bytes.values())

    @property
    def fits(self) -> bool:
        return self.memory_total_bytes <= self.capacity_bytes

    @property
    def step_time_s(self) -> float:
        return sum(self.time_s.values())

    @property
    def step_time_low_s(self) -> float:
        return self.step_time_s * self.range_factors[0]

    @property
    def step_time_high_s(self) -> float:
        return self.step_time_s * self.range_factors[1]

    @property
    def communication_share(self) -> float:
        return sum(self.time_s[part] for part in COMMUNICATION_PARTS) / self.step_time_s

    @property
    def tokens_per_s(self) -> float:
        return self.workload.tokens_per_step / self.step_time_s

    @property
    def tokens_per_s_per_gpu(self) -> float:
        return self.tokens_per_s / self.plan.world_size

    @property
    def model_flops_per_s_per_gpu(self) -> float:
        return self.model.flops_per_token(self.workload.seq_len) * self.tokens_per_s_per_gpu

    @property
    def mfu(self) -> float:
        """Model FLOP/s over the dense peak of the dtype the matmuls run in."""
        accelerator = self.cluster.accelerator
        return self.model_flops_per_s_per_gpu / accelerator.peak(accelerator.unit(self.workload.dtype))

    @property
    def binding(self) -> str:
        """The largest part of the step."""
        return max(self.time_s, key=lambda part: self.time_s[part])
