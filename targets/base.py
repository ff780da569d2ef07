"""What a target is: a chip table, an ordered pipeline of named stages, and a way to emit and run kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from xcc.targets.folders import part, target_names
from xcc.targets.kernel_binary import KernelBinary, KernelLaunch

if TYPE_CHECKING:
    from xcc._mlir import Module
    from xcc.options import CompileOptions
    from xcc.passes.pipeline import Pipeline

__all__ = ["Chip", "KernelBinary", "KernelLaunch", "Target", "chip_of", "get_target", "target_names", "unknown_target"]


@dataclass(frozen=True)
class Chip:
    """One processor model. Sizes in bytes, rates in units a second; all passes take widths from here.

    Attributes:
        name: "x86-64-v4", "sm_90a", "gfx942", ...
        triple, cpu, features: what LLVM is asked for.
        cores: CPU cores, SMs or CUs that code is made for.
        vector_bytes: CPU vector register width; on a GPU the widest access of one thread.
        vector_registers: CPU architectural vector registers; on a GPU registers a thread.
        warp: threads that run in lockstep (32 or 64; 1 on a CPU).
        max_threads: threads a workgroup.
        shared_bytes: shared memory (LDS) a workgroup may use; CPU: L1 data cache.
        l2_bytes, l3_bytes: caches; l3_bytes is 0 where there is none.
        bandwidth: memory, bytes/s.
        flops: peak by type, e.g. {"f32": 67e12, "f16": 989e12}; CPU: a core's.
        matrix: matrix instructions available: "mma", "wgmma", "mfma", "wmma"; on a CPU also dot products of bytes
            ("vnni", "usdot": unsigned by signed, "sdot": signed, "madd": any, as pairs of i16) and of "bf16"
            ("bfdot" on ARM), and "amx".
        early_launch: whether a kernel can be placed on the device while the one before it ends, and wait by itself.
        link_bandwidth: bytes/s that a rank gets from another one in a collective, of the chips of one machine.
        link_latency: nanoseconds that a collective of few bytes takes by the library, between two ranks.
        exchange_latency: nanoseconds in which two ranks exchange few bytes by kernels that write into each other's
            memory (exchange-pairs), beyond what their neighbours take; 0: as by the library.
        memory_bytes: of the chip's own; 0 where it is not known.
        machine_ranks: chips that links join: those of one machine.
        network_bandwidth: bytes/s that a rank gets from one on another machine; 0: as over links.
        network_latency: as link_latency, between two ranks on different machines.
        line_priority: whether loads gain by saying how long the L2 cache is to keep their lines (streamed-lines).

    These describe one chip, and ``--chip=NAME,attribute=value`` changes them. What all chips of a target are like are
    the class variables and properties below, which the target's own subclass overrides: passes ask for them, and never
    which target a chip belongs to.

    Class variables:
        instruction_tables: modules with ``INSTRUCTIONS``, the matrix instructions by family
            (passes/gpu/layout/fragments.py).
        primitives: a GPU's module with ``barrier()``, ``lane_barrier()`` and ``keep_order()``, which build what is its
            own for a wait of a workgroup, of a warp, and for a place that no instruction crosses.
        tiles: a GPU's module with ``matrix_tile``, which knows the costs of products (targets/gpu_contraction.py).
        intrinsics: LLVM's name of the instruction for "exp2", "reciprocal" and "rsqrt" of f32, ``*`` for its type.
        llvm_schedules: LLVM orders the instructions: it moves loads ahead until registers are short, and unrolls loops
            as it is told. Otherwise the driver's assembler does, by latencies.
        loads_wait_at_barriers: the code generator moves no load over a barrier.
        dot_products: modules with ``INSTRUCTIONS``, a CPU's dot products (passes/shared/dot_instructions.py).
        chained_families: matrix instructions whose results lie in lanes as the next product's left operand does.
        streamed_rows: of tiles for products of few rows, which copy far ahead what is read once; the least first.
        maps_peers: whether kernels can write into the memory of other chips of the machine.
        core_registers: of a core, where the code generator heeds how many warps they are to suffice for; else 0.
        narrow_floats: whether f16 and bf16 have arithmetic of their own; otherwise products alone may.
        launch_seconds, resident_blocks: from a GPU's kernel to the next one; workgroups that a core holds at once.
    """

    instruction_tables: ClassVar[tuple[str, ...]] = ()
    primitives: ClassVar[str] = ""
    tiles: ClassVar[str] = ""
    intrinsics: ClassVar[Mapping[str, str]] = {}
    llvm_schedules: ClassVar[bool] = True
    loads_wait_at_barriers: ClassVar[bool] = False
    dot_products: ClassVar[tuple[str, ...]] = ()
    chained_families: ClassVar[tuple[str, ...]] = ()
    streamed_rows: ClassVar[tuple[int, ...]] = ()
    maps_peers: ClassVar[bool] = False
    core_registers: ClassVar[int] = 0
    narrow_floats: ClassVar[bool] = True
    launch_seconds: ClassVar[float] = 3e-6
    resident_blocks: ClassVar[int] = 16

    name: str
    triple: str
    cpu: str
    features: str = ""
    cores: int = 1
    vector_bytes: int = 16
    vector_registers: int = 16
    warp: int = 1
    max_threads: int = 1
    shared_bytes: int = 32768
    l2_bytes: int = 1 << 20
    l3_bytes: int = 0
    bandwidth: float = 0.0
    flops: tuple[tuple[str, float], ...] = ()
    matrix: tuple[str, ...] = ()
    early_launch: bool = False
    line_priority: bool = False
    link_bandwidth: float = 2e9         # by sockets
    link_latency: int = 100_000
    exchange_latency: int = 0
    memory_bytes: int = 0
    machine_ranks: int = 8
    network_bandwidth: float = 0.0
    network_latency: int = 200_000

    @property
    def last_cache_bytes(self) -> int:
        """The cache next to memory."""
        return self.l3_bytes or self.l2_bytes

    @property
    def has_threads(self) -> bool:
        """A tile program is the work of many threads, as on GPUs, not of one core."""
        return self.warp > 1

    @property
    def has_async_copies(self) -> bool:
        """Copies from global to shared memory that nobody waits for until it is said."""
        return False

    @property
    def nan_extremes(self) -> bool:
        """A maximum or minimum that is NaN where one of its operands is takes one instruction."""
        return True

    @property
    def masks_loads(self) -> bool:
        """Loads of lanes that are off are no branches, as buffer instructions give zeros there."""
        return False

    @property
    def has_matrix_loads(self) -> bool:
        """Loads of shared memory that hand matrix instructions their operands, transposed where that is wanted."""
        return False

    @property
    def warpgroup_products(self) -> bool:
        """Products that several warps issue together, and that read shared memory themselves."""
        return False

    @property
    def reads_fragments_ahead(self) -> bool:
        """Registers suffice for the operands of two matrix instructions."""
        return False

    @property
    def fragment_copies(self) -> int:
        """How many lanes of a warp hold the same element of a matrix instruction's operand."""
        return 1

    @property
    def narrow_waves(self) -> bool:
        """Few lanes of few registers run in lockstep: tiles of attention by FMAs are half as large."""
        return False

    @property
    def chained_features(self) -> int:
        """Columns of sums of products of products (attention's gradients) that registers have room for."""
        return 64 if self.narrow_waves else 128

    @property
    def lanes_in_step(self) -> bool:
        """A warp's own accesses of shared memory are ordered without a barrier."""
        return False

    @property
    def scales_lanes(self) -> bool:
        """A CPU with instructions for x * 2**n, and for a table of 16 floats in a register, looked up by lanes."""
        return False

    @property
    def tile_products(self) -> bool:
        """A CPU with registers for tiles of bytes and bf16, and products of them."""
        return False

    @property
    def rounds_to_bf16(self) -> bool:
        """A CPU with instructions from f32 to bf16."""
        return False

    @property
    def byte_products(self) -> str:
        """The type of left bytes that dot product instructions want ("ui8" or "i8"), "" where there are none."""
        return ""


