"""The names that a fact has had in config.json files over the years, and typed access to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from meshwright.sources import checks
from meshwright.spec.errors import InputError, UnsupportedModel

NAMES: dict[str, tuple[str, ...]] = {
    "hidden": ("hidden_size", "n_embd", "d_model", "n_embed"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"),
    "kv_heads": (
        "num_key_value_heads",
        "num_kv_heads",
        "n_head_kv",
        "multi_query_group_num",
        "attn_config.kv_n_heads",
        "num_query_groups",
    ),
    "head_dim": ("head_dim", "kv_channels"),
    "vocab": ("padded_vocab_size", "vocab_size"),
    "ffn": (
        "intermediate_size",
        "block_ff_dim",
        "n_inner",
        "ffn_dim",
        "ffn_hidden_size",
        "dff",
        "ffn_config.ffn_hidden_size",
    ),
    "ffn_ratio": ("expansion_ratio", "mlp_ratio", "intermediate_multiple_size"),
    "dense_ffn": ("intermediate_size_mlp", "prefix_dense_intermediate_size"),
    "context": (
        "max_position_embeddings",
        "context_length",
        "n_positions",
        "max_seq_len",
        "seq_length",
        "max_sequence_length",
        "n_ctx",
        "model_max_length",
    ),
    "embedding_dim": ("word_embed_proj_dim",),
    "window": ("sliding_window", "sliding_window_size", "window_size", "attention_window_size"),
    "chunk": ("attention_chunk_size",),
    "window_from": ("max_window_layers",),
    "window_pattern": ("sliding_window_pattern", "_sliding_window_pattern"),
    "experts": (
        "n_routed_experts",
        "num_local_experts",
        "num_experts",
        "moe_num_experts",
        "ffn_config.moe_num_experts",
    ),
    "top_k": (
        "num_experts_per_tok",
        "moe_topk",
        "moe_k",
        "moe_top_k",
        "ffn_config.moe_top_k",
        "num_experts_per_token",
        "top_k_experts",
    ),
    "expert_ffn": ("moe_intermediate_size", "expert_ffn_hidden_size", "ffn_config.ffn_hidden_size"),
    "shared_experts": ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"),
    "shared_ffn": (
        "shared_expert_intermediate_size",
        "shared_intermediate_size",
        "moe_shared_expert_intermediate_size",
    ),
    "first_dense": ("first_k_dense_replace", "num_dense_layers"),
    "sparse_step": ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval", "expert_layer_period"),
    "sparse_start": ("moe_layer_start_index",),
    "sparse_end": ("moe_layer_end_index",),
    "q_rank": ("q_lora_rank",),
    "kv_rank": ("kv_lora_rank",),
    "nope_dim": ("qk_nope_head_dim",),
    "rope_dim": ("qk_rope_head_dim",),
    "value_dim": ("v_head_dim",),
    "index_heads": ("index_n_heads",),
    "index_head_dim": ("index_head_dim",),
    "index_keys": ("index_topk",),
    "linear_heads": ("linear_num_value_heads", "linear_num_heads", "linear_attn_config.num_heads"),
    "linear_groups": ("linear_num_key_heads",),
    "linear_key_dim": ("linear_key_head_dim", "linear_head_dim", "linear_attn_config.head_dim"),
    "linear_value_dim": ("linear_value_head_dim",),
    "conv_width": (
        "linear_conv_kernel_dim",
        "linear_attn_config.short_conv_kernel_size",
        "short_conv_kernel_size",
        "conv_kernel",
        "mamba_d_conv",
        "conv_L_cache",
        "conv1d_width",
    ),
    "state_heads": ("mamba_num_heads", "mamba_n_heads"),
    "state_head_dim": ("mamba_head_dim", "mamba_d_head"),
    "lone_heads": ("num_heads",),
    "lone_head_dim": ("head_dim",),
    "state_groups": ("n_groups", "mamba_n_groups"),
    "state_size": ("ssm_state_size", "state_size", "mamba_d_state"),
    "state_width": ("mamba_d_ssm", "lru_width", "attention_hidden_size"),
    "scan_chunk": ("chunk_size", "mamba_chunk_size", "block_size"),
    "step_rank": ("time_step_rank", "mamba_dt_rank"),
    "expand": ("expand", "mamba_expand"),
    "full_every": ("full_attention_interval", "attn_layer_period", "layer_group_size"),
    "full_offset": ("attn_layer_offset",),
    "sparse_offset": ("expert_layer_offset",),
}
"""Each fact and the keys that hold it, the commonest first. A dot reaches into a nested object."""

LABELS = {fact: names[0] for fact, names in NAMES.items()} | {
    "vocab": "vocab_size",
    "conv_width": "width of the convolution",
    "state_heads": "heads of the mixer",
    "state_head_dim": "width of the mixer's heads",
    "lone_heads": "num_heads",
    "state_groups": "groups of the mixer",
    "state_size": "size of the state",
    "state_width": "width of the mixer",
    "scan_chunk": "tokens in a chunk",
    "expand": "expansion of the mixer",
    "full_every": "layers from one attention to the next",
    "full_offset": "first layer with attention",
    "sparse_offset": "first layer with experts",
}
"""What a fact is called where the file doesn't give it."""

