"""Parse Inductor's source: its kernels, and the steps of the function that launches them."""
