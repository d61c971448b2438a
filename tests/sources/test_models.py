"""A model comes from a catalog name, a Hub id, a config.json or a YAML file, and counts what was published."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from meshwright.sources.catalog import load_entry
from meshwright.sources.hub import INDEX, current_index, hub_names
from meshwright.sources.models import load_model, load_model_entry, model_names
from meshwright.spec.errors import InputError, UnknownName

REQUIRED = """
    gpt2 gpt2-medium gpt2-large gpt2-xl gpt3-125m gpt3-350m gpt3-760m gpt3-1.3b gpt3-2.7b gpt3-6.7b gpt3-13b gpt3-175b
    llama-7b llama-13b llama-30b llama-65b llama-2-7b llama-2-13b llama-2-70b llama-3-8b llama-3-70b llama-3.1-8b
    llama-3.1-70b llama-3.1-405b llama-3.2-1b llama-3.2-3b llama-3.3-70b llama-4-scout llama-4-maverick
    megatron-1.7b megatron-3.6b megatron-7.5b megatron-18b megatron-39b megatron-76b megatron-145b megatron-310b
    megatron-530b megatron-1t mt-nlg-530b bloom-560m bloom-176b opt-125m opt-350m opt-175b mistral-7b
    mistral-large-123b mixtral-8x7b mixtral-8x22b qwen1.5-7b qwen2-7b qwen2.5-7b qwen2.5-72b qwen3-8b qwen3-30b-a3b
    qwen3-235b-a22b qwen3-coder-480b-a35b gemma-2b gemma-7b gemma-2-2b gemma-2-9b gemma-2-27b gemma-3-1b gemma-3-4b
    gemma-3-12b gemma-3-27b phi-1.5 phi-2 phi-3-mini phi-3-medium phi-4 falcon-7b falcon-40b falcon-180b mpt-7b mpt-30b
    deepseek-v2 deepseek-v2-lite deepseek-v3 deepseek-r1 gpt-oss-20b gpt-oss-120b nemotron-4-15b nemotron-4-340b
    glm-4-9b glm-4.5 glm-4.5-air kimi-k2 grok-1 dbrx olmo-2-7b olmo-2-13b olmo-2-32b starcoder2-15b pythia-70m
    pythia-12b gpt-j-6b gpt-neox-20b command-r command-r-plus yi-6b yi-34b internlm2-7b internlm2-20b tinyllama-1.1b
    smollm2-135m minitron-4b
