"""The one table of model classes: each model_type that is read, and what its class builds.

Structure is what the modelling files of transformers 5.24 build; the counts of all rows were held against its classes.
Rows below the line `REMOTE` are classes that live beside their weights on the Hub.
"""

from __future__ import annotations

from meshwright.sources.huggingface.families import Family
from meshwright.sources.huggingface.keys import Key

ATTENTION_BIAS = Key("attention_bias", False)
ATTENTION_BIAS_ON = Key("attention_bias", True)
MLP_BIAS = Key("mlp_bias", False)
USE_BIAS = Key("use_bias", False)
SLIDES = Key("use_sliding_window", False)

_LLAMA = Family("LlamaForCausalLM", qkv_bias=ATTENTION_BIAS, out_bias=ATTENTION_BIAS, mlp_bias=MLP_BIAS)
_MISTRAL = Family("MistralForCausalLM", windows="all")
_QWEN2 = Family("Qwen2ForCausalLM", qkv_bias=True, windows="from_layer", window_gate=SLIDES)
_QWEN3 = _QWEN2.like("Qwen3ForCausalLM", qkv_bias=ATTENTION_BIAS, out_bias=ATTENTION_BIAS, qk_norm="head")
_QWEN3_NEXT = _QWEN3.like(
    "Qwen3NextForCausalLM",
    windows="none",
    sparse="step",
    shared="width",
    shared_gate=True,
    mixer="delta_rule",
    attention_gate="channel",
)
_MAMBA = Family("MambaForCausalLM", tied=True, norms=1, position="none", mlp="none", attention=False, mixer="mamba")
_BAMBA = _LLAMA.like("BambaForCausalLM", mixer="mamba2")
_LFM2 = Family("Lfm2ForCausalLM", tied=True, qk_norm="head", mlp="rounded", mixer="short_convolution")

