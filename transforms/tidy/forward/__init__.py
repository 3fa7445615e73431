"""Write `forward` and, with gradients, the `torch.autograd.Function` that it calls."""
