"""The command line.

It may import every other folder; no other folder imports it.
"""
