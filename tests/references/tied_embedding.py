"""Scores of all words, by the same table that the words were looked up in."""

import torch.nn as nn

INIT_ARGS = "[50, 16]"
WORKLOADS = [
    [{"shape": [3, 9], "dtype": "int64", "high": 50}],
    [{"shape": [2, 14], "dtype": "int64", "high": 50}],
]


class Model(nn.Module):
    def __init__(self, words, size):
        super().__init__()
        self.table = nn.Embedding(words, size)
        self.head = nn.Linear(size, words, bias=False)
        self.head.weight = self.table.weight

    def forward(self, index):
        return self.head(self.table(index))
