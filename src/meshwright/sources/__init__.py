"""Descriptions to nouns: the catalog, Hugging Face configurations, cluster and plan files."""
