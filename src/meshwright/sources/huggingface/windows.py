"""How far back each layer's attention sees."""

from __future__ import annotations

from typing import Any

from meshwright.sources import checks
from meshwright.sources.huggingface.families import Family, WindowRule
from meshwright.sources.huggingface.keys import NAMES, Keys

FULL = ("full_attention", "attention", "full", "global")
SLIDING = ("sliding_attention", "sliding", "local", "swa")
CHUNKED = ("chunked_attention",)


def windows(keys: Keys, family: Family, layers: int) -> tuple[int, ...]:
    """One window per layer, 0 where a layer sees everything before it; empty where all layers do."""
    if family.mixer == "griffin":
        return (_size(keys, "window"),) * layers
    recurrent = family.mixer != "none" or family.uneven == "single_blocks"
    if family.windows == "own" or (recurrent and family.windows == "none"):
        return ()
    kinds = _kinds(keys, layers) if family.mixer == "none" else []
    if family.windows == "none" and not kinds or _is_off(keys, family):
        return ()
    kinds = kinds or _rule(keys, family, layers)
    size = _size(keys, "window") if set(kinds) & set(SLIDING) else 0
    chunk = _size(keys, "chunk") if set(kinds) & set(CHUNKED) else 0
    sizes = {**dict.fromkeys(SLIDING, size), **dict.fromkeys(CHUNKED, chunk)}
    found = tuple(sizes.get(kind, 0) for kind in kinds)
    return found if any(found) else ()


def layer_kinds(keys: Keys, family: Family, layers: int) -> list[str]:
    """What each layer is called in the file, or by the rule of its class."""
    return _kinds(keys, layers) or _rule(keys, family, layers)


def _kinds(keys: Keys, layers: int) -> list[str]:
    """What `layer_types` (or GPT-Neo's `attention_layers`) says, layer by layer; empty where there is no such list."""
    for name in ("layer_types", "attention_layers"):
        given = keys.raw(name)
        if given is not None:
            kinds = per_layer(keys, name, given, layers)
            odd = [kind for kind in kinds if kind not in (*FULL, *SLIDING, *CHUNKED)]
            if odd:
                raise keys.refuse(f"layers of type {checks.shown(odd[0])} ({len(odd)} of {layers})")
            return kinds
    return []


def per_layer(keys: Keys, name: str, given: Any, layers: int) -> list[Any]:
    """A list with one entry per layer. One that goes on for longer (a model cut short for a test) is cut as well."""
    entries = checks.listed(keys.where, name, given)
    if len(entries) < layers:
        rule = f"a list with one entry for each of the {layers} layers"
        raise checks.wrong(keys.where, name, f"{len(entries)} entries long", rule, layers)
    return entries[:layers]


def _rule(keys: Keys, family: Family, layers: int) -> list[str]:
    rule: WindowRule = family.windows
    numbers = range(1, layers + 1)
    if rule == "all":
        return ["sliding"] * layers
    if rule == "from_layer":
        first = keys.count("window_from", least=0) or 0
        return ["sliding" if number > first else "full" for number in numbers]
    if rule == "alternate":
        last = keys.count("window_from", least=0) if "window_from" in keys.defaults else None
        return ["sliding" if number % 2 and (last is None or number <= last) else "full" for number in numbers]
    if rule == "pattern":
        return _pattern(keys, layers)
    if rule == "sliding_first":
        return ["full" if number % 4 == 0 else "sliding" for number in numbers]
    if rule == "full_first":
        return ["full" if number % 4 == 1 else "sliding" for number in numbers]
    if rule == "full_every_sixth":
        return ["full" if number == 1 or number % 6 == 0 else "sliding" for number in numbers]
    if rule == "chunks":
        return _chunks(keys, layers)
    if rule == "local":
        return _attention_types(keys, layers)
    return ["full"] * layers


def _pattern(keys: Keys, layers: int) -> list[str]:
    """`sliding_window_pattern`: every n-th layer is full, or letters for the layers in turn (L local, G global)."""
    name, given = keys.find("window_pattern") or ("", None)
    if isinstance(given, str):
        if not given or set(given.upper()) - {"L", "G"}:
            rule = "a number of layers, or letters L (local) and G (global)"
            raise checks.wrong(keys.where, name, given, rule, "LLLG")
        return ["full" if given[index % len(given)].upper() == "G" else "sliding" for index in range(layers)]
    every = keys.need("window_pattern", least=0)
    return ["sliding" if every and number % every else "full" for number in range(1, layers + 1)]


def _chunks(keys: Keys, layers: int) -> list[str]:
    """Llama 4: layers with rotary positions see their chunk only."""
    given = keys.raw("no_rope_layers")
    if given:
        return ["chunked_attention" if rope else "full" for rope in per_layer(keys, "no_rope_layers", given, layers)]
    step = checks.whole(keys.where, "no_rope_layer_interval", keys.values.get("no_rope_layer_interval", 4))
    return ["chunked_attention" if number % step else "full" for number in range(1, layers + 1)]


def _attention_types(keys: Keys, layers: int) -> list[str]:
    """GPT-Neo: [[["global", "local"], 12]] is that pair twelve times."""
    given = keys.raw("attention_types")
    if given is None:
        return ["full" if index % 2 == 0 else "sliding" for index in range(layers)]
    rule = 'a list of pairs such as [["global", "local"], 12]'
    kinds: list[str] = []
    for pair in checks.listed(keys.where, "attention_types", given):
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], list)):
            raise checks.wrong(keys.where, "attention_types", given, rule)
        times = checks.whole(keys.where, "attention_types", pair[1], most=layers)
        names = [checks.choice(keys.where, "attention_types", name, ("global", "local")) for name in pair[0]]
        kinds += names * times
    return per_layer(keys, "attention_types", kinds, layers)


def _is_off(keys: Keys, family: Family) -> bool:
    """Sliding windows are switched off by a flag, whatever their size; chunks have no such flag."""
    off = keys.values.get("use_sliding_window") is False or not keys.flag(family.window_gate)
    return off and family.windows != "chunks"


def _size(keys: Keys, fact: str) -> int:
    """The size that the file gives; the class's default where it says nothing, none where it says null."""
    if any(name in keys.values and keys.values[name] is None for name in NAMES[fact]):
        return 0
    return keys.count(fact, least=0) or 0
