"""The parts of accuracy.md: what is computed, its tables, its pictures and its text."""
