"""Publication of a dataset folder: gates, upload to the Hub, pull requests and withdrawals.

Imported by `cli` alone.
"""
