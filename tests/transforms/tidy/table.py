"""A table of small modules that go through lower, tidy and verify, grouped by operators.

A case has a name, what `forward` returns (or its body), and the calls that it is lowered for. Sizes differ between
the calls wherever the kernel should take them as arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from modules import Call, Shape, probed, source, whole

from kernelquarry.pipeline.schema.records import Probed


@dataclass(frozen=True)
class Case:
    name: str
    forward: str
    calls: list[Call]
    options: Mapping[str, str] = field(default_factory=dict)  # of `modules.source`
    kernels: int | None = None  # None where another release of torch may well fuse in another way
    shape_general: bool = True
    since: str = ""  # release of torch before which Inductor leaves it to aten

    def probed(self) -> Probed:
        return probed(source(self.forward, **self.options), *self.calls)


def _x(*shapes: Shape) -> list[Call]:
    return [Call({"x": shape}) for shape in shapes]


def _xy(*pairs: tuple[Any, Any]) -> list[Call]:
    return [Call({"x": x, "y": y}) for x, y in pairs]


def _layers(*lines: str) -> dict[str, str]:
    return {"layers": "\n".join(lines)}


def _integers(high: int, *shapes: Shape) -> list[Call]:
    return [Call({"x": whole(shape, high)}) for shape in shapes]


_XY = {"signature": "x, y"}
_ROWS = [(6, 17), (9, 5)]
_IMAGES = [(2, 4, 9, 11), (3, 4, 10, 7)]

# fmt: off
CASES = [
    # Pointwise
    Case("gelu_tanh", "F.gelu(x, approximate='tanh')", _x(*_ROWS), kernels=1),
    Case("broadcast", "torch.where(x > y, x * y, x - y[:, :1])", _xy(((6, 17), (6, 17)), ((9, 5), (9, 5))), _XY, 1),
    Case("clamp", "x.clamp(-0.5, 2.0).abs().sqrt() + torch.sign(x) * F.softplus(x)", _x(*_ROWS), kernels=1),
    Case("activations", "F.silu(x) + F.elu(x) + F.hardswish(x) + F.leaky_relu(x, 0.2) + x.sigmoid().log1p()",
         _x(*_ROWS), kernels=1),
    Case("product_rounded", "torch.addcmul(x.abs().sqrt(), x.sin(), x, value=-1)", _x(*_ROWS), kernels=1),
    Case("angle_of_a_number", "x * torch.deg2rad(torch.tensor(395.0) % 360.0).cos()", _x(*_ROWS), kernels=1),
    Case("functions", "(x.round() + x.floor() * x.ceil()).pow(3) + torch.erf(x) + x.atan()", _x(*_ROWS), kernels=1),
    # Reductions
    Case("sum", "x.sum(1)", _x((6, 40, 3), (4, 21, 7)), kernels=1),
    Case("by_root_of_size", "torch.softmax(x / math.sqrt(x.size(-1)), -1)", _x(*_ROWS), kernels=1),
    Case("standardised", "(x - x.mean((2, 3), keepdim=True)) / (x.std((2, 3), keepdim=True) + 1e-3)", _x(*_IMAGES)),
    Case("long_rows", "x.square().mean(-1).sqrt()", _x((3, 2100), (2, 1500)), kernels=1),
    Case("sum_of_groups", "x.view(x.shape[0], x.shape[1] // 2, 2, -1).sum(2)", _x((2, 4, 9), (3, 6, 10)), kernels=1),
    Case("arg_max", "x.max(1).values * 2 + x.argmin(1).float()", _x((6, 40), (4, 21))),
    Case("vector_norm", "F.normalize(x, dim=1) * x.shape[1] ** 0.5", _x((4, 24, 3), (2, 10, 5))),
    Case("counts", "(x > 0.5).sum() + (x < 0).long().sum() * x", _x((6, 17), (9, 5))),
    Case("prod_any", "x.prod(1) + (x > 1).any(1).float()", _x((4, 7), (6, 5))),
    Case("logsumexp", "torch.logsumexp(x, 0)", _x((12, 7), (9, 20))),
    # Softmax and normalisations
    Case("softmax", "torch.softmax(x, -1)", _x((6, 40), (4, 21)), kernels=1),
    Case("log_softmax", "F.log_softmax(x, 1)", _x((3, 19, 5), (2, 30, 4))),
    Case("layer_norm", "self.norm(x)", _x((6, 24), (4, 24)), _layers("self.norm = nn.LayerNorm(24)"), 1),
    Case("rms_norm", "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight", _x((6, 24), (4, 24)),
         _layers("self.weight = nn.Parameter(torch.ones(24))"), 1),
    Case("batch_norm", "F.relu(self.bn(x))", _x(*_IMAGES), _layers("self.bn = nn.BatchNorm2d(4)"), 1),
    Case("group_norm", "self.norm(x)", _x(*_IMAGES), _layers("self.norm = nn.GroupNorm(2, 4)")),
    # Convolutions
    Case("padding_beside_a_single_value", "x * self.conv(x.mean((2, 3)).view(2, 1, 1)).view(2, 1, 1, 1)",
         _x((2, 1, 12, 20)), _layers("self.conv = nn.Conv1d(1, 1, 3, padding=1)")),
    Case("conv1d", "F.relu(self.conv(x))", _x((2, 6, 20), (3, 6, 17)),
         _layers("self.conv = nn.Conv1d(6, 12, 3, padding=1)"), 1),
    Case("conv2d", "self.conv(x)", _x(*_IMAGES), _layers("self.conv = nn.Conv2d(4, 9, 3, stride=2, padding=1)"), 1),
    Case("conv2d_narrow", "self.conv(x)", _x(*_IMAGES), _layers("self.conv = nn.Conv2d(4, 2, 3)"), 1),
    Case("conv2d_dilated", "self.conv(x)", _x(*_IMAGES), _layers("self.conv = nn.Conv2d(4, 10, 3, dilation=2)")),
    Case("conv2d_grouped", "self.conv(x)", _x((2, 12, 7, 9), (3, 12, 8, 6)),
         _layers("self.conv = nn.Conv2d(12, 24, 3, groups=3)")),
    Case("conv2d_depthwise", "self.bn(self.conv(x)).relu()", _x(*_IMAGES),
         _layers("self.conv = nn.Conv2d(4, 4, 3, padding=1, groups=4)", "self.bn = nn.BatchNorm2d(4)"), 1),
    Case("conv2d_one_pixel", "self.conv(x).flatten(1)", _x((5, 4, 3, 3), (7, 4, 3, 3)),
         _layers("self.conv = nn.Conv2d(4, 20, 3)"), 1),
    Case("conv2d_shrunk", "F.softshrink(self.conv(x), 0.2)", _x((2, 32, 5, 7), (3, 32, 6, 4)),
         _layers("self.conv = nn.Conv2d(32, 32, 1, bias=False)"), 1),
    Case("conv3d", "self.conv(x)", _x((2, 4, 5, 6, 7), (3, 4, 4, 7, 5)),
         _layers("self.conv = nn.Conv3d(4, 8, 3, padding=1)"), 1),
    Case("conv_transposed_1d", "self.conv(x)", _x((2, 6, 9), (3, 6, 13)),
         _layers("self.conv = nn.ConvTranspose1d(6, 8, 4, stride=2)")),
    Case("conv_transposed_2d", "self.conv(x)", _x((2, 6, 5, 7), (3, 6, 6, 4)),
         _layers("self.conv = nn.ConvTranspose2d(6, 9, 3, stride=2, padding=1, output_padding=1)")),
    Case("conv_and_pool", "F.max_pool2d(self.conv(x).relu(), 2)", _x(*_IMAGES),
         _layers("self.conv = nn.Conv2d(4, 9, 3, padding=1)")),
    Case("conv_beside_pool", "self.b(self.a(x)) + F.max_pool2d(x, 3, stride=1, padding=1)",
         _x((2, 9, 6, 8), (3, 9, 5, 9)),
         _layers("self.a = nn.Conv2d(9, 9, 3, padding=1, groups=9)", "self.b = nn.Conv2d(9, 9, 1)")),
    # Poolings
    Case("avg_pool", "F.avg_pool2d(x, 3, stride=2, padding=1)", _x(*_IMAGES), kernels=1),
    Case("avg_pool_ceil", "F.avg_pool2d(x, 2, ceil_mode=True, count_include_pad=False)", _x(*_IMAGES), kernels=1),
    Case("avg_pool_large", "F.avg_pool2d(x, 7)", _x((2, 3, 15, 14), (3, 3, 14, 21)), kernels=1),
    Case("adaptive_pool", "F.adaptive_avg_pool2d(x, (3, 2))", _x(*_IMAGES), kernels=1),
    Case("global_pool", "F.adaptive_avg_pool2d(x, 1).flatten(1)", _x(*_IMAGES), kernels=1),
    Case("pool_over_all", """
         whole = F.max_pool2d(x, (x.size(2), x.size(3))).flatten(1)
         return F.avg_pool2d(x, x.shape[2:]).flatten(1) + whole""",
         _x(*_IMAGES), kernels=1),
    Case("max_pool", "F.max_pool2d(x, 3, stride=2, padding=1)", _x(*_IMAGES), kernels=1),
    Case("max_pool_1d", "F.max_pool1d(x, 2)", _x((2, 4, 12), (3, 4, 9)), kernels=1, shape_general=False),
    # Products
    Case("linear", "F.gelu(self.fc(x))", _x((6, 20), (9, 20)), _layers("self.fc = nn.Linear(20, 33)"), 1),
    Case("matmul", "x @ y.T + 1", _xy(((20, 70), (18, 70)), ((35, 90), (17, 90))), _XY, 1),
    Case("bmm", "torch.bmm(x, y)", _xy(((3, 20, 18), (3, 18, 17)), ((2, 9, 30), (2, 30, 21))), _XY, 1),
    Case("matmul_of_rows", "torch.cat([x, y]) @ self.weight", _xy(((5, 16), (4, 16)), ((3, 16), (6, 16))),
         _XY | _layers("self.weight = nn.Parameter(torch.ones(16, 20))"), 1),
    Case("matmul_of_two_rows", "torch.cat([x[:1], y[1:2] * 2]) @ self.weight",
         _xy(((5, 16), (4, 16)), ((3, 16), (6, 16))),
         _XY | _layers("self.weight = nn.Parameter(torch.ones(16, 20))"), 1),
    Case("matmul_by_columns", "x @ torch.cat([self.a.expand(16, 8), self.b.expand(16, 12)], 1)", _x((6, 16), (9, 16)),
         _layers("self.a = nn.Parameter(torch.ones(16, 1))", "self.b = nn.Parameter(torch.ones(16, 1))"), 1),
    Case("matmul_beside_reduction", "x @ self.weight + (x[:, None] - self.weight).amax(-1)", _x((6, 16), (9, 16)),
         _layers("self.weight = nn.Parameter(torch.ones(16, 16))"), 2),
    Case("product_beside_nothing", "torch.baddbmm(torch.empty(1), x, x.transpose(1, 2), beta=0, alpha=0.5).softmax(-1)",
         _x((2, 16, 8), (3, 20, 8))),
    Case("matmul_and_parts", "x @ self.weight + torch.cat([self.a, self.b])", _x((6, 16), (9, 16)),
         _layers("self.weight = nn.Parameter(torch.ones(16, 20))", "self.a = nn.Parameter(torch.ones(8))",
                 "self.b = nn.Parameter(torch.ones(12))")),
    Case("vector", "x @ self.weight", _x((6, 24), (9, 24)), _layers("self.weight = nn.Parameter(torch.ones(24))"), 1),
    Case("to_one", "F.leaky_relu(self.a(x) + self.b(x).T)", _x((6, 24), (9, 24)),
         _layers("self.a = nn.Linear(24, 1)", "self.b = nn.Linear(24, 1)")),
    Case("of_one_row", "torch.einsum('bhnd,bhd->bhn', x, x.sum(2))", _x((2, 3, 9, 8), (3, 2, 7, 8))),
    Case("bilinear_form", "self.form(x, y)", _xy(((5, 6), (5, 7)), ((9, 6), (9, 7))),
         _XY | _layers("self.form = nn.Bilinear(6, 7, 4)")),
    Case("distances", "torch.cdist(x, y)", _xy(((5, 6), (7, 6)), ((9, 6), (4, 6))), _XY, 1),
    Case("outer", "torch.einsum('bi,bj->bij', x, y)", _xy(((3, 5), (3, 9)), ((4, 7), (4, 6))), _XY, 1),
    Case("attention", "F.scaled_dot_product_attention(x, y, y)",
         _xy(((2, 2, 9, 8), (2, 2, 12, 8)), ((3, 2, 7, 8), (3, 2, 10, 8))), _XY),
    Case("flash_attention", """
         with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
             return F.scaled_dot_product_attention(x, x, x, is_causal=True)""", _x((2, 2, 9, 8), (3, 2, 12, 8))),
    Case("multihead", "self.attention(x, x, x)[0]", _x((2, 6, 16), (3, 5, 16)),
         _layers("self.attention = nn.MultiheadAttention(16, 2)")),
    Case("multihead_by_batches", "self.attention(x, x, x)", _x((2, 6, 16), (3, 5, 16)),
         _layers("self.attention = nn.MultiheadAttention(16, 2, batch_first=True)")),
    Case("multihead_masked", "self.attention(x, y, y, key_padding_mask=z > 1, need_weights=False)[0]",
         [Call({"x": (2, 6, 16), "y": (2, 5, 16), "z": (2, 5)}), Call({"x": (3, 4, 16), "y": (3, 7, 16), "z": (3, 7)})],
         {"signature": "x, y, z",
          **_layers("self.attention = nn.MultiheadAttention(16, 2, batch_first=True)")}),
    Case("gru", "self.rnn(x)[0]", _x((3, 2, 16)), _layers("self.rnn = nn.GRU(16, 16)")),
    # Memory
    Case("cat", "torch.cat([x, y.relu()], 1)", _xy(((4, 6), (4, 9)), ((3, 7), (3, 5))), _XY, 1),
    Case("gru_and_its_state", "self.rnn(x)", _x((3, 2, 16)), _layers("self.rnn = nn.GRU(16, 16)")),
    Case("lstm_and_its_states", "self.rnn(x)", _x((2, 2, 8)), _layers("self.rnn = nn.LSTM(8, 8, batch_first=True)")),
    Case("cat_of_one", "torch.cat([(x * 2).transpose(1, 2)], 2)", _x((4, 6, 5), (3, 7, 2))),
    Case("cat_of_one_place", "torch.cat([self.a[3:4].expand(5), x]) * 2", _x((12,), (9,)),
         _layers("self.a = nn.Parameter(torch.ones(8))"), 1),
    Case("stack_roll_flip", "torch.stack([x, x.flip(1)], 1) + x.roll(1, 1)[:, None]", _x(*_ROWS), kernels=1),
    Case("gather", "x.gather(1, y)", _xy(((6, 12), whole((6, 5), 12)), ((4, 12), whole((4, 7), 12))), _XY, 1),
    Case("index", "x[y] * 2", _xy(((12, 5), whole((7,), 12)), ((12, 6), whole((4,), 12))), _XY, 1),
    Case("embedding", "self.table(x)", _integers(20, (3, 7), (2, 5)), _layers("self.table = nn.Embedding(20, 6)"), 1),
    Case("bags", "self.table(x) + self.sums(x, per_sample_weights=y)", [
        Call({"x": whole(shape, 20), "y": shape}) for shape in ((3, 7), (2, 5))
    ], {"signature": "x, y"} | _layers("self.table = nn.EmbeddingBag(20, 6)",
                                       "self.sums = nn.EmbeddingBag(20, 6, mode='sum')"), 1),
    Case("one_hot", "F.one_hot(x, 7).float() @ self.table", _integers(7, (3, 7), (2, 5)),
         _layers("self.table = nn.Parameter(torch.ones(7, 20))"), 1),
    Case("one_hot_of_any_number", "F.one_hot(y, x.shape[1]) * x",
         _xy(((6, 8), whole((6,), 8)), ((9, 5), whole((9,), 5))), _XY, 1),
    Case("scatter", "torch.zeros_like(x).scatter(1, y, x[:, :1].expand_as(y))",
         _xy(((6, 12), whole((6, 4), 12)), ((5, 12), whole((5, 4), 12))), _XY),
    Case("scatter_add", "x.scatter_add(1, y, torch.full_like(x[:, :4], 0.5))",
         _xy(((6, 12), whole((6, 4), 12)), ((5, 12), whole((5, 4), 12))), _XY),
    Case("nearest", "F.interpolate(x, scale_factor=2, mode='nearest')", _x(*_IMAGES), kernels=1),
    Case("nearest, smaller", "F.interpolate(x, scale_factor=0.5, mode='nearest')", _x(*_IMAGES), kernels=1),
    Case("bilinear", "F.interpolate(x, size=(9, 7), mode='bilinear', align_corners=False)", _x(*_IMAGES), kernels=1),
    Case("reflected", "F.pad(x, (1, 2), mode='reflect')", _x((2, 3, 7), (3, 2, 9)), kernels=1),
    Case("pixel_shuffle", "F.pixel_shuffle(x, 2) * 2", _x(*_IMAGES), kernels=1),
    Case("windows", "x.unfold(1, 4, 2).sum(-1)", _x((3, 12), (2, 17)), kernels=1),
    Case("permuted", "x.permute(0, 2, 1).contiguous() * 2", _x((2, 6, 40), (3, 5, 21)), kernels=1),
    Case("triangle", "x.tril() + torch.arange(x.shape[1])", _x((8, 9), (6, 14)), kernels=1),
    # Scans and sorting
    Case("cumsum", "x.cumsum(1)", _x((4, 9), (3, 14)), kernels=1),
    Case("cummax", "x.cummax(1).values", _x((4, 9), (3, 14)), kernels=1),
    Case("logcumsumexp", "x.logcumsumexp(1)", _x((4, 9), (3, 14)), kernels=1),
    Case("sort", "x.sort(1, descending=True).values", _x((4, 9), (3, 14)), shape_general=False, since="2.13"),
    Case("sort_of_whole_blocks", "x.sort(1).values", _x((4, 16), (3, 16)), since="2.13"),
    Case("topk", "x.topk(3, 1).values", _x((4, 9), (3, 14)), shape_general=False, since="2.13"),
    # What forward takes and gives
    Case("two_outputs", "x.sin(), x.sum()", _x(*_ROWS)),
    Case("nested_outputs", "{'mean': x.mean(1), 'parts': [x + 1, (x * 2, None, 3)]}", _x(*_ROWS)),
    Case("sizes_in_outputs", "(F.avg_pool2d(x, 2), (x.shape[2] // 2, x.shape[3] // 2), {'images': x.shape[0]})",
         _x(*_IMAGES), kernels=1),
    Case("keywords", "x * scale + (y if flip else -y)",
         [Call({"x": shape, "y": shape}, [{"tensor": 0}, 2.5], {"y": {"tensor": 1}, "flip": True}) for shape in _ROWS],
         {"signature": "x, scale, *, y, flip=False"}, 1),
    Case("nested_inputs", "xs[0] @ xs[1] + options['bias']",
         [Call({"a": (m, k), "b": (k, n), "c": (n,)}, [[{"tensor": 0}, {"tensor": 1}]],
               {"options": {"bias": {"tensor": 2}}}) for m, n, k in ((16, 24, 20), (18, 17, 30))],
         {"signature": "xs, options"}, 1),
    Case("input_of_no_use", "x.relu() * 2", _xy(((6, 8), (5, 3)), ((9, 8), (4, 7))), _XY, 1),
    Case("input_for_its_size", "x.view(y.shape[0], -1).sum(1)", _xy(((24,), (6, 3)), ((36,), (9, 3))), _XY, 1),
    Case("variadic", "xs[0] * xs[1] + more['z']",
         [Call({"a": (16, 20), "b": (16, 20), "c": (16, 20)}, [{"tensor": 0}, {"tensor": 1}], {"z": {"tensor": 2}})],
         {"signature": "*xs, **more"}, 1),
    Case("integers", "(x // 3 + x % 5) * y.float()", [
        Call({"x": whole(shape, 50), "y": whole(shape, 2, "bool")}) for shape in _ROWS
    ], _XY, 1),
    Case("in_place", """
         y = x.clone()
         y[:, 1:3] += 1
         y.mul_(2).clamp_(min=0)
         return y""", _x(*_ROWS)),
    Case("in_place_on_input", """
         x += 1
         return x * 2""", _x(*_ROWS)),
    Case("views", """
         y = x.view(x.shape[0], 4, -1).transpose(1, 2)
         return y.reshape(x.shape[0], -1)[:, 1::2] + 1""", _x((6, 24), (4, 20)), kernels=1),
    Case("constants", "x * self.scale + self.tables['shift'] + self.parts[1]", _x((6, 8), (9, 8)),
         _layers("self.scale = torch.linspace(1, 2, 8)", "self.tables = {'shift': torch.arange(8.0)}",
                 "self.parts = [torch.ones(8), torch.linspace(3, 5, 8)]"), 1),
    Case("constants_of_a_bases_constructor", "x * self.table + self.shift", _x((6, 8), (9, 8)), {
        "layers": "self.shift, self.scale = torch.ones(1), 2.0",
        "helpers": "class Base(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                   "        self.table = torch.linspace(1, 2, 8)",
        "base": "Base"}, kernels=1),
    Case("children_by_name", "self.named['0'](x) + self.named['1'](x)", _x((6, 8), (9, 8)),
         _layers("self.named = nn.ModuleDict({'1': nn.Linear(8, 8), '0': nn.Linear(8, 8)})")),
    Case("children_in_another_order", "self.layers(x)", _x((6, 8), (9, 8)),
         {"helpers": "from collections import OrderedDict",
          **_layers("named = [('1', nn.Linear(8, 8)), ('0', nn.Linear(8, 8))]",
                    "self.layers = nn.Sequential(OrderedDict(named))")}),
    Case("constants_of_children", "self.steps(x) + self.steps[1].shift", _x((6, 8), (9, 8)),
         _layers("self.steps = nn.Sequential(nn.ReLU(), nn.Identity())",
                 "self.steps[1].shift = torch.linspace(1, 2, 8)"), 1),
    Case("numbers", """
         assert not torch.isnan(x).any() and (x.abs() < 1e30).all(), "not finite"
         if (x.max() - x.min()).item() < 0:
             raise ValueError("no range")
         return x * self.scale.item() / (1 + x.detach().abs().amax().item())""", _x((6, 8), (9, 5)),
         _layers("self.register_buffer('scale', torch.tensor(2.5))")),
    Case("cat_of_coordinates", """
         y, z = torch.meshgrid(*(torch.arange(size) for size in x.shape[1:3]), indexing="ij")
         apart = [at.flatten()[:, None] - at.flatten()[None, :] + 9 for at in (y, z)]
         at = torch.stack([one.clamp(0, 18) for one in apart])[:, None].expand(-1, x.shape[0], -1, -1)
         return (x.flatten(1, 2) @ self.banks[:, None]).gather(-1, at).sum(0)""", _x((2, 3, 5, 8), (3, 3, 5, 8)),
         _layers("self.banks = nn.Parameter(torch.rand(2, 8, 19))")),
    Case("constants_of_childrens_constructors", "self.net(x)", _x((6, 8), (9, 8)), {
        "helpers": "class Table(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                   "        table = torch.linspace(1, 2, 8)\n        self.table = table\n\n"
                   "    def forward(self, x):\n        return x * self.table",
        **_layers("self.net = nn.Sequential(nn.ReLU(), Table())")}, 1),
    Case("made_in_eval_mode", "x * self.tables.table", _x((6, 8), (9, 8)), {
        "layers": "self.tables = Tables()",
        "helpers": "class Tables(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                   "        self.biases = nn.Parameter(torch.linspace(1, 2, 3))\n"
                   "        self.register_buffer('index', torch.arange(8) % 3)\n\n"
                   "    @torch.no_grad()\n    def train(self, mode=True):\n        super().train(mode)\n"
                   "        self.table = self.biases[self.index]"},
         kernels=1),
    Case("numbers_in_forward", "x @ torch.tensor([[0.299, 0.587, 0.114], [-0.1, -0.289, 0.4], [0.6, -0.5, -0.1]]).T",
         _x((6, 5, 3), (9, 4, 3))),
    Case("indices_in_forward", "x[:, [7, 0, 3, 3, 1, 2, 6, 5, 4, 0]] * torch.ones(10, 10).sum(0)", _x((6, 8), (9, 8))),
    Case("numbers_of_several_dimensions", "F.conv2d(x, torch.tensor([[[[0.1, 0.2, 0.3], [1, 2, 3], [-1, 4, 0.7]]]]))",
         _x((2, 1, 9, 11), (3, 1, 10, 7))),
    Case("constants_in_forward", "(x - torch.tensor([0.4, 0.5, 0.6]).view(1, 3, 1)) * torch.tensor(2.0)",
         _x((2, 3, 8), (4, 3, 5)), kernels=1),
    Case("buffer_of_no_state_dict", "x * self.scale", _x((6, 8), (9, 8)),
         _layers("self.register_buffer('scale', torch.linspace(1, 2, 8), persistent=False)"), 1),
    Case("one_size", "x.reshape(-1, 6).sum(1) if x.shape[0] == 6 else x.sum(1)", _x((6, 12), (9, 12)),
         shape_general=False),
    # What constructors do
    Case("children_with_numbers", "self._modules['0'](x) + self._modules['1'](x)", _x((6, 20), (9, 20)),
         _layers("for i in range(2):", "    self.add_module(str(i), nn.Linear(20, 24))")),
    Case("weight_norm", "self.fc(x)", _x((6, 20), (9, 20)),
         _layers("self.fc = nn.utils.weight_norm(nn.Linear(20, 24))")),
    Case("parametrized", "self.fc(x)", _x((6, 20), (9, 20)), {
        "helpers": "class Doubled(nn.Module):\n    def forward(self, weight):\n        return weight * 2",
        **_layers("self.fc = nn.Linear(20, 24)",
                  "torch.nn.utils.parametrize.register_parametrization(self.fc, 'weight', Doubled())")}),
    Case("run_by_a_function", "x * self.scale", _x((6, 8), (9, 8)), {
        "layers": "self.register_buffer('scale', made(8))",
        "helpers": "class Table(nn.Module):\n    def __init__(self, first):\n        super().__init__()\n"
                   "        self.first = first\n\n    def forward(self, n):\n"
                   "        return torch.arange(n) + self.first\n\n"
                   "def made(n):\n    table = Table(2.0)\n    return table(n)"}, 1),
]
# fmt: on
