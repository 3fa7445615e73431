"""Attention of several heads, by functions of the other files."""

import torch


def multi_head_attention(query, key, value, in_weight, in_bias, out_weight, out_bias, heads, batch_first):
    if not batch_first:
        query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
    width = in_weight.shape[1]
    if in_bias is None:
        in_bias = torch.zeros(3 * width, device=query.device)
    q = linear(query, in_weight[:width], in_bias[:width]).unflatten(2, (heads, -1)).transpose(1, 2)
    k = linear(key, in_weight[width : 2 * width], in_bias[width : 2 * width]).unflatten(2, (heads, -1)).transpose(1, 2)
    v = linear(value, in_weight[2 * width :], in_bias[2 * width :]).unflatten(2, (heads, -1)).transpose(1, 2)
    weights = softmax(mul_scalar(matmul(q, k.transpose(2, 3)), (width // heads) ** -0.5), -1)
    out = matmul(weights, v).transpose(1, 2).flatten(2)
    if not batch_first:
        out = out.transpose(0, 1)
    return linear(out, out_weight, out_bias), reduce_mean(weights, 1)
