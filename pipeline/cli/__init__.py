"""The command line. It may import every other room; no other room imports it."""
