"""The definitions that stand for other packages compute the same as these."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from kernelquarry.pipeline.schema.outcome import Dropped
from kernelquarry.transforms.mine.stand_ins import stand_in
from tests.transforms.mine.golden import kept, mine

torch.manual_seed(0)
X = torch.randn(2, 8, 6, 5)
NODES = torch.tensor([[1.0, 2.0], [3.0, 5.0], [7.0, 11.0], [13.0, 17.0]])
EDGES = torch.tensor([[0, 1, 1, 3], [1, 0, 2, 2]])  # sources and targets
MODULE = "from {module} import {name} as it\nfrom torch import nn\nclass Net(nn.Module):\n    def forward(self, x):\n"


def defined(module: str, name: str) -> Any:
    """The value of an imported name in a mined module."""
    (found,) = kept(mine({"net.py": f"{MODULE.format(module=module, name=name)}        return it\n"}))
    namespace: dict[str, Any] = {}
    exec(found.code, namespace)
    return namespace["Model"]().forward(None)


def in_evaluation(module: nn.Module) -> Any:
    return module.eval()


@pytest.mark.parametrize(
    ("module", "file"),
    [
        ("timm.layers", "timm_layers"),
        ("timm.models.layers.drop", "timm_layers"),
        ("mmengine.model.base_module", "mmcv"),
        ("torch_geometric.nn.conv", "torch_geometric"),
        ("lightning.pytorch", "lightning"),
    ],
)
def test_a_module_of_another_package_has_a_file(module: str, file: str) -> None:
    assert (stand_in(module) or "").endswith(file)


@pytest.mark.parametrize("module", ["timm", "timm.models", "mmcvx", "torch.nn", "torchvision.models", "torchaudio"])
def test_other_modules_have_none(module: str) -> None:
    assert stand_in(module) is None


@pytest.mark.parametrize(
    "line", ["from timm.layers import create_attn as it", "import timm.layers.create_attn as it", "import timm as it"]
)
def test_other_names_stay_missing(line: str) -> None:
    code = f"{line}\nfrom torch import nn\nclass Net(nn.Module):\n    def forward(self, x):\n        return it(x)\n"
    (outcome,) = mine({"net.py": code}).classes
    assert isinstance(outcome, Dropped)
    assert outcome.reason.value in ("forbidden_import", "unresolved_name")


def test_the_package_itself_is_mined_from_its_own_files() -> None:
    own = "from torch import nn\nclass Mlp(nn.Module):\n    def forward(self, x):\n        return x + 1\n"
    other = "from timm.layers import Mlp\nfrom torch import nn\nclass Net(Mlp):\n    pass\n"
    modules = kept(mine({"timm/layers/__init__.py": own, "net.py": other}))
    assert all("x + 1" in module.code for module in modules) and len(modules) == 2


def test_a_class_of_a_base_that_stands_for_another_is_a_module() -> None:
    code = (
        "import pytorch_lightning as pl\nclass Net(pl.LightningModule):\n    def forward(self, x):\n        return -x\n"
    )
    (module,) = kept(mine({"net.py": code}))
    assert "class LightningModule(nn.Module)" in module.code and not module.imported_files


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("timm.models.layers.weight_init", "trunc_normal_"),
        ("timm.models.vision_transformer", "PatchEmbed"),
        ("mmengine.utils", "to_2tuple"),
        ("mmcv.cnn", "trunc_normal_init"),
        ("mmcv.runner", "BaseModule"),
        ("detectron2.modeling.backbone", "Backbone"),
        ("fvcore.nn.weight_init", "c2_xavier_fill"),
        ("torchvision.models._utils", "_make_divisible"),
        ("transformers", "PreTrainedModel"),
    ],
)
def test_a_name_is_defined_in_each_place_that_has_it(module: str, name: str) -> None:
    assert callable(defined(module, name))


def test_tuples() -> None:
    pair = defined("timm.layers", "to_2tuple")
    assert (pair(3), pair([1, 2]), pair("same")) == ((3, 3), (1, 2), ("same", "same"))


@pytest.mark.parametrize("name", ["DropPath", "drop_path"])
def test_whole_samples_are_dropped_while_training(name: str) -> None:
    x = torch.ones(64, 3, 2)
    drop = defined("timm.layers", name)
    training, evaluating = (drop(0.5), drop(0.5).eval()) if name == "DropPath" else (lambda x: drop(x, 0.5, True), drop)
    assert torch.equal(evaluating(x), x)
    dropped = training(x)
    assert {value.item() for value in dropped.unique()} == {0.0, 2.0}
    assert torch.equal(dropped.amin((1, 2)), dropped.amax((1, 2)))


def test_norm_of_channels() -> None:
    norm = nn.LayerNorm(8, eps=1e-6)
    torch.testing.assert_close(defined("timm.layers", "LayerNorm2d")(8)(X), norm(X.movedim(1, -1)).movedim(-1, 1))


def test_networks_of_two_layers() -> None:
    mlp = in_evaluation(defined("timm.layers", "Mlp")(4, 8, norm_layer=nn.LayerNorm, bias=(True, False), drop=0.1))
    x = torch.randn(3, 4)
    torch.testing.assert_close(mlp(x), mlp.fc2(F.layer_norm(F.gelu(mlp.fc1(x)), (8,))))
    assert mlp.fc2.bias is None
    convolutions = in_evaluation(defined("timm.layers", "ConvMlp")(8, 4))
    torch.testing.assert_close(convolutions(X), convolutions.fc2(convolutions.fc1(X).relu()))


def test_attention_of_a_transformer() -> None:
    attention = in_evaluation(defined("timm.models.vision_transformer", "Attention")(8, 2))
    x = torch.randn(2, 5, 8)
    q, k, v = attention.qkv(x).view(2, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
    expected = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    torch.testing.assert_close(attention(x), attention.proj(expected))
    block = in_evaluation(defined("timm.models.vision_transformer", "Block")(8, 2, init_values=0.5, drop_path=0.1))
    y = x + 0.5 * block.attn(block.norm1(x))
    torch.testing.assert_close(block(x), y + 0.5 * block.mlp(block.norm2(y)))


def test_convolution_norm_and_activation() -> None:
    make = defined("mmcv.cnn", "ConvModule")
    module = in_evaluation(make(8, 4, 3, padding=1, norm_cfg={"type": "GN", "num_groups": 2}, act_cfg={"type": "ELU"}))
    assert module.conv.bias is None and module.norm_name == "gn"
    torch.testing.assert_close(module(X), F.elu(F.group_norm(F.conv2d(X, module.conv.weight, padding=1), 2)))
    first = in_evaluation(make(8, 4, 1, norm_cfg={"type": "BN"}, order=("norm", "act", "conv")))
    torch.testing.assert_close(first(X), first.conv(first.bn(X).relu()))
    padded = in_evaluation(make(8, 4, 3, padding=1, act_cfg=None, padding_mode="reflect"))
    torch.testing.assert_close(padded(X), padded.conv(F.pad(X, (1, 1, 1, 1), mode="reflect")))


def test_network_of_openmmlab_adds_its_input() -> None:
    network = in_evaluation(defined("mmcv.cnn.bricks.transformer", "FFN")(8, 16, ffn_drop=0.1))
    x = torch.randn(3, 8)
    torch.testing.assert_close(network(x), x + network.layers[1](network.layers[0][0](x).relu()))


def test_convolution_and_norms_of_detectron2() -> None:
    norms = defined("detectron2.layers", "get_norm")
    module = in_evaluation(defined("detectron2.layers", "Conv2d")(8, 32, 1, norm=norms("GN", 32), activation=F.relu))
    plain = F.conv2d(X, module.weight, module.bias)
    torch.testing.assert_close(module(X), F.group_norm(plain, 32).relu())
    torch.testing.assert_close(norms("FrozenBN", 8)(X), X)
    torch.testing.assert_close(norms("LN", 8)(X), F.layer_norm(X.movedim(1, -1), (8,), eps=1e-6).movedim(-1, 1))
    assert norms("", 8) is None


@pytest.mark.parametrize("module", ["torch_scatter", "torch_geometric.utils"])
@pytest.mark.parametrize(
    ("reduce", "expected"),
    [
        ("sum", [[1, 2], [0, 0], [10, 16]]),
        ("mean", [[1, 2], [0, 0], [5, 8]]),
        ("max", [[1, 2], [0, 0], [7, 11]]),
        ("min", [[1, 2], [0, 0], [3, 5]]),
    ],
)
def test_elements_with_the_same_index_are_reduced(module: str, reduce: str, expected: list[list[float]]) -> None:
    found = defined(module, "scatter")(NODES[:3], torch.tensor([0, 2, 2]), dim=0, dim_size=3, reduce=reduce)
    assert found.tolist() == expected


def test_softmax_of_elements_with_the_same_index() -> None:
    index = torch.tensor([1, 0, 1, 1])
    values = torch.randn(4, 2)
    expected = torch.empty(4, 2)
    for number in (0, 1):
        expected[index == number] = values[index == number].softmax(0)
    torch.testing.assert_close(defined("torch_geometric.utils", "softmax")(values, index), expected)
    torch.testing.assert_close(defined("torch_scatter", "scatter_softmax")(values, index, dim=0), expected)


def test_messages_arrive_at_the_targets_of_edges() -> None:
    passing = defined("torch_geometric.nn", "MessagePassing")
    assert passing().propagate(EDGES, x=NODES).tolist() == [[3, 5], [1, 2], [16, 22], [0, 0]]
    back = passing(aggr="max", flow="target_to_source")
    assert back.propagate(EDGES, x=NODES).tolist() == [[3, 5], [7, 11], [0, 0], [7, 11]]


def test_messages_have_both_ends_of_an_edge_and_its_weight() -> None:
    class Weighted(defined("torch_geometric.nn", "MessagePassing")):  # type: ignore[misc]
        def message(self, x_i: torch.Tensor, x_j: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return weight * (x_i - x_j)

        def update(self, out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return out + x

    weight = torch.tensor([[1.0], [10.0], [100.0], [1000.0]])
    found = Weighted().propagate(EDGES, x=NODES, weight=weight)
    expected = NODES.clone()
    for (source, target), factor in zip(EDGES.T.tolist(), weight, strict=True):
        expected[target] += factor * (NODES[target] - NODES[source])
    torch.testing.assert_close(found, expected)


def test_convolutions_of_graphs() -> None:
    adjacency = torch.zeros(4, 4)
    adjacency[EDGES[1], EDGES[0]] = 1.0
    looped = adjacency + torch.eye(4)
    root = looped.sum(1).rsqrt()
    gcn = defined("torch_geometric.nn", "GCNConv")(2, 3)
    torch.testing.assert_close(gcn(NODES, EDGES), root[:, None] * looped * root @ gcn.lin(NODES) + gcn.bias)
    sage = defined("torch_geometric.nn", "SAGEConv")(2, 3)
    mean = adjacency @ NODES / adjacency.sum(1, keepdim=True).clamp(min=1)
    torch.testing.assert_close(sage(NODES, EDGES), sage.lin_l(mean) + sage.lin_r(NODES))
    gin = defined("torch_geometric.nn", "GINConv")(nn.Linear(2, 3), eps=0.5)
    torch.testing.assert_close(gin(NODES, EDGES), gin.nn(adjacency @ NODES + 1.5 * NODES))
    gat = defined("torch_geometric.nn", "GATConv")(2, 3)
    x = gat.lin(NODES)
    scores = (x @ gat.att_dst[0].T) + (x @ gat.att_src[0].T).T
    weights = F.leaky_relu(scores, 0.2).masked_fill(looped == 0, -torch.inf).softmax(1)
    torch.testing.assert_close(gat(NODES, EDGES), weights @ x + gat.bias)


def test_hyperparameters_are_the_arguments_of_the_constructor() -> None:
    code = (
        "from lightning.pytorch import LightningModule\n"
        "class Net(LightningModule):\n"
        "    def __init__(self, size, rate=0.5):\n"
        "        super().__init__()\n"
        "        self.save_hyperparameters()\n"
        "    def forward(self, x):\n"
        "        return x * self.hparams.size\n"
    )
    (module,) = kept(mine({"net.py": code}))
    namespace: dict[str, Any] = {}
    exec(module.code, namespace)
    net = namespace["Model"](3)
    assert net(2) == 6 and net.hparams == {"size": 3, "rate": 0.5}


def test_transposed_linear_layer() -> None:
    layer = defined("transformers.pytorch_utils", "Conv1D")(3, 8)
    x = torch.randn(2, 5, 8)
    torch.testing.assert_close(layer(x), F.linear(x, layer.weight.T, layer.bias))


def test_chunks_give_what_the_whole_gives() -> None:
    chunked = defined("transformers.modeling_utils", "apply_chunking_to_forward")
    x = torch.randn(2, 6, 3)
    assert torch.equal(chunked(torch.exp, 2, 1, x), x.exp()) and torch.equal(chunked(torch.exp, 0, 1, x), x.exp())


def test_blocks_of_torchvision() -> None:
    block = in_evaluation(defined("torchvision.ops.misc", "Conv2dNormActivation")(8, 4, 3, dilation=2))
    assert isinstance(block, nn.Sequential) and block[0].padding == (2, 2) and block[0].bias is None
    squeeze = in_evaluation(defined("torchvision.ops", "SqueezeExcitation")(8, 2))
    gates = squeeze.fc2(squeeze.fc1(X.mean((2, 3), keepdim=True)).relu()).sigmoid()
    torch.testing.assert_close(squeeze(X), gates * X)
