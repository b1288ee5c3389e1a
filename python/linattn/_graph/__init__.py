"""Calls of plans as nodes in the graphs of PyTorch and JAX: names, shapes, batches,
gradients. Nothing here imports either."""
