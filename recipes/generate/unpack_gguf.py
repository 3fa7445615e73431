"""Unpack a GGUF file to a model folder in bfloat16, so that training and evaluation start from ordinary weights.

Transformers keeps the file's weights quantised, or converts one tensor after the other, which takes minutes. Here
several threads convert parts of tensors, and the model is made on the meta device, so that no weights are drawn.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import shutil
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

from kernelquarry.pipeline.schema.errors import UserError
from kernelquarry.pipeline.schema.files import digest

_ROWS = 4096  # of a tensor, converted at once by a thread
_logger = logging.getLogger(__name__)


def unpack_gguf(file: Path, cache: Path) -> Path:
    """The model folder of a GGUF file, `cache/<name>-<digest>`; its `gguf.json` names the file and its SHA-256.

    The folder appears complete. A later call finds it.

    Raises:
        UserError: the package `gguf` is missing, or transformers does not know the file's architecture.
    """
    sha256 = digest(file)
    folder = cache / f"{file.stem}-{sha256[:12]}"
    if (folder / "config.json").is_file():
        return folder
    _logger.info("unpacking %s", file.name)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        _write_model(file, partial)
    except (ImportError, ValueError, KeyError, IndexError, NotImplementedError, struct.error) as error:
        shutil.rmtree(partial, ignore_errors=True)
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"{file}: no model that transformers reads: {line}") from None
    (partial / "gguf.json").write_text(json.dumps({"file": file.name, "sha256": sha256}) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    return folder


def _write_model(file: Path, folder: Path) -> None:
    import gguf
    import numpy as np
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor, get_gguf_hf_weights_map

    source = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    # Transformers reads the file's header, which takes seconds, for each part of the model: here it is read once.
    read = functools.cache(gguf.GGUFReader)
    with mock.patch.object(gguf, "GGUFReader", read):
        config = AutoConfig.from_pretrained(**source)
        AutoTokenizer.from_pretrained(**source).save_pretrained(folder)
        tensors = read(str(file)).tensors
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    processor = TENSOR_PROCESSORS.get(config.model_type, TensorProcessor)(config=config.to_dict())
    names = get_gguf_hf_weights_map(model, processor)

    def convert(tensor: Any, whole: torch.Tensor, start: int) -> None:
        part = gguf.dequantize(tensor.data[start : start + _ROWS], tensor.tensor_type)
        whole[start : start + _ROWS] = torch.from_numpy(np.require(part, requirements="W"))

    wanted = [tensor for tensor in tensors if tensor.name in names]
    # Each thread computes alone: by default, PyTorch starts as many threads again in each of them.
    with ThreadPoolExecutor(os.cpu_count(), initializer=torch.set_num_threads, initargs=(1,)) as threads:
        converted = {tensor.name: torch.empty(tensor.shape[::-1].tolist(), dtype=torch.bfloat16) for tensor in wanted}
        parts = [
            threads.submit(convert, tensor, converted[tensor.name], start)
            for tensor in wanted
            for start in range(0, len(tensor.data), _ROWS)
        ]
        for part in parts:
            part.result()
    weights = {
        names[name]: processor.process(weights=weight, name=name).weights.contiguous()
        for name, weight in converted.items()
    }
    missing, _ = model.load_state_dict(weights, strict=False, assign=True)
    model.tie_weights()
    if unset := [name for name in missing if model.get_parameter(name).is_meta]:
        raise ValueError(f"it has no weights for {unset[0]}")
    model.save_pretrained(folder)
