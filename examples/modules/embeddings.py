"""An embedding."""

import torch
from torch import nn


class TokenEmbedding(nn.Module):
    """Sum of token and position embeddings, normalized as in BERT."""

    def __init__(self, vocab_size: int, dim: int, max_length: int = 64):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, dim)
        self.positions = nn.Parameter(torch.randn(max_length, dim) * 0.02)
        self.norm = nn.LayerNorm(dim)

    def forward(self, input_ids):
        return self.norm(self.tokens(input_ids) + self.positions[: input_ids.shape[1]])
