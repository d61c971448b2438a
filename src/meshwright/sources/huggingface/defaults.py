"""Sizes that each config class fills in where a file leaves them out: the defaults of transformers 5.24."""

from __future__ import annotations

COLUMNS = ("hidden", "layers", "heads", "ffn", "vocab", "context")

_ROWS = """
model_type        hidden layers heads ffn vocab context, then whatever else the class fills in; - is derived from others
llama             4096 32 32 11008 32000 2048
granite           4096 32 32 11008 32000 2048
granite_swa       2560 24 20 8192 100352 8192 kv_heads=4 window=128
mistral           4096 32 32 14336 32000 131072 kv_heads=8 window=4096
ministral         4096 32 32 14336 32000 131072 kv_heads=8 window=4096
ministral3        4096 34 32 14336 131072 262144 kv_heads=8 head_dim=128
mixtral           4096 32 32 14336 32000 131072 kv_heads=8 experts=8 top_k=2
minimax_m2        3072 62 48 1536 200064 196608 kv_heads=8 head_dim=128 experts=256 top_k=8
qwen2             4096 32 32 22016 151936 32768 kv_heads=32 window=4096 window_from=28
qwen2_moe         2048 24 16 5632 151936 32768 kv_heads=16 window=4096 window_from=28
                  experts=60 top_k=4 expert_ffn=1408 shared_ffn=5632
qwen3             4096 32 32 22016 151936 32768 kv_heads=32 head_dim=128 window=4096 window_from=28
qwen3_moe         2048 24 32 6144 151936 32768 kv_heads=4 window=4096 experts=128 top_k=8 expert_ffn=768
qwen2_vl_text     8192 80 64 29568 152064 32768 kv_heads=8 window=4096 window_from=80
qwen2_5_vl_text   8192 80 64 29568 152064 32768 kv_heads=8 window=4096 window_from=80
qwen3_vl_text     4096 32 32 22016 151936 128000 kv_heads=32 head_dim=128
qwen3_vl_moe_text 2048 24 16 5632 151936 128000 kv_heads=16 experts=60 top_k=4 expert_ffn=1408
qwen3_next        2048 48 16 5632 151936 32768 kv_heads=2 head_dim=256
                  experts=512 top_k=10 expert_ffn=512 shared_ffn=512
                  linear_heads=32 linear_groups=16 linear_key_dim=128 linear_value_dim=128 conv_width=4 full_every=4
qwen3_5_text      4096 32 16 12288 248320 32768 kv_heads=4 head_dim=256
                  linear_heads=32 linear_groups=16 linear_key_dim=128 linear_value_dim=128 conv_width=4 full_every=4
qwen3_5_moe_text  2048 40 16 - 248320 32768 kv_heads=2 head_dim=256
                  experts=256 top_k=8 expert_ffn=512 shared_ffn=512
                  linear_heads=32 linear_groups=16 linear_key_dim=128 linear_value_dim=128 conv_width=4 full_every=4
nemotron_h        4096 4 32 21504 131072 4096 kv_heads=8 head_dim=128
                  experts=8 top_k=2 expert_ffn=7688 shared_ffn=7688
                  state_heads=128 state_head_dim=64 state_groups=8 state_size=128 conv_width=4 scan_chunk=128
mamba             768 32 - - 50280 - state_size=16 expand=2 conv_width=4 full_every=0
falcon_mamba      768 32 - - 50280 - state_size=16 expand=2 conv_width=4 full_every=0
mamba2            4096 64 - - 32768 - lone_heads=128 lone_head_dim=64 state_groups=8 state_size=128 expand=2
                  conv_width=4 scan_chunk=256 full_every=0
jamba             4096 32 32 14336 65536 262144 kv_heads=8 experts=16 top_k=2 sparse_step=2 sparse_offset=1
                  full_every=8 full_offset=4 state_size=16 conv_width=4 expand=2
bamba             4096 32 32 14336 128000 262144 kv_heads=8
                  state_heads=128 state_groups=1 state_size=256 conv_width=4 expand=2 scan_chunk=256 full_every=0
granitemoehybrid  4096 32 32 11008 32000 2048 experts=8 top_k=2 shared_ffn=1024
                  state_heads=128 state_groups=1 state_size=256 conv_width=4 expand=2 scan_chunk=256 full_every=0
falcon_h1         4096 32 32 14336 128000 8192 kv_heads=8 state_width=1024
                  state_heads=128 state_groups=1 state_size=256 conv_width=4 expand=2 scan_chunk=256 full_every=0
lfm2              2560 32 32 12288 65536 128000 kv_heads=8 conv_width=3 full_every=1
lfm2_moe          2048 32 32 7168 65536 128000 kv_heads=8 conv_width=3
                  experts=32 top_k=4 expert_ffn=1792 first_dense=2
minimax           4096 32 32 14336 32000 131072 kv_heads=8 experts=8 top_k=2
                  full_every=2 full_offset=0 scan_chunk=256
recurrent_gemma   2560 26 10 7680 256000 - window=2048 conv_width=4 full_every=3
rwkv              4096 32 - - 50277 1024 full_every=0
olmo_hybrid       3840 32 30 11008 100352 65536 conv_width=4 full_every=4
kimi_linear       2304 27 32 9216 163840 1048576 kv_rank=512 nope_dim=128 rope_dim=64 value_dim=128
                  experts=256 top_k=8 expert_ffn=1024 shared_experts=1 first_dense=1
                  linear_heads=32 linear_key_dim=128 conv_width=4 full_every=4 full_offset=4
bailing_hybrid    2560 42 32 6144 157184 262144 kv_rank=512 nope_dim=128 rope_dim=64 value_dim=128
                  experts=512 top_k=8 expert_ffn=768 shared_experts=1 first_dense=2
                  linear_key_dim=128 conv_width=4 full_every=6
gemma             3072 28 16 24576 256000 8192 kv_heads=16 head_dim=256
gemma2            2304 26 8 9216 256000 8192 kv_heads=4 head_dim=256 window=4096
vaultgemma        2304 26 8 9216 256000 8192 kv_heads=4 head_dim=256 window=4096
gemma3_text       2304 26 8 9216 262208 131072 kv_heads=4 head_dim=256 window=4096 window_pattern=6
gemma3n_text      2048 35 8 16384 262400 32768 kv_heads=2 head_dim=256 window=512 window_pattern=5
gemma4_text       2304 30 8 9216 262144 131072 kv_heads=4 head_dim=256 window=512 window_pattern=6
mllama_text_model 4096 40 32 14336 128256 131072 kv_heads=8
phi               2048 24 32 8192 51200 2048
phi3              3072 32 32 8192 32064 4096
phimoe            4096 32 32 6400 32064 131072 kv_heads=8 experts=16 top_k=2
gpt2              768 12 12 - 50257 1024
gpt-sw3           768 12 12 - 50257 1024
openai-gpt        768 12 12 - 40478 512
gpt_bigcode       768 12 12 - 50257 1024
gpt_neo           2048 24 16 - 50257 2048 window=256
gptj              4096 28 16 - 50400 2048
codegen           4096 28 16 - 50400 2048
gpt_neox          6144 44 64 24576 50432 2048
falcon            4544 32 71 - 65024 2048
opt               768 12 12 3072 50272 2048
biogpt            1024 24 16 4096 42384 1024
xglm              1024 24 16 4096 256008 2048
mpt               2048 24 16 - 50368 2048
bloom             64 2 8 - 250880 -
dbrx              2048 24 16 - 32000 2048 kv_heads=1 experts=4 top_k=1 expert_ffn=3584
deepseek_v2       4096 32 32 11008 102400 2048 q_rank=1536 kv_rank=512 nope_dim=128 rope_dim=64 value_dim=128
                  experts=64 expert_ffn=1407 shared_experts=2 first_dense=0
deepseek_v3       7168 61 128 18432 129280 4096 q_rank=1536 kv_rank=512 nope_dim=128 rope_dim=64 value_dim=128
                  experts=256 top_k=8 expert_ffn=2048 shared_experts=1 first_dense=3
deepseek_v32      7168 61 128 18432 129280 163840 q_rank=1536 kv_rank=512 nope_dim=128 rope_dim=64 value_dim=128
                  experts=256 top_k=8 expert_ffn=2048 shared_experts=1 first_dense=3
                  index_heads=64 index_head_dim=128 index_keys=2048
glm_moe_dsa       6144 78 64 12288 154880 202752 q_rank=2048 kv_rank=512 nope_dim=192 rope_dim=64 value_dim=256
                  experts=256 top_k=8 expert_ffn=2048 shared_experts=1 first_dense=3
                  index_heads=32 index_head_dim=128 index_keys=2048
glm4_moe_lite     2048 47 20 10240 154880 202752 q_rank=768 kv_rank=512 nope_dim=192 rope_dim=64 value_dim=256
                  experts=64 top_k=4 expert_ffn=1536 shared_experts=1 first_dense=1
minicpm3          2560 62 40 6400 73448 32768 q_rank=768 kv_rank=256 nope_dim=64 rope_dim=32
youtu             2048 32 16 6144 128256 131072 q_rank=1536 kv_rank=512 nope_dim=128 rope_dim=64 value_dim=128
gpt_oss           2880 36 64 2880 201088 131072 kv_heads=8 head_dim=64 window=128 experts=128 top_k=4
cohere            8192 40 64 22528 256000 8192
cohere2           8192 40 64 22528 256000 8192 window=4096 window_pattern=4
olmo              4096 32 32 11008 50304 2048
olmo2             4096 32 32 11008 50304 2048
olmo3             4096 32 32 11008 50304 2048 window=4096
olmoe             2048 16 16 2048 50304 4096 experts=64 top_k=8
flex_olmo         4096 32 32 11008 100352 4096 experts=7 top_k=5
stablelm          2560 32 32 6912 50304 4096 kv_heads=32
seed_oss          4096 64 80 27648 155136 524288 kv_heads=8 head_dim=128
starcoder2        3072 30 24 12288 49152 4096 kv_heads=2
persimmon         4096 36 64 16384 262144 16384
granitemoe        4096 32 32 11008 32000 2048 experts=8 top_k=2
granitemoeshared  4096 32 32 11008 32000 2048 experts=8 top_k=2
nemotron          6144 32 48 24576 256000 4096
glm               4096 40 32 13696 151552 131072 kv_heads=2 head_dim=128
glm4              4096 40 32 13696 151552 131072 kv_heads=2 head_dim=128
glm4v_text        4096 40 32 13696 151552 32768 kv_heads=2
glm4v_moe_text    4096 46 96 10944 151424 65536 kv_heads=8
                  experts=128 top_k=8 expert_ffn=1408 shared_experts=1 first_dense=1
glm4_moe          4096 46 96 10944 151552 131072 kv_heads=8
                  experts=128 top_k=8 expert_ffn=1408 shared_experts=1 first_dense=1
solar_open        4096 48 64 - 196608 131072 kv_heads=8 head_dim=128
                  experts=128 top_k=8 expert_ffn=1280 shared_experts=1
smollm3           2048 36 16 11008 128256 32768 kv_heads=4
exaone            4096 32 32 14336 102400 4096 kv_heads=8
exaone4           4096 32 32 16384 102400 2048 kv_heads=32 window=4096 window_pattern=4
ernie4_5          1024 18 16 3072 103424 131072 kv_heads=2 head_dim=128
ernie4_5_moe      2560 28 20 12288 103424 131072 kv_heads=4
                  experts=64 top_k=6 expert_ffn=1536 shared_experts=2 sparse_start=1 sparse_end=-1
hunyuan_v1_dense  4096 32 32 11008 290943 2048
hunyuan_v1_moe    4096 32 32 11008 290943 2048 experts=1 top_k=1 shared_experts=1
arcee             2560 32 32 18432 32000 4096
apertus           4096 32 32 14336 131072 65536
jais2             3328 32 26 26624 150272 8192
helium            2560 24 20 7040 48000 4096 kv_heads=20 head_dim=128
cwm               6144 64 48 21504 128256 131072 kv_heads=8 head_dim=128 window=8192
dots1             4608 62 32 10944 152064 2048 kv_heads=32 window=4096 window_from=62 expert_ffn=1408 first_dense=0
mimo_v2_flash     4096 48 64 16384 152576 131072 kv_heads=4 head_dim=192 value_dim=128 window=129
                  experts=256 top_k=8 expert_ffn=2048 first_dense=1
deepseek_v4       4096 43 64 - 129280 1048576 kv_heads=1 head_dim=512 q_rank=1024 window=128
                  experts=256 top_k=6 expert_ffn=2048
                  index_heads=64 index_head_dim=128 index_keys=512
internlm3         4096 48 32 10240 128512 32768 kv_heads=2 head_dim=128
llama4_text       5120 48 40 8192 202048 131072 kv_heads=8 head_dim=128 chunk=8192
                  experts=16 top_k=1 dense_ffn=16384
"""


def _parse(rows: str) -> dict[str, dict[str, int]]:
    """An indented line continues the row above it."""
    table: dict[str, dict[str, int]] = {}
    for row in rows.replace("\n ", " ").strip().splitlines()[1:]:
        model_type, *cells = row.split()
        columns = dict(zip(COLUMNS, cells, strict=False))
        more = dict(cell.split("=") for cell in cells[len(COLUMNS) :])
        table[model_type] = {fact: int(value) for fact, value in (columns | more).items() if value != "-"}
    return table


DEFAULTS: dict[str, dict[str, int]] = _parse(_ROWS)
"""Facts (under the names of `keys.NAMES`) by model_type. What is missing here has no default."""
