"""How `guest/probe.py` finds constructor arguments and workloads, and what it checks."""
