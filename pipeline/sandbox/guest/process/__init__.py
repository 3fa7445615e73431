"""The guest as a process: how a warm process starts, forks, and runs one job. Only stdlib until torch is imported."""