"""


@pytest.mark.parametrize("name", model_names())
def test_every_entry_counts_the_parameters_that_it_states(name: str) -> None:
    entry = load_entry("models", name)
    assert load_model_entry(name).num_parameters == entry["parameters"]
    assert entry["source"]


def test_the_names_that_others_rely_on_are_there() -> None:
    assert set(REQUIRED.split()) <= set(model_names())


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # Counts of the published checkpoints.
        ("gpt2", 124_439_808),
        ("llama-2-70b", 68_976_648_192),
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.1-405b", 405_853_388_800),
        ("mixtral-8x7b", 46_702_792_704),
        ("deepseek-v3", 671_026_404_352),
        ("deepseek-v2-lite", 15_706_484_224),
        ("gpt-oss-120b", 116_829_156_672),
        ("bloom-176b", 176_247_271_424),
        ("opt-350m", 331_196_416),
        ("gpt-neox-20b", 20_554_567_680),
    ],
)
def test_well_known_models_count_their_published_parameters(name: str, parameters: int) -> None:
    assert load_model(name).num_parameters == parameters


@pytest.mark.parametrize(
    ("name", "millions"),
    # Brown et al. 2020, table D.1, column "Params (M)".
    [
        ("gpt3-125m", 125),
        ("gpt3-350m", 356),
        ("gpt3-760m", 760),
        ("gpt3-1.3b", 1_320),
        ("gpt3-2.7b", 2_650),
        ("gpt3-6.7b", 6_660),
        ("gpt3-13b", 12_850),
        ("gpt3-175b", 174_600),
    ],
)
def test_gpt3_counts_agree_with_table_d1(name: str, millions: int) -> None:
    assert load_model(name).num_parameters / 1e6 == pytest.approx(millions, rel=0.004)


@pytest.mark.parametrize(
    ("name", "billions"),
    # Narayanan et al. 2021 (SC21), table 1.
    [
        ("megatron-1.7b", 1.7),
        ("megatron-3.6b", 3.6),
        ("megatron-7.5b", 7.5),
        ("megatron-18b", 18.4),
        ("megatron-39b", 39.1),
        ("megatron-76b", 76.1),
        ("megatron-145b", 145.6),
        ("megatron-310b", 310.1),
        ("megatron-530b", 529.6),
        ("megatron-1t", 1008.0),
    ],
)
def test_megatron_counts_follow_the_formula_of_the_paper(name: str, billions: float) -> None:
    model = load_model(name)
    layers, hidden = model.num_layers, model.hidden
    vocab, positions = model.vocab, model.max_positions
    # Equation 2: P = 12 l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)); it leaves out the final norm.
    formula = 12 * layers * hidden**2 + 13 * layers * hidden + (vocab + positions) * hidden
    assert model.num_parameters == formula + 2 * hidden
    assert round(model.num_parameters / 1e9, 1) == pytest.approx(billions, abs=0.051)


@pytest.mark.parametrize(
    ("name", "billions"),
    # Active parameters as the models' papers and cards round them.
    [
        ("deepseek-v3", 37),
        ("deepseek-v2", 21),
        ("mixtral-8x7b", 13),
        ("mixtral-8x22b", 39),
        ("qwen3-30b-a3b", 3.3),
        ("qwen3-235b-a22b", 22),
        ("qwen3-coder-480b-a35b", 35),
        ("kimi-k2", 32),
        ("dbrx", 36),
        ("glm-4.5", 32),
        ("glm-4.5-air", 12),
        ("llama-4-scout", 17),
        ("llama-4-maverick", 17),
        ("phi-3.5-moe", 6.6),
        ("olmoe-1b-7b", 1.3),
    ],
)
def test_active_parameters_agree_with_the_published_ones(name: str, billions: float) -> None:
    assert load_model(name).active_parameters / 1e9 == pytest.approx(billions, rel=0.12)


def test_the_index_of_hub_ids_is_current() -> None:
    assert INDEX.read_text(encoding="utf-8") == current_index(), "run python -m meshwright.sources.hub"


def test_no_hub_id_means_two_models() -> None:
    lines = INDEX.read_text(encoding="utf-8").splitlines()
    assert len(hub_names()) == len(lines)


@pytest.mark.parametrize("text", ["meta-llama/Llama-3.1-70B", "META-LLAMA/llama-3.1-70b-instruct"])
def test_a_hub_id_names_its_model_in_any_case(text: str) -> None:
    assert load_model(text) == load_model("llama-3.1-70b")


def test_an_unknown_hub_id_says_that_the_hub_is_not_asked() -> None:
    with pytest.raises(UnknownName, match=r"the Hub is not asked; download its config\.json and pass the path"):
        load_model("someone/never-heard-of")
    with pytest.raises(UnknownName, match=r"did you mean meta-llama/Llama-3\.1-70B.* Otherwise, the Hub is not asked"):
        load_model("meta-llama/Llama-3.1-71B")


@pytest.mark.parametrize("text", ["lama-3.1-8b", "llama_3.1_8b", "Llama-3.1-8"])
def test_an_unknown_name_suggests_near_ones(text: str) -> None:
    with pytest.raises(UnknownName, match=r"llama-3\.1-8b"):
        load_model(text)


@pytest.mark.parametrize(
    "text", ["", "   ", "./none.json", "/none/config.json", "none.yaml", "\0", "x" * 10_000, "~nobody/x"]
)
def test_text_that_names_nothing_is_an_input_error(text: str) -> None:
    with pytest.raises(InputError):
        load_model(text)


def test_a_config_and_the_folder_that_holds_it_are_the_same_model(tmp_path: Path) -> None:
    folder = tmp_path / "my-llama"
    folder.mkdir()
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96}
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "vocab_size": 100, **sizes}))
    model = load_model(str(folder))
    assert model == load_model(str(folder / "config.json"))
    assert model.name == "my-llama"


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


SMALL = "hidden: 64\nlayers: 4\nheads: 4\nffn: 96\nvocab: 100\n"


def test_a_yaml_file_in_the_catalogs_form_is_a_model(tmp_path: Path) -> None:
    model = load_model(write(tmp_path / "mine.yaml", SMALL + "kv_heads: 2\ntied: true\nparameters: 129_856\n"))
    assert (model.name, model.num_parameters) == ("mine", 129_856)


def test_a_yaml_file_may_describe_windows_and_experts(tmp_path: Path) -> None:
    text = SMALL + "window: {size: 8, pattern: [sliding, full]}\nmoe: {experts: 4, top_k: 2, width: 32, every: 2}\n"
    model = load_model(write(tmp_path / "mixed.yaml", text))
    assert [layer.attention.window for layer in model.layers] == [8, 0, 8, 0]
    assert [layer.mlp.experts for layer in model.layers] == [0, 4, 0, 4]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hiden: 4", "key 'hiden' is not known; did you mean hidden?"),
        ("kv_heads: 3", r"kv_heads is 3, but it must be a divisor of heads \(4\); the nearest value that works is 2"),
        (
            "head_dim: 0",
            "head_dim is 0, but it must be a whole number of at least 1; the nearest value that works is 1",
        ),
        ("kv_heads: two", "kv_heads is 'two', but it must be a whole number of at least 1"),
        ("tied: 1", "tied is 1, but it must be true or false; the nearest value that works is true"),
        ("norm: rsm", "norm is 'rsm', but it must be one of rms, layer; the nearest value that works is 'rms'"),
        ("bias: [qvk]", "bias is 'qvk', but it must be one of qkv, out"),
        ("moe: {experts: 4, top_k: 8}", r"moe.top_k is 8, but it must be at most moe.experts \(4\)"),
        ("moe: {top_k: 8}", "moe.experts is missing"),
        ("moe: 8", "moe is 8, but it must be a mapping of keys to values"),
        ("moe: {experts: 4, topk: 8}", "moe: key 'topk' is not known; did you mean top_k?"),
        ("mla: {kv_rank: 8}", "mla.nope_dim is missing"),
        ("window: {size: 8, pattern: [slide]}", "window.pattern is 'slide', but it must be one of full, sliding"),
        ("parameters: 5", "parameters is 5, but the shape counts"),
        ("hub: some/id", "hub is 'some/id', but it must be a list"),
    ],
)
def test_a_wrong_line_names_file_key_value_rule_and_remedy(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path / "wrong.yaml", SMALL + line + "\n")
    with pytest.raises(InputError, match=message) as caught:
        load_model(path)
    assert str(caught.value).startswith(path)


def test_heads_must_divide_the_width_where_no_head_width_is_given(tmp_path: Path) -> None:
    path = write(tmp_path / "odd.yaml", SMALL.replace("heads: 4", "heads: 5"))
    with pytest.raises(InputError, match=r"heads is 5, but it must be a divisor of hidden \(64\).*works is 4"):
        load_model(path)


def test_a_missing_size_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "short.yaml", SMALL.replace("vocab: 100\n", ""))
    with pytest.raises(InputError, match="vocab is missing; add vocab: a whole number"):
        load_model(path)


def test_reading_models_imports_no_heavy_library() -> None:
    code = (
        "import sys; from meshwright.sources.models import load_model; load_model('llama-3.1-8b');"
        "print([name for name in ('torch', 'transformers', 'pydantic', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
