"""Cases of the simulated GPU; a script that prints the errors by case, like `interpreter_cases`."""

# ruff: noqa: I001  the first import says that Triton interprets
from interpreter_cases import CASES, case, expect, main, randn, softmax_rows

import torch
import triton
import triton.language as tl

from kernelquarry.pipeline.sandbox.guest.candidate import fake_cuda
from kernelquarry.pipeline.sandbox.guest.candidate.launch_log import session

CASES.clear()


@case
def the_host_side_finds_a_gpu():
    x = randn(70, 50)
    with fake_cuda.pretend():
        out = torch.empty(70, 50, device="cuda")
        assert x.is_cuda and torch.cuda.is_available()
        assert torch.cuda.get_device_properties(x.device).multi_processor_count > 1
        with torch.cuda.device(x.device), torch.cuda.device_of(x):
            softmax_rows[(70,)](x, out, 50, BLOCK=64)
    expect(out, x.softmax(-1))


def places(*tensors):
    return [tensor.device.type for tensor in tensors]


@case
def tensors_made_for_the_gpu_are_on_it():
    x = randn(3)
    with fake_cuda.pretend():
        made = [torch.empty(3, device=name) for name in ("cuda", "cuda:0", 0, torch.device("cuda"), x.device)]
        made += [x.new_empty(3), torch.zeros_like(x), x + 1, x[1:], torch.full((3,), 0, device=0), x.half()]
        assert places(x, *made) == ["cuda"] * 12
        with torch.device("cuda"):
            assert torch.empty(3).is_cuda
        assert x.get_device() == 0 and not x.is_cpu and x.type() == "torch.cuda.FloatTensor"
        assert torch.empty(3, device="meta").is_meta and places(torch.empty(3, device="meta")) == ["meta"]
    assert places(x, *made) == ["cpu"] * 12


@case
def tensors_without_a_device_are_on_the_host():
    x = randn(3)
    with fake_cuda.pretend():
        host = torch.arange(3.0)
        derived = [host, host[1:], host + 1, torch.stack([host]), torch.zeros_like(host), x.cpu(), x.to("cpu")]
        assert places(*derived) == ["cpu"] * 7 and host.get_device() == -1
        moved = [host.cuda(), host.to(0), host.to(x), host.to("cuda", torch.float16), host.to(device="cuda"), x + host]
        assert places(*moved) == ["cuda"] * 6
        assert x.cuda() is x and x.to("cuda", non_blocking=True) is x and x.cpu() is not x
        moved[0].zero_()
        assert host.tolist() == [0, 1, 2]  # a move copies


@case
def a_module_moves_without_its_plain_attributes():
    with fake_cuda.pretend():
        module = torch.nn.BatchNorm1d(3)
        module.plain = torch.ones(3)
        module.to("cuda")
        assert places(module.weight, module.running_mean, module.plain) == ["cuda", "cuda", "cpu"]


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        assert gradient.is_cuda and torch.empty(3, device="cuda").is_cuda
        return 2 * gradient


@case
def a_backward_is_on_the_gpu_too():
    with fake_cuda.pretend():
        x = torch.ones(3, device="cuda", requires_grad=True)
        (gradient,) = torch.autograd.grad(Doubled.apply(x).sum(), x)
        Doubled.apply(x).sum().backward()
        assert places(gradient, x.grad) == ["cuda", "cuda"]


@case
def a_reference_finds_no_gpu():
    x = randn(3)
    with fake_cuda.RedirectCudaToCpu():
        here = [torch.empty(3, device="cuda"), x.cuda(), x.to("cuda:0"), torch.nn.Linear(2, 2).cuda().weight, x]
        assert places(*here) == ["cpu"] * 5 and not x.is_cuda


@triton.jit
def halves_of(out_ptr, one, two):
    tl.store(out_ptr, (-one) // 2)
    tl.store(out_ptr + 1, (-two - 1) // 2)


@case
def a_one_is_a_constant():
    out = torch.empty(2, dtype=torch.int32)
    assert halves_of[(1,)](out, 1, 2) is not None
    assert out.tolist() == [-1, -1]  # rounded down as Python does it, and towards zero


TUNED = [triton.Config({"BLOCK": 4}), triton.Config({"BLOCK": 8})]


@triton.autotune(configs=TUNED, key=["n"])
@triton.jit
def add_block(out_ptr, n, BLOCK: tl.constexpr):
    tl.atomic_add(out_ptr, BLOCK)


@case
def a_tuner_runs_a_kernel_before_the_launch_that_counts():
    out = torch.zeros(1, dtype=torch.int32)
    for session.trial, n in enumerate((5, 6, 6)):
        add_block[(1,)](out, n)
    session.trial = 0
    assert out.item() == 4 + 4 + 8 + 8 + 8


@case
def a_tensor_on_the_host_is_out_of_reach():
    x = randn(70, 50)
    with fake_cuda.pretend():
        try:
            softmax_rows[(70,)](x, torch.empty(70, 50), 50, BLOCK=64)
        except ValueError as error:
            assert "on the CPU" in str(error)
        else:
            raise AssertionError("no error")


if __name__ == "__main__":
    main()
