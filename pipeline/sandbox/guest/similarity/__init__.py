"""Facts about a probed module that tell similar modules apart: its behaviour digest and its operator graph.

Deduplication and decontamination compare them (`transforms.similarity`). Only `guest.jobs.probe` imports this.
"""
