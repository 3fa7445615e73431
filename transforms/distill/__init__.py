"""Distill: models are asked for kernels that a compiler would not write, and told what was wrong with them."""