@dataclass(frozen=True)
class Target:
    """A target by name; heavy modules are imported by the functions, not with this table.

    A target is a folder of its name, whose files others find by theirs:

    - ``target.py``: ``TARGET``, its Target.
    - ``strategy.py``: ``configure(kernel, chip) -> Schedule``, a pure function; ``few_rows(kernel, schedule, chip)``
      where kernels have further schedules for small sizes (passes/linalg/schedule/by_size.py).
    - ``executor.py``: what runs its models (:mod:`xcc.runtime.executors`).
    - ``measure.py``, for ``--tune``: ``measure(binary, subject, seconds) -> Measured``; for ``xcc-bench --kernels``
      also ``limits(model, again)`` where the machine's are measured, else they are those of the chip table.
    - ``tuning.txt``: schedules that were measured (passes/linalg/schedule/tuning.py).

    Attributes:
        chips: the chip table.
        default_chip: this machine's (``native``), else the one to assume.
        pipeline: CompileOptions -> passes.pipeline.Pipeline, from stage "xt" to the LLVM dialects.
        emit_kernel: (module, chip, options) -> KernelBinary. `module` is one kernel after the pipeline's last stage.
            Runs in a worker process; may crash.
        link: (program, kernels, chip, options) -> artifact members, path -> bytes. `program` has its final launches
            (see xcc.compiler.bind_launches); runs once a model: makes the .so with the host program, the one
            cubin/hsaco (or a file a kernel), whatever the target's executor reads back.
        collective_kernels: (program, chip, options) -> kernels of the artifact that do collectives of `program` on
            memory of other ranks (xcc.runtime.peer_collectives).
        formats: what ``--emit`` writes of all kernels as one file, best to read first: "asm", "ptx", "hsaco", ...
        code_file: (text, chip, format) -> that file; `text` is the module of the pipeline's last stage.
        text_formats: those of `formats` that a terminal may be shown.
        portable: the format of `KernelBinary.portable`.
        legal: stage of its own -> the ops that may be left when it ends (passes/legality.py).
        kept_stage: the stage whose kernels ``keep_ir`` stores, for the interpreter.
        shares_after: the stage whose kernels say whether an input and an output of a kernel may be the same memory
            (xcc.driver.shared_buffers); "" where they never may.
        fewer_registers: values of `vector_registers` that the strategy is told in further attempts at a kernel whose
            code spilled (`spills` of its report): tiles follow estimates, and the code generator has the last word.
        planned_stage: the last stage whose passes ask for `vector_registers`: kernels that are the same behind it are
            the same code; "" where none is.
        options: option of ``--target=T,option=value`` -> its values.
        title: what it is for, for people: "AMD GPUs".
        other_names: what else it is called, for hints: "cuda nvidia gpu".
        other_chips: chip -> what else it is called: "h100 hopper".
        native_key: text that decides `default_chip`, where that is quicker to see than the chip: part of the key under
            which finished artifacts are found.
        tile_stages: CompileOptions -> the stages of `pipeline` behind "vector" that run on a kernel alone, where they
            are made without the others, whose passes no tile program needs (xcc.targets.front.tile_pipeline).
        tools: text that says which of this machine's tools make the code, as part of that key.
    """

    name: str
    chips: Callable[[], dict[str, Chip]]
    default_chip: Callable[[], Chip]
    pipeline: Callable[[CompileOptions], Pipeline]
    emit_kernel: Callable[[Module, Chip, CompileOptions], KernelBinary]
    link: Callable[[Any, tuple[KernelBinary, ...], Chip, Any], dict[str, bytes]]
    formats: tuple[str, ...]
    code_file: Callable[[str, Chip, str], bytes]
    text_formats: tuple[str, ...] = ("asm",)
    portable: str = ""
    legal: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kept_stage: str = ""
    shares_after: str = ""
    fewer_registers: tuple[int, ...] = ()
    planned_stage: str = ""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    title: str = ""
    other_names: str = ""
    other_chips: Mapping[str, str] = field(default_factory=dict)
    native_key: Callable[[], str] | None = None
    tools: Callable[[], str] = str
    collective_kernels: Callable[[Any, Chip, Any], tuple[KernelBinary, ...]] = lambda program, chip, options: ()
    tile_stages: Callable[[CompileOptions], Pipeline] | None = None


