"""In place of the layers and helpers of torch_geometric that need no sparse matrix."""

import inspect
import math

import torch
from torch import nn


class SparseTensor:
    """A sparse matrix of torch_sparse, which no input is."""


def maybe_num_nodes(edge_index, num_nodes=None):
    """The number of nodes: one more than the largest index, unless it is known."""
    return num_nodes if num_nodes is not None else int(edge_index.max()) + 1


def scatter(src, index, dim=0, dim_size=None, reduce="sum"):
    """The sum, mean, product, minimum or maximum of the elements with each index; 0 for no element."""
    dim = dim + src.dim() if dim < 0 else dim
    size = list(src.shape)
    size[dim] = maybe_num_nodes(index, dim_size)
    index = index.view([-1 if axis == dim else 1 for axis in range(src.dim())]).expand(src.shape)
    if reduce in ("sum", "add", "mean"):
        total = src.new_zeros(size).scatter_add(dim, index, src)
        if reduce != "mean":
            return total
        return total / src.new_zeros(size).scatter_add(dim, index, torch.ones_like(src)).clamp(min=1)
    kind = {"mul": "prod", "min": "amin", "max": "amax"}[reduce]
    return src.new_zeros(size).scatter_reduce(dim, index, src, kind, include_self=False)


def softmax(src, index, ptr=None, num_nodes=None, dim=0):
    """The softmax of the elements with each index."""
    nodes = maybe_num_nodes(index, num_nodes)
    powers = (src - scatter(src.detach(), index, dim, nodes, "max").index_select(dim, index)).exp()
    return powers / (scatter(powers, index, dim, nodes) + 1e-16).index_select(dim, index)


def degree(index, num_nodes=None, dtype=None):
    """How often each index occurs."""
    ones = torch.ones(index.shape[0], dtype=dtype or torch.get_default_dtype(), device=index.device)
    return scatter(ones, index, 0, num_nodes)


def add_self_loops(edge_index, edge_attr=None, fill_value=1.0, num_nodes=None):
    """The edges, and one from each node to itself."""
    nodes = torch.arange(maybe_num_nodes(edge_index, num_nodes), device=edge_index.device)
    if edge_attr is not None:
        edge_attr = torch.cat([edge_attr, edge_attr.new_full((len(nodes), *edge_attr.shape[1:]), fill_value)])
    return torch.cat([edge_index, torch.stack([nodes, nodes])], dim=1), edge_attr


def remove_self_loops(edge_index, edge_attr=None):
    """The edges between two nodes."""
    kept = edge_index[0] != edge_index[1]
    return edge_index[:, kept], None if edge_attr is None else edge_attr[kept]


def global_add_pool(x, batch, size=None):
    """The sum of the nodes of each graph."""
    return x.sum(dim=-2, keepdim=x.dim() == 2) if batch is None else scatter(x, batch, -2, size)


def global_mean_pool(x, batch, size=None):
    """The mean of the nodes of each graph."""
    return x.mean(dim=-2, keepdim=x.dim() == 2) if batch is None else scatter(x, batch, -2, size, "mean")


def global_max_pool(x, batch, size=None):
    """The maximum of the nodes of each graph."""
    return x.max(dim=-2, keepdim=x.dim() == 2)[0] if batch is None else scatter(x, batch, -2, size, "max")


def glorot(value):
    if value is not None:
        bound = math.sqrt(6.0 / (value.size(-2) + value.size(-1)))
        nn.init.uniform_(value, -bound, bound)


def uniform(size, value):
    if value is not None:
        nn.init.uniform_(value, -1.0 / math.sqrt(size), 1.0 / math.sqrt(size))


def zeros(value):
    if value is not None:
        nn.init.zeros_(value)


def ones(value):
    if value is not None:
        nn.init.ones_(value)


def reset(value):
    """Initialise the weights of a module and its parts again."""
    if hasattr(value, "reset_parameters"):
        value.reset_parameters()
    else:
        for child in value.children() if hasattr(value, "children") else []:
            reset(child)


class Linear(nn.Linear):
    """A linear layer."""

    def __init__(self, in_channels, out_channels, bias=True, weight_initializer=None, bias_initializer=None):
        super().__init__(in_channels, out_channels, bias)
        self.in_channels, self.out_channels = in_channels, out_channels


class BatchNorm(nn.Module):
    """Over the nodes of a graph."""

    def __init__(self, in_channels, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True):
        super().__init__()
        self.module = nn.BatchNorm1d(in_channels, eps, momentum, affine, track_running_stats)

    def forward(self, x):
        return self.module(x)


class MessagePassing(nn.Module):
    """Sends a message along each edge of a graph, and aggregates those that arrive at a node."""

    def __init__(self, aggr="add", flow="source_to_target", node_dim=-2, **kwargs):
        super().__init__()
        self.aggr, self.flow, self.node_dim = aggr, flow, node_dim
        methods = ("message", "aggregate", "update")
        self._arguments = {name: list(inspect.signature(getattr(self, name)).parameters) for name in methods}

    def propagate(self, edge_index, size=None, **kwargs):
        """Call `message`, `aggregate` and `update` with the arguments that they name.

        `x_i` is `x` at the target of each edge, and `x_j` at its source.
        """
        ends = {"_i": 1, "_j": 0} if self.flow == "source_to_target" else {"_i": 0, "_j": 1}
        sizes = list(size) if size is not None else [None, None]
        given = {**kwargs, "edge_index": edge_index, "index": edge_index[ends["_i"]], "ptr": None}
        for name in (name for names in self._arguments.values() for name in names):
            if name[-2:] in ends and name[:-2] in kwargs:
                end, value = ends[name[-2:]], kwargs[name[:-2]]
                if isinstance(value, (tuple, list)):
                    for other in (0, 1):
                        if sizes[other] is None and value[other] is not None:
                            sizes[other] = value[other].shape[self.node_dim]
                    value = value[end]
                elif value is not None and sizes == [None, None]:
                    sizes = [value.shape[self.node_dim]] * 2
                given[name] = None if value is None else value.index_select(self.node_dim, edge_index[end])
        target, source = sizes[ends["_i"]], sizes[ends["_j"]]
        given |= {"size": sizes, "size_i": target, "size_j": source}
        given["dim_size"] = target if target is not None else source
        message = self.message(**{name: given[name] for name in self._arguments["message"]})
        out = self.aggregate(message, **{name: given[name] for name in self._arguments["aggregate"][1:]})
        return self.update(out, **{name: given[name] for name in self._arguments["update"][1:]})

    def message(self, x_j):
        return x_j

    def aggregate(self, inputs, index, ptr=None, dim_size=None):
        return scatter(inputs, index, self.node_dim, dim_size, self.aggr)

    def update(self, inputs):
        return inputs


