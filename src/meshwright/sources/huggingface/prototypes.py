"""Classes that others differ from in little: what the rows of `table` start from."""

from __future__ import annotations

from meshwright.sources.huggingface.families import Family
from meshwright.sources.huggingface.keys import Key

ATTENTION_BIAS = Key("attention_bias", False)
ATTENTION_BIAS_ON = Key("attention_bias", True)
MLP_BIAS = Key("mlp_bias", False)
USE_BIAS = Key("use_bias", False)
SLIDES = Key("use_sliding_window", False)

LLAMA = Family("LlamaForCausalLM", qkv_bias=ATTENTION_BIAS, out_bias=ATTENTION_BIAS, mlp_bias=MLP_BIAS)
MISTRAL = Family("MistralForCausalLM", windows="all")
QWEN2 = Family("Qwen2ForCausalLM", qkv_bias=True, windows="from_layer", window_gate=SLIDES)
QWEN3 = QWEN2.like("Qwen3ForCausalLM", qkv_bias=ATTENTION_BIAS, out_bias=ATTENTION_BIAS, qk_norm="head")
QWEN3_NEXT = QWEN3.like(
    "Qwen3NextForCausalLM",
    windows="none",
    sparse="step",
    shared="width",
    shared_gate=True,
    mixer="delta_rule",
    attention_gate="channel",
)
MAMBA = Family("MambaForCausalLM", tied=True, norms=1, position="none", mlp="none", attention=False, mixer="mamba")
BAMBA = LLAMA.like("BambaForCausalLM", mixer="mamba2")
LFM2 = Family("Lfm2ForCausalLM", tied=True, qk_norm="head", mlp="rounded", mixer="short_convolution")

GEMMA = Family("GemmaForCausalLM", tied=True, qkv_bias=ATTENTION_BIAS, out_bias=ATTENTION_BIAS)
GEMMA2 = GEMMA.like("Gemma2ForCausalLM", norms=4, windows="alternate")
GPT2 = Family(
    "GPT2LMHeadModel",
    tied=True,
    norm="layer",
    norm_bias=True,
    position="learned",
    gated=False,
    ffn_ratio=4,
    qkv_bias=True,
    out_bias=True,
    mlp_bias=True,
    fused_qkv=True,
    kv="heads",
    fixed_head_dim=True,
    dropout=True,
)
GPTJ = GPT2.like(
    "GPTJForCausalLM",
    tied=False,
    position="rope",
    qkv_bias=False,
    out_bias=False,
    head_bias=True,
    fused_qkv=False,
    parallel=True,
    dropout=False,
)
NEOX = GPT2.like(
    "GPTNeoXForCausalLM",
    tied=False,
    position="rope",
    ffn_ratio=0,
    qkv_bias=ATTENTION_BIAS_ON,
    out_bias=ATTENTION_BIAS_ON,
    parallel=Key("use_parallel_residual", True),
    parallel_norms=2,
    dropout=False,
)
FALCON = NEOX.like(
    "FalconForCausalLM",
    tied=True,
    ffn_ratio=4,
    qkv_bias=Key("bias", False),
    out_bias=Key("bias", False),
    mlp_bias=Key("bias", False),
    alibi=Key("alibi", False),
    parallel=Key("parallel_attn", True),
    parallel_norms=1,
    kv="multi_query",
    grouped=Key("new_decoder_architecture", False),
)
OPT = GPT2.like(
    "OPTForCausalLM",
    norm_bias=Key("layer_norm_elementwise_affine", True),
    norm_weights=Key("layer_norm_elementwise_affine", True),
    position_offset=2,
    ffn_ratio=0,
    qkv_bias=Key("enable_bias", True),
    out_bias=Key("enable_bias", True),
    mlp_bias=Key("enable_bias", True),
    fused_qkv=False,
)
MPT = GPT2.like(
    "MptForCausalLM",
    norm_bias=Key("no_bias", False, inverted=True),
    alibi=True,
    qkv_bias=Key("no_bias", False, inverted=True),
    out_bias=Key("no_bias", False, inverted=True),
    mlp_bias=Key("no_bias", False, inverted=True),
    dropout=False,
)
COHERE = LLAMA.like(
    "CohereForCausalLM",
    tied=True,
    norm="layer",
    mlp_bias=False,
    qk_norm="width",
    qk_norm_when=Key("use_qk_norm", False),
    parallel=True,
)
OLMO2 = LLAMA.like("Olmo2ForCausalLM", mlp_bias=False, qk_norm="width")
EXPERTS = {"sparse": "all", "expert_width": "ffn", "mlp_bias": False}
OLMOE = OLMO2.like("OlmoeForCausalLM", **EXPERTS)
GRANITEMOE = LLAMA.like("GraniteMoeForCausalLM", **EXPERTS)
GLM = Family("GlmForCausalLM", qkv_bias=Key("attention_bias", True))
DEEPSEEK_V3 = Family(
    "DeepseekV3ForCausalLM",
    qkv_bias=ATTENTION_BIAS,
    out_bias=ATTENTION_BIAS,
    latent=True,
    sparse="first_dense",
    shared="count",
)
GLM4_MOE = Family(
    "Glm4MoeForCausalLM",
    qkv_bias=ATTENTION_BIAS,
    qk_norm="head",
    qk_norm_when=Key("use_qk_norm", False),
    sparse="first_dense",
    shared="count",
)
