"""Predictions held against measurements: published tables or one's own runs."""
