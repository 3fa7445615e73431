"""The pipeline: the list of stages (`graph`), and a room for each thing that is done with them."""
