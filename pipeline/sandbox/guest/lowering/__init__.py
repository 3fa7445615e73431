"""Lower a module to Inductor's Triton source, on a machine without a GPU. The job `lower` imports it."""
