"""Text generation by a model: loading it, sampling, serving it, and writing one kernel."""
