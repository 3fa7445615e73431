"""Calling a candidate: constructing it, loading its state, laying out inputs, running its trials, counting its
operators.
"""
