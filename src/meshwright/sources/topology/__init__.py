"""A pasted topology printout (`nvidia-smi topo -m`, `rocm-smi --showtopo`) as a cluster."""
