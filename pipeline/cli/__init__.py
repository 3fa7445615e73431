"""The command line. Imports every other room; no other room imports it."""
