"""The catalog finds entries by name, one at a time, and reads YAML safely."""

from __future__ import annotations

from pathlib import Path

import pytest

from meshwright.sources import catalog
from meshwright.sources.catalog import KINDS, entry_names, load_entry, parse_yaml, read_yaml, yaml_text
from meshwright.spec.errors import InputError, UnknownName


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_of_every_kind_is_readable_and_names_itself_by_its_file(kind: str) -> None:
    for name in entry_names(kind):
        entry = load_entry(kind, name)
        assert entry.get("name", name) == name


def test_one_entry_opens_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    monkeypatch.setattr(catalog, "read_yaml", lambda path: opened.append(path) or {})
    load_entry("models", "gpt2")
    assert [path.name for path in opened] == ["gpt2.yaml"]


def test_names_are_looked_up_in_any_case() -> None:
    assert load_entry("models", " Llama-3.1-8B ") == load_entry("models", "llama-3.1-8b")


def test_a_wrong_name_suggests_near_ones() -> None:
    with pytest.raises(UnknownName, match=r"no model is called 'lama-3.1-8b'; did you mean llama-3.1-8b") as caught:
        load_entry("models", "lama-3.1-8b")
    assert caught.value.near[0] == "llama-3.1-8b"


@pytest.mark.parametrize("name", ["../models/gpt2", "..", "", "/etc/passwd", "gpt2.yaml", "gpt2\0", "*", "x" * 5000])
def test_a_name_is_never_a_path(name: str) -> None:
    with pytest.raises(UnknownName):
        load_entry("models", name)


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(UnknownName, match="did you mean models"):
        entry_names("model")


def test_numbers_with_an_exponent_are_numbers() -> None:
    assert parse_yaml("rate: 300e9\nlatency: 1e-6\nname: 1e9x", "f.yaml") == {
        "rate": 300e9,
        "latency": 1e-6,
        "name": "1e9x",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "line 3, column 1: key 'a' is given twice"),
        ("a: [1, 2", "line 2, column 1|line 1, column 9"),
        ("a: b: c", "line 1, column 5"),
        ("\ta: 1", "line 1, column 1"),
        ("a: &x [1]\nb: *x", r"line 2: YAML aliases \(\*x\) are not read"),
        ("a: " + "[" * 100, "nested more than 32 deep"),
        ("a: " + "{" * 100_000, "nest"),
        ("a: !!python/object/apply:os.system [ls]", "could not determine a constructor"),
        ("- 1\n- 2", "must hold one mapping of keys to values, but holds a list"),
        ("just text", "must hold one mapping of keys to values, but holds a str"),
        ("", "but holds nothing"),
        ("1: 2", "key 1 must be text"),
        ("a: 2024-99-99", "holds a value that can't be read"),
    ],
)
def test_bad_yaml_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_yaml(text, "f.yaml")
    assert str(caught.value).startswith("f.yaml: ")


def test_an_alias_bomb_is_refused_before_it_grows() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{name}: &{name} [{', '.join(['*' + before] * 9)}]" for before, name in zip("abcdefg", "bcdefgh", strict=True)
    ]
    with pytest.raises(InputError, match="line 2: YAML aliases"):
        parse_yaml("\n".join(lines), "f.yaml")


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    path.write_text("a: " + "x" * 1_000_001)
    with pytest.raises(InputError, match="1,000,004 bytes; at most 1,000,000 are read"):
        read_yaml(path)


def test_files_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"a: \xff\xfe")
    with pytest.raises(InputError, match=r"is not UTF-8 text \(byte 3\)"):
        read_yaml(path)
    with pytest.raises(InputError, match="not an ordinary file"):
        read_yaml(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        read_yaml(tmp_path / "none.yaml")


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_yaml(path) == {"a": 1}


@pytest.mark.parametrize(
    "text", ["0E0", "1e5", "-12e+3", "1_0e1", "1.5e3", "300e9", "null", "yes", "0x10", "2024-01-01"]
)
def test_text_that_looks_like_a_number_is_written_so_that_it_stays_text(text: str) -> None:
    content = {"value": text, "list": [text, 1e5, 3], text: {"inner": 0.5}}
    assert parse_yaml(yaml_text(content), "file") == content
