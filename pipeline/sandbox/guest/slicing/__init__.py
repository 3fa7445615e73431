"""Record the calls of PyTorch that a forward makes: layers, functions, methods and operators, as people write them."""
