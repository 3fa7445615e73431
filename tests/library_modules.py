"""Modules that together call every function of the library of operators."""

from __future__ import annotations

from modules import Call, source, whole

from kernelquarry.pipeline.schema.records import TensorSpec

_VECTORS = (Call({"x": (5, 7)}), Call({"x": (3, 12)}))
_PAIRS = (Call({"x": (4, 6), "y": (4, 6)}), Call({"x": (3, 9), "y": (3, 9)}))
_SERIES = (Call({"x": (2, 4, 9)}), Call({"x": (3, 4, 12)}))
_IMAGES = (Call({"x": (2, 4, 6, 8)}), Call({"x": (3, 4, 9, 7)}))
_ROWS = (Call({"x": (3, 5, 6)}), Call({"x": (2, 7, 4)}))


def _elements(*texts: str) -> str:
    return source(", ".join(texts))


MODULES = {
    "activations": (
        _elements(
            "F.relu(x)",
            "torch.sigmoid(x)",
            "torch.tanh(x)",
            "F.silu(x)",
            "F.gelu(x)",
            "F.gelu(x, approximate='tanh')",
            "F.softplus(x)",
            "F.mish(x)",
            "F.hardswish(x)",
            "F.hardsigmoid(x)",
            "F.elu(x)",
            "F.celu(x, alpha=2.0)",
            "F.selu(x)",
            "F.leaky_relu(x, 0.2)",
            "F.softsign(x)",
            "F.softshrink(x)",
            "F.hardshrink(x)",
            "F.tanhshrink(x)",
            "F.threshold(x, 0.1, 2.0)",
            "F.relu6(x)",
        ),
        _VECTORS,
    ),
    "functions of elements": (
        _elements(
            "x.exp()",
            "torch.expm1(x)",
            "torch.exp2(x)",
            "x.abs().log()",
            "torch.log2(x.abs())",
            "torch.log10(x.abs())",
            "torch.log1p(x.abs())",
            "x.abs().sqrt()",
            "torch.rsqrt(x.abs() + 1)",
            "x.square()",
            "1 / (x * x + 1)",
            "(x * x + 1).reciprocal()",
            "-x",
            "x.sin()",
            "x.cos()",
            "torch.tan(torch.tanh(x))",
            "torch.cosh(x)",
            "torch.atan(x)",
            "torch.acos(torch.tanh(x) * 0.5)",
            "torch.atanh(torch.tanh(x) * 0.5)",
            "torch.erf(x)",
            "x.floor()",
            "x.ceil()",
            "x.round()",
            "x.trunc()",
            "x.sign()",
            "x**3",
            "x.abs() ** 1.5",
            "2.0**x",
        ),
        _VECTORS,
    ),
    "numbers": (
        _elements(
            "x + 2",
            "x - 2",
            "2 - x",
            "x * 3",
            "x / 3",
            "x.clamp(-0.5, 0.5)",
            "x.clamp_min(0.1)",
            "x.clamp(max=0.1)",
            "x > 0.1",
            "x < 0.1",
            "x >= 0.1",
            "x <= 0.1",
            "x == 0.1",
            "x != 0.1",
            "~(x > 0.1)",
            "torch.isnan(x)",
            "(x > 0).float()",
            "(x > 0).long()",
            "(x > 0).long().bool()",
        ),
        _VECTORS,
    ),
    "two tensors": (
        source(
            "(x + y, x - y, x * y, x / (y.abs() + 1), x.abs() ** y, torch.maximum(x, y), torch.minimum(x, y),"
            " x > y, x < y, x >= y, x <= y, x == y, x != y, (x > 0) & (y > 0), (x > 0) | (y > 0), torch.atan2(x, y),"
            " torch.where(x > y, x, y), x.masked_fill(y > 0, 1.0), F.prelu(x, self.slope), torch.lerp(x, y, 0.3))",
            "self.slope = nn.Parameter(torch.rand(1))",
            signature="x, y",
        ),
        _PAIRS,
    ),
    "rows": (
        source(
            "(x.sum(1), x.mean((0, 2), keepdim=True), x.amax(-1), x.amin(1), x.var(1), x.std(-1, keepdim=True),"
            " x.norm(dim=1), torch.logsumexp(x, 1), x.argmax(1), x.argmin(-1), (x * 0.5 + 1).prod(1), x.cumsum(1),"
            " torch.softmax(x, 1), F.log_softmax(x, -1), F.normalize(x, dim=1), x.max(1)[0], x.min(2)[1], x.max())"
        ),
        _ROWS,
    ),
    "layers on rows": (
        source(
            "(self.log(x), self.fc(x), self.norm(x), self.scale(x), self.group(x), self.batch(x),"
            " F.layer_norm(x, (8,)), F.rms_norm(x, (8,)), F.group_norm(x, 2), F.linear(x, self.fc.weight),"
            " F.batch_norm(x, self.batch.running_mean, self.batch.running_var))",
            "self.fc = nn.Linear(8, 5)\nself.norm = nn.LayerNorm(8)\nself.scale = nn.RMSNorm(8, eps=1e-6)\n"
            "self.group = nn.GroupNorm(2, 4)\nself.batch = nn.BatchNorm1d(4)\nself.log = nn.LogSigmoid()",
        ),
        (Call({"x": (2, 4, 8)}), Call({"x": (3, 4, 8)})),
    ),
    "products": (
        source(
            "(x @ y, torch.bmm(x, y), F.scaled_dot_product_attention(x, x, x), self.attention(x, x, x)[0],"
            " torch.einsum('bik,bkj->bij', x, y), x[0] @ y)",
            "self.attention = nn.MultiheadAttention(8, 2)",
            signature="x, y",
        ),
        (Call({"x": (2, 5, 8), "y": (2, 8, 6)}), Call({"x": (3, 7, 8), "y": (3, 8, 4)})),
    ),
    "convolutions of series": (
        source(
            "self.conv(x), self.up(x), F.conv1d(x, self.taps, padding=1), F.conv_transpose1d(x, self.taps)",
            "self.conv = nn.Conv1d(4, 6, 3, stride=2, padding=1)\n"
            "self.up = nn.ConvTranspose1d(4, 3, 4, stride=2)\nself.taps = nn.Parameter(torch.randn(4, 4, 3))",
        ),
        _SERIES,
    ),
    "convolutions of images": (
        source(
            "(self.conv(x), self.deep(x), self.up(x), F.conv2d(x, self.taps, padding='same'), "
            "F.conv_transpose2d(x, self.taps))",
            "self.conv = nn.Conv2d(4, 6, (3, 2), stride=(1, 2), padding=1)\n"
            "self.deep = nn.Conv2d(4, 4, 3, dilation=2, groups=4, bias=False)\n"
            "self.up = nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1)\n"
            "self.taps = nn.Parameter(torch.randn(4, 4, 3, 3))",
        ),
        _IMAGES,
    ),
    "convolutions of volumes": (
        source(
            "self.conv(x), F.conv3d(x, self.taps)",
            "self.conv = nn.Conv3d(2, 3, 3, padding=1)\nself.taps = nn.Parameter(torch.randn(2, 2, 2, 2, 2))",
        ),
        (Call({"x": (1, 2, 4, 5, 6)}), Call({"x": (2, 2, 5, 4, 3)})),
    ),
    "pools": (
        source(
            "(F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2, ceil_mode=True),"
            " F.avg_pool2d(x, 3, 1, 1, count_include_pad=False), F.adaptive_avg_pool2d(x, (3, 2)),"
            " F.adaptive_max_pool2d(x, 2), F.max_pool1d(x[0], 3), F.avg_pool1d(x[0], 2),"
            " F.adaptive_avg_pool1d(x[0], 3), F.adaptive_max_pool1d(x[0], 3))"
        ),
        _IMAGES,
    ),
    "sizes of images": (
        source(
            "(F.interpolate(x, scale_factor=2), F.interpolate(x[:, 0], scale_factor=2),"
            " F.interpolate(x, scale_factor=2, mode='bilinear'), F.interpolate(x, size=(5, 9), mode='bilinear',"
            " align_corners=True), F.pad(x, (1, 2, 0, 1), value=2.0), F.pad(x[:, 0], (1, 2), 'reflect'),"
            " F.pad(x[:, 0], (1, 2), 'replicate'), F.pad(x[:, 0], (2, 1), 'circular'), F.pixel_shuffle(x, 2),"
            " F.pixel_unshuffle(x[..., :6, :4], 2))"
        ),
        _IMAGES,
    ),
    "places": (
        source(
            "(torch.cat((x, x * 2), 1), torch.stack((x, -x), 1), x.flip(1), x.gather(1, index), x[:, self.order],"
            " self.table(index), x.tril(), x.triu(1), x + torch.arange(x.shape[1], device=x.device),"
            " x.roll(1, 1), x.repeat(1, 2), x.transpose(0, 1).contiguous() * 2)",
            "self.register_buffer('order', torch.tensor([2, 0, 1]))\nself.table = nn.Embedding(4, 3)",
            signature="x, index",
        ),
        (Call({"x": (5, 4), "index": whole((5, 4), 4)}), Call({"x": (3, 4), "index": whole((3, 4), 4)})),
    ),
    "elements that are set": (
        source(
            """
            y = x.clone()
            y[:, 0] = 0
            y[:, 1:3] += x[:, :2] * 2
            y[x > 0.5] = 0.5
            z = torch.zeros(x.shape[0], 2, x.shape[2], device=x.device)
            z[:, 0] = x.mean(1)
            return y, z
            """
        ),
        (Call({"x": (2, 4, 6)}), Call({"x": (3, 4, 7)})),
    ),
    "order": (
        source(
            "(x.topk(2, dim=1)[0], torch.topk(x, 3, largest=False).values, torch.sort(x, dim=-1, descending=True)[0],"
            " x.sort(1).indices, x.argsort(2))"
        ),
        _ROWS,
    ),
    "classes": (
        source("F.one_hot(index, 6), x.scatter(1, index, x * 2), x.scatter(1, index, 1.0)", signature="x, index"),
        (Call({"x": (5, 1), "index": whole((5, 1), 1)}), Call({"x": (3, 1), "index": whole((3, 1), 1)})),
    ),
    "meshes": (
        source(
            "rows = torch.arange(x.shape[0], device=x.device)\ncolumns = torch.arange(x.shape[1], device=x.device)\n"
            "i, j = torch.meshgrid(rows, columns, indexing='ij')\nk, l = torch.meshgrid(columns, rows, indexing='xy')\n"
            "return x + i - 2 * j, x * k + l, x[0, 0] + torch.eye(2, 3, device=x.device), x.unfold(1, 3, 2) * 2,"
            " torch.cat([x, (x > 0).long(), x[:, :0]], 1)"
        ),
        _VECTORS,
    ),
    "masks of attention": (
        source(
            "kept = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()\n"
            "return (F.scaled_dot_product_attention(x, x, x, is_causal=True),"
            " F.scaled_dot_product_attention(x, x, x, attn_mask=kept), torch.einsum('...i,...j->...ij', x, x),"
            " torch.einsum('bij,bkj', x, x))"
        ),
        (Call({"x": (2, 5, 8)}), Call({"x": (3, 7, 4)})),
    ),
    "a grid": (
        source("F.grid_sample(x, grid, align_corners=False)", signature="x, grid"),
        (
            Call({"x": (2, 3, 5, 6), "grid": TensorSpec("grid", (2, 4, 3, 2), "float32")}),
            Call({"x": (1, 2, 7, 4), "grid": TensorSpec("grid", (1, 5, 6, 2), "float32")}),
        ),
    ),
}
