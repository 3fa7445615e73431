"""Time steps of supervised training on one GPU, with a randomly initialised model of the size of Llama-3.1-8B.

    python benchmarks/eight_billion.py
    python benchmarks/eight_billion.py --tokens 64 --hidden 64 --layers 2 --device cpu    # a smoke test

The setup is that of the recipes: weights and Adam's state in float32, products in bfloat16, packed rows by `varlen`,
activation checkpointing, compiled layers, and a fused loss that never holds all logits. It prints the share of the
GPU's peak arithmetic, and the peak memory.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM
from trl.trainer.utils import add_fused_lm_head

from kernelquarry.recipes.generate.varlen_attention import VARLEN, register
from kernelquarry.recipes.train.trainer import compile_layers

H100_FLOPS = 989e12  # dense, bfloat16; an H200 has as much
_STEPS = 4  # the first compiles, and is not counted


def model_of(hidden: int, layers: int, device: str) -> Any:
    register()
    heads = max(1, hidden // 128)
    config = LlamaConfig(
        vocab_size=128_256,
        hidden_size=hidden,
        intermediate_size=hidden * 7 // 2,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=max(1, heads // 4),
        max_position_embeddings=131_072,
        use_cache=False,
    )
    with torch.device(device):
        model = LlamaForCausalLM(config)
    model.set_attn_implementation(VARLEN)
    add_fused_lm_head(model)
    return model.train()


def batch_of(tokens: int, device: str) -> dict[str, Any]:
    """A batch of four packed rows of equal length."""
    row = tokens // 4
    ids = torch.randint(0, 1000, (1, 4 * row), device=device)
    starts = torch.arange(0, 4 * row + 1, row, dtype=torch.int32, device=device)
    positions = torch.arange(row, device=device).repeat(4)[None]
    starting = {"cu_seq_lens_q": starts, "cu_seq_lens_k": starts, "max_length_q": row, "max_length_k": row}
    return {"input_ids": ids, "labels": ids.clone(), "position_ids": positions, "fused_lm_head": True, **starting}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=8192, help="of a step")
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--peak", type=float, default=H100_FLOPS, help="of the GPU, operations a second")
    parser.add_argument("--plain", action="store_true", help="do not compile")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    model = model_of(arguments.hidden, arguments.layers, arguments.device)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    if not arguments.plain and arguments.device == "cuda":
        compile_layers(model)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    batch = batch_of(arguments.tokens, arguments.device)
    weights, seconds = model.num_parameters(), []
    for _ in range(_STEPS):
        started = time.monotonic()
        with torch.autocast(arguments.device, torch.bfloat16):
            loss = -model(**batch).log_probs.sum() / arguments.tokens
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        if arguments.device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.monotonic() - started)
    each = min(seconds[1:])
    print(f"{weights:,} weights, {arguments.tokens:,} tokens in {each:.3f} s, loss {loss.item():.3f}")
    print(f"MFU: {100 * 6 * weights * arguments.tokens / (each * arguments.peak):.4g}")
    if arguments.device == "cuda":
        print(f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB of {torch.cuda.get_device_name()}")


if __name__ == "__main__":
    main()