class GCNConv(MessagePassing):
    """The mean of a node's neighbours and itself, weighted by the roots of their degrees, after a linear layer."""

    def __init__(
        self, in_channels, out_channels, improved=False, cached=False, add_self_loops=True, normalize=True, bias=True,
        **kwargs,
    ):  # fmt: skip
        super().__init__(**kwargs)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.improved, self.add_self_loops, self.normalize = improved, add_self_loops, normalize
        self.lin = Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    def forward(self, x, edge_index, edge_weight=None):
        if edge_weight is None:
            edge_weight = x.new_ones(edge_index.shape[1])
        if self.normalize:
            nodes = x.shape[self.node_dim]
            if self.add_self_loops:
                fill = 2.0 if self.improved else 1.0
                edge_index, edge_weight = add_self_loops(edge_index, edge_weight, fill, nodes)
            root = scatter(edge_weight, edge_index[1], 0, nodes).pow(-0.5)
            root = root.masked_fill(root == float("inf"), 0.0)
            edge_weight = root[edge_index[0]] * edge_weight * root[edge_index[1]]
        out = self.propagate(edge_index, x=self.lin(x), edge_weight=edge_weight)
        return out if self.bias is None else out + self.bias

    def message(self, x_j, edge_weight):
        return edge_weight.view(-1, 1) * x_j


class SAGEConv(MessagePassing):
    """Linear layers of a node and of the mean of its neighbours, added."""

    def __init__(
        self, in_channels, out_channels, aggr="mean", normalize=False, root_weight=True, project=False, bias=True,
        **kwargs,
    ):  # fmt: skip
        super().__init__(aggr, **kwargs)
        self.normalize, self.root_weight = normalize, root_weight
        sizes = in_channels if isinstance(in_channels, (tuple, list)) else (in_channels, in_channels)
        self.lin_l = Linear(sizes[0], out_channels, bias=bias)
        self.lin_r = Linear(sizes[1], out_channels, bias=False) if root_weight else None

    def forward(self, x, edge_index, size=None):
        pair = (x, x) if isinstance(x, torch.Tensor) else x
        out = self.lin_l(self.propagate(edge_index, size, x=pair))
        if self.lin_r is not None and pair[1] is not None:
            out = out + self.lin_r(pair[1])
        return nn.functional.normalize(out, dim=-1) if self.normalize else out


class GINConv(MessagePassing):
    """A network of a node's neighbours and itself, added."""

    def __init__(self, nn, eps=0.0, train_eps=False, **kwargs):
        super().__init__(**kwargs)
        self.nn = nn
        value = torch.full((1,), float(eps))
        if train_eps:
            self.eps = torch.nn.Parameter(value)
        else:
            self.register_buffer("eps", value)

    def forward(self, x, edge_index, size=None):
        pair = (x, x) if isinstance(x, torch.Tensor) else x
        out = self.propagate(edge_index, size, x=pair)
        return self.nn(out if pair[1] is None else out + (1 + self.eps) * pair[1])


class GATConv(MessagePassing):
    """The neighbours of a node and itself, weighted by attention."""

    def __init__(
        self, in_channels, out_channels, heads=1, concat=True, negative_slope=0.2, dropout=0.0, add_self_loops=True,
        bias=True, **kwargs,
    ):  # fmt: skip
        super().__init__(node_dim=0, **kwargs)
        self.heads, self.out_channels, self.concat = heads, out_channels, concat
        self.negative_slope, self.dropout, self.add_self_loops = negative_slope, dropout, add_self_loops
        self.lin = Linear(in_channels, heads * out_channels, bias=False)
        self.att_src = nn.Parameter(torch.empty(1, heads, out_channels))
        self.att_dst = nn.Parameter(torch.empty(1, heads, out_channels))
        self.bias = nn.Parameter(torch.zeros(heads * out_channels if concat else out_channels)) if bias else None
        glorot(self.att_src)
        glorot(self.att_dst)

    def forward(self, x, edge_index):
        x = self.lin(x).view(-1, self.heads, self.out_channels)
        alpha = (x * self.att_src).sum(-1), (x * self.att_dst).sum(-1)
        if self.add_self_loops:
            edge_index, _ = add_self_loops(*remove_self_loops(edge_index), num_nodes=x.shape[0])
        out = self.propagate(edge_index, x=x, alpha=alpha)
        out = out.flatten(1) if self.concat else out.mean(dim=1)
        return out if self.bias is None else out + self.bias

    def message(self, x_j, alpha_j, alpha_i, index, size_i):
        alpha = nn.functional.leaky_relu(alpha_j + alpha_i, self.negative_slope)
        alpha = nn.functional.dropout(softmax(alpha, index, None, size_i), self.dropout, self.training)
        return x_j * alpha.unsqueeze(-1)
