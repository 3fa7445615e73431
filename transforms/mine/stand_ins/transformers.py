"""In place of the small layers, helpers and bases of transformers."""

import torch
from torch import nn

BertLayerNorm = nn.LayerNorm
GradientCheckpointingLayer = nn.Module


class QuickGELUActivation(nn.Module):
    """A GELU by a sigmoid."""

    def forward(self, input):
        return input * torch.sigmoid(1.702 * input)


ACT2FN = {
    "gelu": nn.GELU(),
    "gelu_fast": nn.GELU("tanh"),
    "gelu_new": nn.GELU("tanh"),
    "gelu_pytorch_tanh": nn.GELU("tanh"),
    "leaky_relu": nn.LeakyReLU(),
    "linear": nn.Identity(),
    "mish": nn.Mish(),
    "quick_gelu": QuickGELUActivation(),
    "relu": nn.ReLU(),
    "relu6": nn.ReLU6(),
    "sigmoid": nn.Sigmoid(),
    "silu": nn.SiLU(),
    "swish": nn.SiLU(),
    "tanh": nn.Tanh(),
}


def get_activation(activation_string):
    return ACT2FN[activation_string]


class Conv1D(nn.Module):
    """A linear layer whose weight is transposed."""

    def __init__(self, nf, nx):
        super().__init__()
        self.nf = nf
        self.nx = nx
        self.weight = nn.Parameter(torch.empty(nx, nf))
        self.bias = nn.Parameter(torch.zeros(nf))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], self.nf)


def apply_chunking_to_forward(forward_fn, chunk_size, chunk_dim, *input_tensors):
    """Call a function on chunks of the inputs, and concatenate the results."""
    if chunk_size <= 0:
        return forward_fn(*input_tensors)
    chunks = (tensor.chunk(tensor.shape[chunk_dim] // chunk_size, dim=chunk_dim) for tensor in input_tensors)
    return torch.cat([forward_fn(*each) for each in zip(*chunks)], dim=chunk_dim)


def rotate_half(x):
    """The halves of the last axis in the other order, the second one negated."""
    first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-second, first), dim=-1)


def apply_rotary_pos_emb(q, k, cos, sin, position_ids=None, unsqueeze_dim=1):
    """Rotate queries and keys by their positions."""
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def repeat_kv(hidden_states, n_rep):
    """Each head of keys or values, `n_rep` times."""
    return hidden_states.repeat_interleave(n_rep, dim=1)


class PretrainedConfig:
    """Settings of a model."""

    def __init__(self, **kwargs):
        for name, value in kwargs.items():
            setattr(self, name, value)


PreTrainedConfig = PretrainedConfig


class PreTrainedModel(nn.Module):
    """A model with its settings, without what loads its weights."""

    def __init__(self, config, *args, **kwargs):
        super().__init__()
        self.config = config

    def post_init(self):
        """Weights stay as their layers make them."""

    def init_weights(self):
        """Weights stay as their layers make them."""

    @property
    def device(self):
        return next(self.parameters()).device

    @property
    def dtype(self):
        return next(self.parameters()).dtype


BertPreTrainedModel = PreTrainedModel