_GEMMA = Family("GemmaForCausalLM", tied=True, qkv_bias=ATTENTION_BIAS, out_bias=ATTENTION_BIAS)
_GEMMA2 = _GEMMA.like("Gemma2ForCausalLM", norms=4, windows="alternate")
_GPT2 = Family(
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
_GPTJ = _GPT2.like(
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
_NEOX = _GPT2.like(
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
_FALCON = _NEOX.like(
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
_OPT = _GPT2.like(
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
_MPT = _GPT2.like(
    "MptForCausalLM",
    norm_bias=Key("no_bias", False, inverted=True),
    alibi=True,
    qkv_bias=Key("no_bias", False, inverted=True),
    out_bias=Key("no_bias", False, inverted=True),
    mlp_bias=Key("no_bias", False, inverted=True),
    dropout=False,
)
_COHERE = _LLAMA.like(
    "CohereForCausalLM",
    tied=True,
    norm="layer",
    mlp_bias=False,
    qk_norm="width",
    qk_norm_when=Key("use_qk_norm", False),
    parallel=True,
)
_OLMO2 = _LLAMA.like("Olmo2ForCausalLM", mlp_bias=False, qk_norm="width")
_EXPERTS = {"sparse": "all", "expert_width": "ffn", "mlp_bias": False}
_OLMOE = _OLMO2.like("OlmoeForCausalLM", **_EXPERTS)
_GRANITEMOE = _LLAMA.like("GraniteMoeForCausalLM", **_EXPERTS)
_GLM = Family("GlmForCausalLM", qkv_bias=Key("attention_bias", True))
_DEEPSEEK_V3 = Family(
    "DeepseekV3ForCausalLM",
    qkv_bias=ATTENTION_BIAS,
    out_bias=ATTENTION_BIAS,
    latent=True,
    sparse="first_dense",
    shared="count",
)
_GLM4_MOE = Family(
    "Glm4MoeForCausalLM",
    qkv_bias=ATTENTION_BIAS,
    qk_norm="head",
    qk_norm_when=Key("use_qk_norm", False),
    sparse="first_dense",
    shared="count",
)

TABLE: dict[str, Family] = {
    "llama": _LLAMA,
    "mistral": _MISTRAL,
    "ministral": _MISTRAL.like("MinistralForCausalLM"),
    "ministral3": _MISTRAL.like("Ministral3ForCausalLM"),
    "mixtral": _MISTRAL.like("MixtralForCausalLM", **_EXPERTS),
    "minimax_m2": Family("MiniMaxM2ForCausalLM", qk_norm="width", sparse="all", expert_width="ffn"),
    "qwen2": _QWEN2,
    "qwen2_moe": _QWEN2.like(
        "Qwen2MoeForCausalLM",
        qkv_bias=Key("qkv_bias", True),
        windows="alternate",
        sparse="step",
        shared="width",
        shared_gate=True,
    ),
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN3.like("Qwen3MoeForCausalLM", windows="all", sparse="step"),
    "qwen3_next": _QWEN3_NEXT,
    "qwen3_5_text": _QWEN3_NEXT.like("Qwen3_5ForCausalLM", sparse="none", shared="none", shared_gate=False),
    "qwen3_5_moe_text": _QWEN3_NEXT.like("Qwen3_5MoeForCausalLM", sparse="all"),
    "nemotron_h": Family(
        "NemotronHForCausalLM",
        can_tie=False,
        gated=False,
        mlp_bias=MLP_BIAS,
        position="none",
        sparse="all",
        shared="width",
        uneven="single_blocks",
    ),
    "qwen2_vl_text": _QWEN2,
    "mamba": _MAMBA,
    "falcon_mamba": _MAMBA.like("FalconMambaForCausalLM"),
    "mamba2": _MAMBA.like("Mamba2ForCausalLM", tied=False, mixer="mamba2"),
    "jamba": Family("JambaForCausalLM", position="none", sparse="period", expert_width="ffn", mixer="mamba"),
    "bamba": _BAMBA,
    "falcon_h1": _BAMBA.like("FalconH1ForCausalLM"),
    "granitemoehybrid": _BAMBA.like(
        "GraniteMoeHybridForCausalLM", mlp_bias=False, sparse="all", shared="width", expert_width="ffn", mlp="shared"
    ),
    "lfm2": _LFM2,
    "lfm2_moe": _LFM2.like("Lfm2MoeForCausalLM", mlp="key", sparse="first_dense"),
    "minimax": Family("MiniMaxForCausalLM", windows="all", sparse="all", expert_width="ffn", mixer="lightning"),
    "recurrent_gemma": Family(
        "RecurrentGemmaForCausalLM",
        tied=True,
        qkv_bias=ATTENTION_BIAS,
        out_bias=True,
        mlp_bias=True,
        ffn_halved=True,
        mixer="griffin",
    ),
    "rwkv": Family(
        "RwkvForCausalLM",
        norm="layer",
        norm_bias=True,
        position="none",
        gated=False,
        ffn_ratio=4,
        embedding_norm=True,
        attention=False,
        mixer="rwkv",
    ),
    "olmo_hybrid": _OLMO2.like("OlmoHybridForCausalLM", mixer="delta_rule"),
    "kimi_linear": _DEEPSEEK_V3.like("KimiLinearForCausalLM", can_tie=False, mixer="kimi_delta_rule"),
    "bailing_hybrid": _DEEPSEEK_V3.like(
        "BailingHybridForCausalLM", can_tie=False, mixer="kimi_delta_rule", attention_gate="head"
    ),
    "qwen2_5_vl_text": _QWEN2,
    "qwen3_vl_text": _QWEN3.like("Qwen3VLTextModel", windows="none"),
    "qwen3_vl_moe_text": _QWEN3.like("Qwen3VLMoeTextModel", windows="none", sparse="step"),
    "gemma": _GEMMA,
    "gemma2": _GEMMA2,
    "vaultgemma": _GEMMA2.like("VaultGemmaForCausalLM", norms=2),
    "gemma3_text": _GEMMA2.like("Gemma3ForCausalLM", qk_norm="head", windows="pattern"),
    "gemma3n_text": _GEMMA2.like("Gemma3nForCausalLM", qk_norm="head", windows="pattern", uneven="gemma3n"),
    "gemma4_text": _GEMMA2.like(
        "Gemma4ForCausalLM",
        qk_norm="head",
        windows="pattern",
        sparse="all",
        sparse_when=Key("enable_moe_block", False),
        uneven="gemma4",
    ),
    "mllama_text_model": Family("MllamaForCausalLM", uneven="cross_attention"),
    "phi": _GPTJ.like(
        "PhiForCausalLM",
        ffn_ratio=0,
        qkv_bias=True,
        out_bias=True,
        qk_norm="head",
        qk_norm_when=Key("qk_layernorm", False),
        qk_norm_bias=True,
        kv="key",
        fixed_head_dim=False,
    ),
    "phi3": Family("Phi3ForCausalLM", fused_qkv=True, windows="all"),
    "phimoe": Family(
        "PhimoeForCausalLM",
        norm="layer",
        norm_bias=True,
        qkv_bias=ATTENTION_BIAS,
        out_bias=ATTENTION_BIAS,
        head_bias=Key("lm_head_bias", False),
        windows="all",
        sparse="all",
        expert_width="ffn",
    ),
    "gpt2": _GPT2,
    "gpt-sw3": _GPT2,
    "openai-gpt": _GPT2.like("OpenAIGPTLMHeadModel", final_norm=False),
    "gpt_bigcode": _GPT2.like("GPTBigCodeForCausalLM", kv="multi_query"),
    "gpt_neo": _GPT2.like("GPTNeoForCausalLM", qkv_bias=False, fused_qkv=False, windows="local", dropout=False),
    "gptj": _GPTJ,
    "codegen": _GPTJ.like("CodeGenForCausalLM", fused_qkv=True),
    "gpt_neox": _NEOX,
    "falcon": _FALCON,
    "opt": _OPT,
    "biogpt": _OPT.like(
        "BioGptForCausalLM", norm_bias=True, norm_weights=True, qkv_bias=True, out_bias=True, mlp_bias=True
    ),
    "xglm": _GPT2.like("XGLMForCausalLM", position="none", fused_qkv=False),
    "mpt": _MPT,
    "bloom": _GPT2.like("BloomForCausalLM", alibi=True, embedding_norm=True, dropout=False),
    "dbrx": Family("DbrxForCausalLM", norm="layer", fused_qkv=True, sparse="all"),
    "deepseek_v2": _DEEPSEEK_V3.like("DeepseekV2ForCausalLM", mlp_bias=MLP_BIAS),
    "deepseek_v3": _DEEPSEEK_V3,
    "deepseek_v32": _DEEPSEEK_V3.like("DeepseekV32ForCausalLM", indexer=True),
    "glm_moe_dsa": _DEEPSEEK_V3.like("GlmMoeDsaForCausalLM", indexer=True),
    "deepseek_v4": Family(
        "DeepseekV4ForCausalLM", sinks=True, mlp_bias=MLP_BIAS, windows="own", sparse="all", uneven="deepseek_v4"
    ),
    "glm4_moe_lite": _DEEPSEEK_V3.like("Glm4MoeLiteForCausalLM"),
    "minicpm3": _DEEPSEEK_V3.like("MiniCPM3ForCausalLM", tied=True, mlp_bias=MLP_BIAS, sparse="none", shared="none"),
    "youtu": _DEEPSEEK_V3.like("YoutuForCausalLM", tied=True, sparse="none", shared="none"),
    "gpt_oss": Family(
        "GptOssForCausalLM",
        qkv_bias=ATTENTION_BIAS_ON,
        out_bias=ATTENTION_BIAS_ON,
        sinks=True,
        windows="alternate",
        sparse="all",
        expert_width="ffn",
        expert_bias=True,
        router_bias=True,
    ),
    "cohere": _COHERE,
    "cohere2": _COHERE.like("Cohere2ForCausalLM", qk_norm="none", fixed_head_dim=True, windows="pattern"),
    "olmo": _LLAMA.like("OlmoForCausalLM", norm="layer", norm_weights=False, mlp_bias=False),
    "olmo2": _OLMO2,
    "olmo3": _OLMO2.like("Olmo3ForCausalLM", windows="sliding_first"),
    "olmoe": _OLMOE,
    "flex_olmo": _OLMOE.like("FlexOlmoForCausalLM"),
    "stablelm": Family(
        "StableLmForCausalLM",
        norm="layer",
        norm_bias=True,
        qkv_bias=Key("use_qkv_bias", False),
        qk_norm="width",
        qk_norm_when=Key("qk_layernorm", False),
        parallel=Key("use_parallel_residual", False),
        fixed_head_dim=True,
    ),
    "seed_oss": _LLAMA.like(
        "SeedOssForCausalLM", qkv_bias=ATTENTION_BIAS_ON, out_bias=Key("attention_out_bias", False), dropout=True
    ),
    "starcoder2": Family(
        "Starcoder2ForCausalLM",
        tied=True,
        norm="layer",
        norm_bias=True,
        gated=False,
        qkv_bias=Key("use_bias", True),
        out_bias=Key("use_bias", True),
        mlp_bias=Key("use_bias", True),
        windows="all",
    ),
    "persimmon": _NEOX.like(
        "PersimmonForCausalLM",
        qkv_bias=True,
        out_bias=True,
        qk_norm="head",
        qk_norm_when=Key("qk_layernorm", True),
        qk_norm_bias=True,
        parallel=False,
    ),
    "granite": _LLAMA.like("GraniteForCausalLM"),
    "granite_swa": _LLAMA.like("GraniteSWAForCausalLM", tied=True, sinks=True, windows="full_first"),
    "granitemoe": _GRANITEMOE,
    "granitemoeshared": _GRANITEMOE.like("GraniteMoeSharedForCausalLM", shared="width"),
    "nemotron": _LLAMA.like("NemotronForCausalLM", norm="layer", norm_bias=True, gated=False),
    "glm": _GLM,
    "glm4": _GLM.like("Glm4ForCausalLM", norms=4),
    "glm4v_text": _GLM.like("Glm4vTextModel", qkv_bias=True, norms=4),
    "glm4_moe": _GLM4_MOE,
    "glm4v_moe_text": _GLM4_MOE.like("Glm4vMoeTextModel", qkv_bias=ATTENTION_BIAS_ON, qk_norm="none"),
    "solar_open": _GLM4_MOE.like("SolarOpenForCausalLM", qk_norm="none", sparse="all"),
    "smollm3": _LLAMA.like("SmolLM3ForCausalLM", tied=True),
    "exaone4": Family("Exaone4ForCausalLM", qk_norm="head", windows="pattern"),
    "ernie4_5": _LLAMA.like("Ernie4_5ForCausalLM", tied=True, qkv_bias=USE_BIAS, out_bias=USE_BIAS, mlp_bias=USE_BIAS),
    "ernie4_5_moe": Family(
        "Ernie4_5_MoeForCausalLM",
        tied=True,
        qkv_bias=USE_BIAS,
        out_bias=USE_BIAS,
        mlp_bias=USE_BIAS,
        head_bias=USE_BIAS,
        sparse="range",
        shared="count",
        balance_bias=True,
    ),
    "hunyuan_v1_dense": _LLAMA.like("HunYuanDenseV1ForCausalLM", mlp_bias=False, qk_norm="head"),
    "hunyuan_v1_moe": _LLAMA.like("HunYuanMoEV1ForCausalLM", qk_norm="head", shared="count_dense", **_EXPERTS),
    "arcee": _LLAMA.like("ArceeForCausalLM", gated=False),
    "apertus": _LLAMA.like("ApertusForCausalLM", mlp_bias=False, gated=False, qk_norm="head", mlp_extra=2),
    "jais2": _LLAMA.like(
        "Jais2ForCausalLM",
        norm="layer",
        norm_bias=True,
        gated=False,
        qkv_bias=ATTENTION_BIAS_ON,
        out_bias=ATTENTION_BIAS_ON,
        mlp_bias=Key("mlp_bias", True),
    ),
    "helium": _LLAMA.like("HeliumForCausalLM", out_bias=False),
    "cwm": Family("CwmForCausalLM", mlp_bias=MLP_BIAS, windows="full_first"),
    "dots1": _GLM4_MOE.like("Dots1ForCausalLM", out_bias=ATTENTION_BIAS, qk_norm_when=True, windows="from_layer"),
    "mimo_v2_flash": _GLM4_MOE.like(
        "MiMoV2FlashForCausalLM", qk_norm="none", shared="none", windows="full_every_sixth", uneven="sliding_heads"
    ),
    "internlm3": _LLAMA.like(
        "LlamaForCausalLM",
        qkv_bias=Key("qkv_bias attention_bias", False),
        out_bias=Key("bias mlp_bias", False),
        mlp_bias=Key("bias mlp_bias", False),
    ),
    "exaone": _LLAMA.like("LlamaForCausalLM"),
    "llama4_text": _LLAMA.like(
        "Llama4ForCausalLM", mlp_bias=False, windows="chunks", sparse="step", shared="one", expert_width="ffn"
    ),
    # REMOTE: classes that came with the weights on the Hub, never in transformers under this name.
    "RefinedWebModel": _FALCON,
    "RefinedWeb": _FALCON.like("FalconForCausalLM", grouped=Key("new_decoder_architecture", True)),
    "mosaic_gpt": _MPT.like("MosaicGPT", alibi=Key("alibi", False)),
    "phi-msft": _GPTJ.like("PhiForCausalLM", qkv_bias=True, out_bias=True, kv="key", fused_qkv=True),
    "qwen": Family(
        "QWenLMHeadModel",
        ffn_halved=True,
        qkv_bias=True,
        out_bias=Key("no_bias", False, inverted=True),
        mlp_bias=Key("no_bias", False, inverted=True),
        fused_qkv=True,
        kv="heads",
    ),
    "deepseek": _LLAMA.like("DeepseekForCausalLM", mlp_bias=False, sparse="first_dense", shared="count"),
    "baichuan": Family("BaichuanForCausalLM", fused_qkv=True, kv="heads", alibi_without="max_position_embeddings"),
    "internlm": _LLAMA.like("InternLMForCausalLM", qkv_bias=Key("bias", True), out_bias=Key("bias", True)),
    "internlm2": Family("InternLM2ForCausalLM", qkv_bias=Key("bias", True), out_bias=Key("bias", True), fused_qkv=True),
    "chatglm": Family(
        "ChatGLMModel",
        qkv_bias=Key("add_qkv_bias add_bias_linear", False),
        out_bias=Key("add_bias_linear", False),
        mlp_bias=Key("add_bias_linear", False),
        fused_qkv=True,
        kv="groups",
    ),
    "nemotron-nas": _LLAMA.like("DeciLMForCausalLM", uneven="blocks"),
    "minicpm": _LLAMA.like("MiniCPMForCausalLM", tied=True, **_EXPERTS),
    "kimi_k2": _DEEPSEEK_V3,
    "Yi": _LLAMA,
}

BY_ARCHITECTURE: dict[str, str] = {family.architecture: name for name, family in reversed(TABLE.items())}
"""Rows by the name of their class, for configs whose model_type is not in the table."""
