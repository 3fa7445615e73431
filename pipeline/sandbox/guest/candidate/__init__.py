"""Calls of a module under test: construction, state, layouts of inputs, operators, launches and perturbations.

The rooms `compiler`, `interpreter` and `jobs` import it.
"""
