"""What every recurrent token mixer says about itself; nothing downstream knows one by its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from meshwright.spec.linear import Linear


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixer:
    """A mixer whose work grows with the sequence, not with its square: each token updates a state and reads it.

    `heads` is the number of pieces that tensor parallelism leaves whole (channels, where nothing larger belongs
    together). `groups` is the number of pieces of what several heads share, such as keys (0: every head has its own);
    with more ranks than groups, several ranks hold a copy of one. `conv` is the width of the causal convolution before
    the state (0: there is none), `conv_bias` says that it has biases.

    The properties are per token and summed over all heads; tensor parallelism divides them by its degree. "Elements"
    are numbers in the activations' format.
    """

    heads: int
    groups: int = 0
    conv: int = 0
    conv_bias: bool = False

    @property
    def title(self) -> str:
        """What the field calls it."""
        raise NotImplementedError

    def linears(self, hidden: int) -> tuple[Linear, ...]:
        """Its matrices, from and to a residual stream of width `hidden`."""
        raise NotImplementedError

    @property
    def split_parameters(self) -> int:
        """Parameters beside the matrices that go with the heads: convolutions, decays, their biases."""
        raise NotImplementedError

    @property
    def whole_parameters(self) -> int:
        """Parameters beside the matrices that every tensor-parallel rank holds."""
        return 0

    @property
    def state_elements(self) -> int:
        """What one sequence carries from token to token, the convolution's last inputs included."""
        raise NotImplementedError

    @property
    def recurrent_flops(self) -> float:
        """Forward FLOPs of the recurrence taken one token at a time: what model FLOPs count."""
        raise NotImplementedError

    @property
    def core_flops(self) -> float:
        """Forward FLOPs of the kernel that runs it in training, matrices and convolutions aside."""
        return self.recurrent_flops

    @property
    def on_matrix_units(self) -> bool:
        """Whether that kernel is made of matrix products; otherwise it runs on the vector units."""
        return False

    @property
    def core_elements(self) -> float:
        """What that kernel reads and writes in memory."""
        raise NotImplementedError

    @property
    def kept_elements(self) -> float:
        """Activations that its matrices and its kernel keep for backward, beside the layer's input."""
        raise NotImplementedError

    @property
    def kept_whole_elements(self) -> float:
        """The same, of what every tensor-parallel rank keeps whole."""
        return 0.0

    @property
    def kernel_kept_elements(self) -> float:
        """What the kernel keeps for itself; running it again brings it back."""
        return 0.0

    @property
    def pointwise_elements(self) -> float:
        """Outputs of convolutions, gates and norms, which running those again brings back."""
        return 0.0

    @property
    def pointwise_traffic(self) -> float:
        """Elements that convolutions, gates and norms read and write in a forward pass."""
        return 0.0

    def summed_elements(self, tp: Any) -> Any:
        """Elements per token that tensor-parallel ranks sum inside the mixer, before its last matrix does."""
        return 0.0 * tp