def unknown_target(name: str) -> Exception:
    """What says that there is no target `name`."""
    from xcc.diagnostics import UserError
    from xcc.targets.hints import target_hint

    hint = target_hint(name, map(get_target, target_names()))
    return UserError(f"there is no target '{name}'; targets are {', '.join(target_names())}{hint}")


def get_target(name: str) -> Target:
    """The target called `name`; UserError when there is none."""
    module = part(name, "target")
    if module is None:
        raise unknown_target(name)
    target: Target = module.TARGET
    return target


def chip_of(target: Target, spec: str = "") -> Chip:
    """The chip that `spec` names (:mod:`xcc.targets.chip_spec`): the table's entry on every machine; for "" and
    ``native`` what `target.default_chip` gives."""
    from xcc.diagnostics import UserError
    from xcc.targets.chip_spec import NATIVE, split_specs, with_attributes
    from xcc.targets.hints import chip_hint

    if len(split_specs(spec)) > 1:
        raise UserError(f"chip '{spec}': these are several; one is wanted here")
    name, *attributes = spec.split(",")
    table = {} if name in ("", NATIVE) else target.chips()
    if table and name not in table:
        raise UserError(f"target '{target.name}' has no chip '{name}'; chips are {', '.join(sorted(table))} "
                        f"and {NATIVE}, this machine's{chip_hint(target, name, map(get_target, target_names()))}")
    return with_attributes(table[name] if table else target.default_chip(), attributes, spec)

