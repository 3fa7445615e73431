"""Workloads at other sizes, and guards: conditions on sizes under which a kernel is valid.

The stages that make, verify or time candidates import it.
"""
