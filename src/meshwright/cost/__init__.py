"""Pure functions from what a rank does to bytes, FLOPs and seconds."""
