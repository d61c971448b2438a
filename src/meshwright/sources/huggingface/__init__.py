"""Hugging Face config.json files as models."""

from meshwright.sources.huggingface.reader import model_from_config, read_config

__all__ = ["model_from_config", "read_config"]
