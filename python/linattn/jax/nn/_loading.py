"""Parameters made of those of PyTorch."""

from __future__ import annotations

import jax.numpy as jnp

__all__ = ["params_from_torch"]


def params_from_torch(state_dict):
    """Converts the `state_dict` of a layer of `linattn.torch.nn` to parameters of this one.

    Integers, which count what a layer has done, are left out: gradients have no place for them.
    """
    params = {}
    for name, tensor in state_dict.items():
        if not tensor.is_floating_point():
            continue
        *path, last = name.split(".")
        array = jnp.asarray(tensor.detach().cpu().numpy())
        if path and path[-1].startswith("feature_map"):
            pass  # as the functions of `linattn.feature_maps` take it
        elif last == "weight" and array.ndim == 4:
            last, array = "kernel", array[..., 0].transpose(2, 1, 0)
        elif last == "weight" and array.ndim == 3:
            last, array = "kernel", array.transpose(2, 1, 0)
        elif last == "weight" and array.ndim == 2:
            last, array = "kernel", array.T
        elif last == "weight":
            last = "scale"
        branch = params
        for part in path:
            branch = branch.setdefault(part, {})
        branch[last] = array
    return params
