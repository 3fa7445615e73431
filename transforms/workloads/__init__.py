"""Workloads at other sizes, and the conditions on sizes that a kernel is valid under."""
