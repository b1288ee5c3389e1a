from collections.abc import Callable, Sequence
from typing import Any

__version__: str

class Buffer:
    """A contiguous result that any DLPack library can adopt."""

    def __dlpack__(self, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Kernel:
    """A compiled function; see linattn.compile."""

    @property
    def entry(self) -> str: ...
    @property
    def num_results(self) -> int: ...
    def __call__(self, *args: Any, out: Any = None, num_threads: int | None = None) -> Any:
        """Runs the function on arrays in the layout of its own signature. Returns an
        array, or a tuple where it has several results."""
    def mlir(self, stage: str | None = None) -> str:
        """The IR at a stage (see `stages`); the source if none is named."""
    def stages(self) -> list[str]:
        """The names of the stages that `mlir` knows, in order."""
    def asm(self) -> str:
        """The code in the machine's assembly language."""
    def llvm_ir(self) -> str:
        """The optimised code in LLVM IR."""
    def explain(self, *args: Any) -> str:
        """The compiler's decisions and their reasons, a line per remark; with the arguments
        of a call, also the cost of their layouts."""

def explain(function: Callable[[], Any]) -> str:
    """Calls a function whose kernels do not run but tell what the compiler decided."""

class Plan:
    """The kernels of one combination of options."""

    state_parts: int
    build: Any
    def __init__(
        self,
        build: Callable[[str, dict[str, int | None], list[tuple[int, int, str]], bool], Kernel],
        operands: list[tuple[str, str, str]],
        rules: list[str],
        state: list[tuple[str, str, str]],
        output: tuple[str, str, str] | None,
        has_state: bool,
        returns_state: bool,
        fixes_heads: bool,
        wide_state: bool = False,
        trusts_state: bool = False,
        snapshots: list[tuple[str, str, str]] = ...,
    ) -> None: ...
    def __call__(
        self,
        operands: tuple[Any, ...],
        state: tuple[Any, ...] | None,
        out: Any,
        in_place: bool | int,
        num_threads: int | None,
    ) -> Any:
        """Runs it. Tensors that PyTorch must look at go to `linattn._torch`, arrays that JAX
        traces to `linattn._jax`."""
    def run(
        self,
        operands: tuple[Any, ...],
        state: tuple[Any, ...] | None,
        out: Any,
        in_place: bool | int,
        num_threads: int | None,
    ) -> Any:
        """The same for arrays in memory; others are a ValueError."""
    def describe(
        self, operands: Sequence[tuple[str, Sequence[int]]], state: Sequence[tuple[str, Sequence[int]]]
    ) -> list[tuple[str, list[int]]]:
        """The results of a call with arrays (dtype, shape), described like them."""
    def program(
        self,
        operands: Sequence[tuple[str, Sequence[int]]],
        state: Sequence[tuple[str, Sequence[int]]],
        num_threads: int | None,
    ) -> Program:
        """A call with arrays (dtype, shape)."""

class Program:
    """A call of a kernel with contiguous buffers, which runs without Python.

    Views are (buffer, dtype, shape, strides); the buffer -1 is zeros.
    """

    aliases: list[tuple[int, int]]
    def __init__(
        self,
        kernel: Kernel,
        inputs: Sequence[tuple[int, str, Sequence[int], Sequence[int]]],
        outputs: Sequence[tuple[int, str, Sequence[int], Sequence[int]]],
        num_threads: int | None,
    ) -> None: ...

def add_program(name: str, program: Program) -> None:
    """Has XLA find a program by its name."""

def xla_handler() -> Any:
    """The handler by which XLA calls programs, in a capsule."""

class Step:
    """A step of a state without its arrays, to be repeated."""

    def __init__(
        self,
        arrays: tuple[Any, ...],
        options: tuple[Any, ...],
        plan: Plan,
        state: tuple[Any, ...],
        numbers: tuple[Any, ...] = ...,
    ) -> None: ...
    def __call__(
        self,
        arrays: tuple[Any, ...],
        options: tuple[Any, ...],
        out: Any,
        in_place: bool | int,
        num_threads: int | None,
    ) -> Any: ...

class Repeat:
    """A call of a function without its arrays, to be repeated."""

    def __init__(self) -> None: ...
    def learn(
        self,
        arguments: tuple[Any, ...],
        plan: Plan,
        operands: tuple[Any, ...],
        state: tuple[Any, ...] | None,
        in_place: bool,
        result: tuple[Any, Any],
        made: Any,
    ) -> None: ...
    def __call__(self, arguments: tuple[Any, ...]) -> tuple[Any, Any] | None: ...

def compile(
    text: str,
    entry: str,
    file_name: str,
    target: str,
    form: str = "auto",
    reassociate: str = "auto",
    math: str = "",
    trusted: bool = True,
    differentiate: list[int] | None = None,
) -> Kernel: ...
def public_functions(text: str, file_name: str, trusted: bool = True) -> list[str]:
    """The names of the public functions of a module, in order."""

def clear_cache() -> None:
    """Forgets the compiled code in memory; kernels in use live on."""

def has_matrix_unit() -> bool:
    """Whether kernels of the CPU may have products in a matrix unit."""

def cache_stats() -> dict[str, int]: ...
def disk_cache() -> dict[str, Any]:
    """The folder of compiled code, why there is none, and its size."""

def set_num_threads(count: int | None) -> None:
    """Sets the number of threads of this process; None is the default:
    LINATTN_NUM_THREADS, or the CPUs that this process may use."""

def outlive() -> None:
    """Says that something keeps objects of this module to the very end."""

def get_num_threads() -> int:
    """The number of threads that a call uses unless it says otherwise."""

def fma_kind() -> str: ...
def vector_unit() -> tuple[int, int]: ...
def fma_gflops(threads: int = 1) -> float:
    """GFLOP/s of an f32 FMA loop on that many threads, in the vectors that code is made for."""

def copy_gbytes(bytes: int, threads: int = 1) -> float:
    """GB/s, read plus written, of copying within a footprint."""

def update_gbytes(bytes: int, threads: int = 1, best: bool = True) -> float:
    """GB/s, read plus written, of updating a footprint in place."""

def random_projection(
    features: int, head_size: int, heads: int, orthogonal: bool, chi_norms: bool, seed: int, draw: int
) -> Any: ...
