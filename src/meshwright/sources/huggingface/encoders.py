"""The classes of encoders that are read, and how each differs from BERT. Held against transformers 5.24."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from meshwright.spec.model import NormKind, PositionKind

Piece = Literal["vocabulary", "pooler", "dense", "labels", "pair", "one"]
"""What a head is made of: the prediction over the vocabulary with its transform; BERT's pooler; a square matrix before
the classes; the classes; a choice of two; a score."""

_BERT_HEADS = {
    "Model": "pooler",
    "ForMaskedLM": "vocabulary",
    "ForPreTraining": "vocabulary pooler pair",
    "ForSequenceClassification": "pooler labels",
    "ForMultipleChoice": "pooler one",
    "ForNextSentencePrediction": "pooler pair",
    "ForTokenClassification": "labels",
    "ForQuestionAnswering": "labels",
}
_ROBERTA_HEADS = {
    "Model": "pooler",
    "ForMaskedLM": "vocabulary",
    "ForSequenceClassification": "dense labels",
    "ForMultipleChoice": "pooler one",
    "ForTokenClassification": "labels",
    "ForQuestionAnswering": "labels",
}


@dataclass(frozen=True)
class Encoder:
    """Facts of one class; `prefix` starts the names of its classes, `heads` says what each ending adds to the stack.

    `types` is the default number of token types (None: the class has no such table). `norm_first`: the stack normalises
    before its blocks and once at its end. `unplanned` says what the cost model can't price.
    """

    prefix: str
    heads: dict[str, str] = field(default_factory=lambda: dict(_BERT_HEADS))
    types: int | None = 2
    positions: int = 512
    position: PositionKind = "learned"
    norm: NormKind = "layer"
    norm_bias: bool = True
    norm_first: bool = False
    embedding_norm: bool = True
    bias: bool = True
    gated: bool = False
    embedding_key: str = ""
    embedding_default: int = 0
    dropout: bool = True
    unplanned: str = ""

    def like(self, prefix: str, **changes: Any) -> Encoder:
        """Another class that differs from this one in `changes` only."""
        return replace(self, prefix=prefix, **changes)


_BERT = Encoder("Bert")
_ROBERTA = _BERT.like("Roberta", heads=_ROBERTA_HEADS)
_DISENTANGLED = "the scores of its disentangled attention have no price"
_ALBERT_HEADS = {ending: pieces for ending, pieces in _BERT_HEADS.items() if ending != "ForNextSentencePrediction"}
_ESM_HEADS = {ending: _ROBERTA_HEADS[ending] for ending in ("Model", "ForMaskedLM", "ForSequenceClassification")}
_REMBERT_HEADS = {ending: pieces for ending, pieces in _ALBERT_HEADS.items() if ending != "ForPreTraining"}

ENCODERS: dict[str, Encoder] = {
    "bert": _BERT,
    "ernie": _BERT.like("Ernie"),
    "megatron-bert": _BERT.like("MegatronBert", norm_first=True, embedding_norm=False),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA.like("XLMRoberta"),
    "camembert": _ROBERTA.like("Camembert"),
    "data2vec-text": _ROBERTA.like("Data2VecText"),
    "roberta-prelayernorm": _ROBERTA.like("RobertaPreLayerNorm", norm_first=True),
    "xlm-roberta-xl": _ROBERTA.like("XLMRobertaXL", norm_first=True, embedding_norm=False, positions=514, types=1),
    "electra": _BERT.like(
        "Electra",
        heads={
            "Model": "",
            "ForMaskedLM": "vocabulary",
            "ForPreTraining": "dense one",
            "ForSequenceClassification": "dense labels",
            "ForTokenClassification": "labels",
            "ForQuestionAnswering": "labels",
        },
        embedding_key="embedding_size",
        embedding_default=128,
    ),
    "albert": _BERT.like(
        "Albert",
        heads=_ALBERT_HEADS,
        embedding_key="embedding_size",
        embedding_default=128,
        dropout=False,
        unplanned="its layers share their weights",
    ),
    "rembert": _BERT.like(
        "RemBert",
        heads=_REMBERT_HEADS,
        embedding_key="input_embedding_size",
        embedding_default=256,
        dropout=False,
        unplanned="its embeddings have another width at each end",
    ),
    "distilbert": _BERT.like(
        "DistilBert",
        heads={
            "Model": "",
            "ForMaskedLM": "vocabulary",
            "ForSequenceClassification": "dense labels",
            "ForMultipleChoice": "dense one",
            "ForTokenClassification": "labels",
            "ForQuestionAnswering": "labels",
        },
        types=None,
    ),
    "mpnet": _ROBERTA.like("MPNet", types=None),
    "deberta": _BERT.like(
        "Deberta",
        heads={
            "Model": "",
            "ForMaskedLM": "vocabulary",
            "ForSequenceClassification": "pooler labels",
            "ForTokenClassification": "labels",
            "ForQuestionAnswering": "labels",
        },
        types=0,
        unplanned=_DISENTANGLED,
    ),
    "deberta-v2": _BERT.like(
        "DebertaV2",
        heads={
            "Model": "",
            "ForMaskedLM": "vocabulary",
            "ForSequenceClassification": "pooler labels",
            "ForMultipleChoice": "pooler one",
            "ForTokenClassification": "labels",
            "ForQuestionAnswering": "labels",
        },
        types=0,
        unplanned=_DISENTANGLED,
    ),
    "nomic_bert": _BERT.like(
        "NomicBert",
        heads={
            "Model": "",
            "ForMaskedLM": "vocabulary",
            "ForSequenceClassification": "pooler labels",
            "ForTokenClassification": "labels",
        },
        positions=2048,
        position="rope",
        bias=False,
        gated=True,
        dropout=False,
    ),
    "modernbert": Encoder(
        "ModernBert",
        heads={
            "Model": "",
            "ForMaskedLM": "vocabulary",
            "ForSequenceClassification": "dense labels",
            "ForTokenClassification": "dense labels",
            "ForQuestionAnswering": "dense labels",
            "ForMultipleChoice": "dense one",
        },
        types=None,
        positions=8192,
        position="rope",
        norm_bias=False,
        norm_first=True,
        bias=False,
        gated=True,
        dropout=False,
    ),
    "esm": _ROBERTA.like("Esm", heads=_ESM_HEADS, types=None, positions=1026, norm_first=True, embedding_norm=False),
    "eurobert": Encoder(
        "EuroBert",
        heads={
            "Model": "",
            "ForMaskedLM": "vocabulary",
            "ForSequenceClassification": "dense labels",
            "ForTokenClassification": "labels",
        },
        types=None,
        positions=8192,
        position="rope",
        norm="rms",
        norm_bias=False,
        norm_first=True,
        embedding_norm=False,
        bias=False,
        gated=True,
        dropout=False,
    ),
}
"""Encoders by model_type."""
