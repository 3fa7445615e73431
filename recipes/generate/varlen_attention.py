"""The attention `varlen` for transformers: no padding for packed rows or for the slots of a cache.

cu_seq_lens_q    packed rows of a padding-free collator: each row attends to itself
lengths          one new token for each slot of a cache, which attends to the slot's tokens
neither          the same as `sdpa`
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
import triton
import triton.language as tl
from torch.nn.functional import scaled_dot_product_attention

VARLEN = "varlen"
_BLOCK = 64  # keys per iteration of the kernel


def register() -> None:
    """Register the attention and its mask with transformers."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    def mask(*arguments: Any, attention_mask: Any = None, **others: Any) -> Any:
        """No mask for packed rows: a mask of all pairs of tokens would cost more than the attention."""
        return None if attention_mask is None else sdpa_mask(*arguments, attention_mask=attention_mask, **others)

    AttentionInterface.register(VARLEN, attend)
    AttentionMaskInterface.register(VARLEN, mask)


def attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of (batch, heads, tokens, size); keys and values may have fewer heads.

    Returns (batch, tokens, heads, size).
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if (lengths := others.get("lengths")) is not None:
        return decode(query, key, value, lengths, others["scaling"]).transpose(1, 2), None
    if (starts := others.get("cu_seq_lens_q")) is not None and query.shape[2] > 1:
        groups = query.shape[1] // key.shape[1]
        rows = (query, key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1))
        # Under autocast the rotary embedding leaves float32, which flash attention does not take.
        kind = value.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else value.dtype
        q, k, v = (part[0].transpose(0, 1).to(dtype).contiguous() for part in rows)
        return attend_packed(q, k, v, starts, int(others["max_length_q"]), others["scaling"])[None], None
    output: tuple[torch.Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **others)
    return output


def attend_packed(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, starts: torch.Tensor, longest: int, scale: float
) -> torch.Tensor:
    """Causal attention within each packed row. `starts`: offsets of the rows, and the end of the last.

    Query, key, value and result are (tokens, heads, size).
    """
    if query.is_cuda:
        from torch.nn.attention.varlen import varlen_attn

        starts = starts.to(query.device, torch.int32)
        causal = (-1, 0)
        output: Any = varlen_attn(query, key, value, starts, starts, longest, longest, scale=scale, window_size=causal)
        return output
    outputs = []
    for start, end in pairwise(starts.tolist()):
        q, k, v = (part[start:end].transpose(0, 1) for part in (query, key, value))
        outputs.append(scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale).transpose(0, 1))
    return torch.cat(outputs)


def decode(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lengths: torch.Tensor, scale: float
) -> torch.Tensor:
    """Attention of one token per slot, (slots, heads, 1, size), over the first `lengths` keys of its slot.

    Keys and values are (slots, kv heads, room, size); the result has the shape of `query`. On a GPU no key behind a
    slot's length is read, on a CPU none behind the longest length.
    """
    slots, heads, _, size = query.shape
    kv_heads, room = keys.shape[1], keys.shape[2]
    grouped = query.reshape(slots, kv_heads, heads // kv_heads, size)
    if not query.is_cuda:
        keys, values = (part[:, :, : int(lengths.max())] for part in (keys, values))
        mask = torch.arange(keys.shape[2], device=lengths.device) < lengths[:, None]
        output = scaled_dot_product_attention(grouped, keys, values, attn_mask=mask[:, None, None], scale=scale)
        return output.reshape(query.shape)
    out = torch.empty_like(grouped)
    _decode[(slots, kv_heads)](
        grouped,
        keys,
        values,
        lengths,
        out,
        room,
        scale,
        GROUP=heads // kv_heads,
        ROWS=max(16, triton.next_power_of_2(heads // kv_heads)),
        SIZE=size,
        COLUMNS=triton.next_power_of_2(size),
        BLOCK=_BLOCK,
    )
    return out.reshape(query.shape)


@triton.jit
def _decode(  # type: ignore[no-untyped-def]  # names in annotations are globals to Triton
    query_ptr,
    key_ptr,
    value_ptr,
    length_ptr,
    out_ptr,
    room,
    scale,
    GROUP: tl.constexpr,
    ROWS: tl.constexpr,
    SIZE: tl.constexpr,
    COLUMNS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Online softmax over one key head of a slot, for all query heads that share it. Grid: (slots, kv heads)."""
    head = tl.program_id(0).to(tl.int64) * tl.num_programs(1) + tl.program_id(1)
    length = tl.load(length_ptr + tl.program_id(0))
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    place = (head * GROUP + row[:, None]) * SIZE + column[None, :]
    inside = (row[:, None] < GROUP) & (column[None, :] < SIZE)
    query = tl.load(query_ptr + place, mask=inside, other=0.0)
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(0, length, BLOCK):
        token = start + tl.arange(0, BLOCK)
        there = (token[:, None] < length) & (column[None, :] < SIZE)
        offset = (head * room + token[:, None]) * SIZE + column[None, :]
        key = tl.load(key_ptr + offset, mask=there, other=0.0)
        logits = tl.dot(query, tl.trans(key), input_precision="ieee") * scale
        logits = tl.where(token[None, :] < length, logits, float("-inf"))
        new_top = tl.maximum(top, tl.max(logits, 1))
        weight = tl.exp(logits - new_top[:, None])
        shrink = tl.exp(top - new_top)
        value = tl.load(value_ptr + offset, mask=there, other=0.0)
        acc = acc * shrink[:, None] + tl.dot(weight.to(value.dtype), value, input_precision="ieee")
        total = total * shrink + tl.sum(weight, 1)
        top = new_top
    tl.store(out_ptr + place, (acc / total[:, None]).to(query.dtype), mask=inside)
