"""Adam against the class of torch, and without what that class imports."""

import subprocess
import sys

import torch

from latentpde.estimators.adam import Adam


def test_every_step_is_torchs_to_the_last_bit():
    generator = torch.Generator().manual_seed(0)
    ours = [torch.randn(shape, dtype=torch.float64, generator=generator) for shape in ((3, 4), (5,))]
    theirs = [p.clone() for p in ours]
    adam, reference = Adam(ours, (0.9, 0.99)), torch.optim.Adam(theirs, betas=(0.9, 0.99))
    for i in range(20):
        rate = 0.1 / (1 + i)
        gradients = [torch.randn(p.shape, dtype=torch.float64, generator=generator) for p in ours]
        adam.step(gradients, rate)
        for p, gradient in zip(theirs, gradients, strict=True):
            p.grad = gradient.clone()
        reference.param_groups[0]["lr"] = rate
        reference.step()
        for a, b in zip(ours, theirs, strict=True):
            assert torch.equal(a, b)


def test_methods_do_not_wait_for_a_compiler():
    code = (
        "import sys, latentpde as lp;"
        "lp.reconstruct(lp.simulate('balanced', num=1, seed=0), method='enc-diffusion', num_draws=1);"
        "lp.reconstruct(lp.simulate('balanced', num=1, seed=0), method='map', num_steps=2);"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