ANY_OF_THEM = ("vocab", "context", "window", "expert_ffn", "head_dim")
"""Facts whose keys may differ in one file and mean different things; the first one counts."""

ESSENTIAL = ("hidden", "layers", "heads", "ffn", "vocab")
"""Facts without which a config describes no particular model, whatever its class would fill in."""


@dataclass(frozen=True)
class Key:
    """A switch that a config may hold: its names (any of them turns it on), and the value where it is missing."""

    names: str
    default: bool
    inverted: bool = False

    def __iter__(self) -> Iterator[str]:
        return iter(self.names.split())


Flag = bool | Key


class Keys:
    """Facts of one config. `defaults` are those of its class, taken (and noted) where the file leaves a fact out.

    `whole_file` says that the file was meant to hold everything (a nested text_config holds only what differs from its
    class): then the essential facts have no default.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        where: str,
        architecture: str,
        defaults: Mapping[str, int] | None = None,
        whole_file: bool = True,
    ) -> None:
        self.values = values
        self.where = where
        self.architecture = architecture
        self.defaults = defaults or {}
        self.whole_file = whole_file
        self.used: dict[str, str] = {}
        self.assumed: dict[str, int] = {}

    def raw(self, key: str) -> Any:
        """The value of a key as it stands; None where it is missing or null."""
        value: Any = self.values
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def find(self, fact: str) -> tuple[str, Any] | None:
        """The key and value that hold a fact. Two keys that contradict each other raise InputError."""
        found = [(key, value) for key in NAMES[fact] if (value := self.raw(key)) is not None]
        if not found:
            return None
        key, value = found[0]
        for other, second in found[1:]:
            if second != value and fact not in ANY_OF_THEM:
                both = f"{key} is {checks.shown(value)}, but {other} is {checks.shown(second)}"
                raise InputError(f"{both}: they mean the same", self.where, "keep one of them")
        self.used[fact] = key
        return key, value

    def count(self, fact: str, least: int = 1) -> int | None:
        """A size or count; the class's default where the file leaves it out, None where there is none either."""
        found = self.find(fact)
        if found is None:
            default = self.defaults.get(fact)
            if default is not None and not (self.whole_file and fact in ESSENTIAL):
                self.assumed[fact] = default
                self.used[fact] = LABELS[fact]
                return default
            return None
        key, value = found
        if isinstance(value, list) and value and all(item == value[0] for item in value):
            value = value[0]
        most = 10_000 if fact == "layers" else checks.MOST
        return checks.whole(self.where, key, value, least, most)

    def need(self, fact: str, least: int = 1) -> int:
        """A count that the model can't be described without. Raises UnsupportedModel where it is missing."""
        number = self.count(fact, least)
        if number is None:
            raise self.refuse(LABELS[fact])
        return number

    def flag(self, flag: Flag) -> bool:
        """A switch: a fixed fact of the class, or what the file says."""
        if isinstance(flag, bool):
            return flag
        given = [checks.flag(self.where, name, value) for name in flag if (value := self.raw(name)) is not None]
        return any(given) != flag.inverted if given else flag.default

    def refuse(self, *missing: str) -> UnsupportedModel:
        """The error for facts that neither the file nor the class gives."""
        return UnsupportedModel(self.architecture, missing, self.where)

    def notes(self) -> tuple[str, ...]:
        """What was filled in from the class, in words. The context length is no fact that anything is counted from."""
        shown = (f"{LABELS[fact]} {value}" for fact, value in self.assumed.items() if fact != "context")
        text = ", ".join(shown)
        return (f"not in the file, so the class's default: {text}",) if text else ()
