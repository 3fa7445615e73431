"""From a module to Inductor's Triton source, on a machine with no GPU."""
