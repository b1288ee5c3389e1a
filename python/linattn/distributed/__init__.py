"""Sequences whose tokens lie on several processes.

    >>> torch.distributed.init_process_group("gloo")
    >>> parallel = linattn.distributed.SequenceParallel()
    >>> o = parallel(linattn.gla, q, k, v, g)        # this rank's tokens, [B, T / ranks, H, D]
    >>> o.sum().backward()                           # on every rank

Each rank runs its tokens from the state that the rank before it has ended with; the state
goes from rank to rank in panels of heads, so that all of them work at once. It needs
PyTorch; `linattn` itself does not import it.
"""

from ._messages import PeerError
from ._parallel import SequenceParallel

__all__ = ["PeerError", "SequenceParallel"]
