"""Detection of state that a candidate keeps between calls, exceptions that it catches, and settings that it changes.

The room `jobs` imports it.
"""
