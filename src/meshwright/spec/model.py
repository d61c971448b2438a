"""A transformer as numbers: a stack of layers between an embedding and a head, and what they weigh."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from meshwright.spec.layers import Layer

NormKind = Literal["rms", "layer"]
PositionKind = Literal["rope", "learned", "alibi", "none"]


@dataclass(frozen=True)
class Model:
    """A stack of layers as numbers: a decoder, or an encoder whose attention sees both ways.

    `num_parameters` is exact: what the Hugging Face class of the same config holds, tied tensors once, prediction
    layers left out. `max_positions` is a hard limit only where positions are learned; it is 0 otherwise, and
    `context_length` says what the model was trained for.
    """

    name: str
    hidden: int
    vocab: int
    layers: tuple[Layer, ...]
    tied_embeddings: bool = False
    norm: NormKind = "rms"
    position: PositionKind = "rope"
    max_positions: int = 0
    context_length: int = 0
    embedding_dim: int = 0
    """Width of the embedding table where it differs from `hidden` (projected in and out); 0: the same."""
    position_parameters: int = 0
    embedding_norm_parameters: int = 0
    final_norm_parameters: int = 0
    embedding_extra_parameters: int = 0
    """Further tables and projections before the first layer (per-layer inputs, rows for images)."""
    head_extra_parameters: int = 0
    head_bias: bool = False
    dropout: bool = False
    extra_parameters: int = 0
    """Parameters beside the text stack (towers, projectors), counted but not planned."""
    not_planned: str = ""
    """Why the model is counted only: what its cost would need and is not known here; empty where it is planned."""
    head_transform_parameters: int = 0
    """Matrix weights of the head before its last matrix (the transform of BERT's head)."""
    vocabulary_head: bool = True
    """False: the head doesn't predict the vocabulary (a classifier, a bare encoder)."""
    shared_parameters: int = 0
    """Parameters that layers share with layers before them, so that they are counted once (ALBERT)."""
    hub_ids: tuple[str, ...] = ()
    architecture: str = ""
    source: str = ""
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Model {self.name}: {self.num_parameters:,} parameters, {self.num_layers} layers>"

    @property
    def num_layers(self) -> int:
        return len(self.layers)

    @cached_property
    def kinds(self) -> tuple[Layer, ...]:
        """The distinct layers, in order of first appearance."""
        return tuple(dict.fromkeys(self.layers))

    @cached_property
    def kind_of_layer(self) -> tuple[int, ...]:
        """For each layer, the index of its kind in `kinds`."""
        index = {kind: position for position, kind in enumerate(self.kinds)}
        return tuple(index[layer] for layer in self.layers)

    @property
    def is_moe(self) -> bool:
        return any(kind.mlp.is_moe for kind in self.kinds)

    @property
    def embedding_parameters(self) -> int:
        """Token and position tables, the norm after them and the projection into the stack."""
        width = self.embedding_dim or self.hidden
        projection = width * self.hidden if width != self.hidden else 0
        beside = self.position_parameters + self.embedding_norm_parameters + self.embedding_extra_parameters
        return self.vocab * width + projection + beside

    @property
    def head_parameters(self) -> int:
        """Final norm and LM head; a tied head's matrix belongs to the embedding and counts 0 here."""
        if not self.vocabulary_head:
            return self.final_norm_parameters + self.head_transform_parameters
        width = self.embedding_dim or self.hidden
        projection = width * self.hidden if width != self.hidden else 0
        matrix = 0 if self.tied_embeddings else self.vocab * width
        inner = self.final_norm_parameters + self.head_transform_parameters + self.head_extra_parameters
        return inner + projection + matrix + (self.vocab if self.head_bias else 0)

    @cached_property
    def num_parameters(self) -> int:
        counts = {kind: kind.num_parameters(self.hidden) for kind in self.kinds}
        layers = sum(counts[layer] for layer in self.layers) - self.shared_parameters
        return layers + self.embedding_parameters + self.head_parameters + self.extra_parameters

    @cached_property
    def active_parameters(self) -> int:
        """Parameters that one token passes through (all but the experts it is not routed to)."""
        counts = {kind: kind.active_parameters(self.hidden) for kind in self.kinds}
        layers = sum(counts[layer] for layer in self.layers) - self.shared_parameters
        return layers + self.embedding_parameters + self.head_parameters + self.extra_parameters

    @cached_property
    def matmul_parameters(self) -> int:
        """Matrix weights that one token is multiplied with, LM head included, embedding look-up excluded."""
        per_kind = {
            kind: sum(linear.in_features * linear.out_features * linear.active for linear in kind.linears(self.hidden))
            for kind in self.kinds
        }
        head = self.vocab * (self.embedding_dim or self.hidden) if self.vocabulary_head else 0
        return sum(per_kind[layer] for layer in self.layers) + self.head_transform_parameters + head

    def flops_per_token(self, seq_len: int, causal: bool = False) -> float:
        """Model FLOPs of forward and backward per token: 6 per matmul weight, 12 per head width and key, and three
        times what a recurrent mixer's recurrence takes forward.

        Chowdhery et al. 2022 (PaLM), appendix B: every query counts all `seq_len` keys (or its window), although a
        causal kernel needs half of them; published MFU follows this. `causal=True` counts only the pairs that are
        needed.
        """
        attention = 0.0
        for layer in self.layers:
            for core in (layer.attention, *((layer.cross,) if layer.cross else ())):
                if core.kind == "none":
                    continue
                full = float(min(seq_len, core.window or seq_len))
                keys = core.mean_keys(seq_len) if causal else full
                attention += 6.0 * keys * core.heads * (core.head_dim + core.value_dim)
            if layer.mixer is not None:
                attention += 3.0 * layer.mixer.recurrent_flops
        return 6.0 * self.matmul_parameters + attention
