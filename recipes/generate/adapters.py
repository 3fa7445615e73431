"""LoRA adapters as folders that travel: bfloat16 weights in parts, and the name of the model below them.

adapter_config.json                  PEFT's; `base_model_name_or_path` names the model
adapter-00001-of-00009.safetensors   at most 16 MiB each
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_PART = 15 << 20  # bytes of weights; a part stays below 16 MiB with its header
_CONFIG = "adapter_config.json"
_WRAPPED, _LEFT, _RIGHT = "base_model.model.", ".lora_B.weight", ".lora_A.weight"  # PEFT's names of weights


def is_adapter(path: str | Path) -> bool:
    return (Path(path) / _CONFIG).is_file()


def base_of(folder: str | Path) -> str:
    """The model that an adapter was trained on, as the recipe names it."""
    name: str = json.loads((Path(folder) / _CONFIG).read_text())["base_model_name_or_path"]
    return name


def save_adapter(model: Any, base: str, folder: Path) -> None:
    """Write the adapter of a PEFT model, which was trained on the model `base`."""
    import torch
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    config = model.peft_config["default"]
    config.base_model_name_or_path, config.inference_mode = base, True
    config.save_pretrained(folder)
    parts: list[dict[str, Any]] = [{}]
    size = 0
    for name, weight in sorted(get_peft_model_state_dict(model).items()):
        weight = weight.detach().to("cpu", torch.bfloat16).contiguous()
        if parts[-1] and size + weight.nbytes > _PART:
            parts.append({})
            size = 0
        parts[-1][name] = weight
        size += weight.nbytes
    for number, part in enumerate(parts, 1):
        save_file(part, folder / f"adapter-{number:05d}-of-{len(parts):05d}.safetensors")


def add_adapter(model: Any, folder: str | Path) -> Any:
    """The model with an adapter merged into its weights, ten times as fast as by PEFT: neither a layer is wrapped nor a
    weight widened.

    Raises:
        OSError: a part is missing.
        ValueError: the adapter is of another model.
    """
    import torch
    from peft import LoraConfig
    from safetensors.torch import load_file

    parts = sorted(Path(folder).glob("adapter-*-of-*.safetensors"))
    if not parts or len(parts) != int(parts[0].stem.rpartition("-")[2]):
        raise OSError(f"{folder} has {len(parts)} parts of an adapter: some are missing")
    weights = {name: weight for part in parts for name, weight in load_file(part).items()}
    config = LoraConfig.from_pretrained(str(folder))
    merged = dict(model.named_parameters())
    for name in [name for name in weights if name.endswith(_RIGHT)]:
        right, left = weights.pop(name), weights.pop(name.removesuffix(_RIGHT) + _LEFT, None)
        weight = merged.get(name.removeprefix(_WRAPPED).removesuffix(_RIGHT) + ".weight")
        if weight is None or left is None or weight.shape != (left.shape[0], right.shape[1]):
            raise ValueError(f"{folder} is an adapter of another model")
        with torch.no_grad():
            weight.add_(left.to(weight) @ right.to(weight), alpha=config.lora_alpha / config.r)
    if weights:
        raise ValueError(f"{folder} is an adapter of another model")
    return model
