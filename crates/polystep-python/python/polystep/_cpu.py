"""Refuses a CPU that the compiled code cannot run on, before that code is loaded."""

NEEDED = ("avx2", "fma", "bmi2", "f16c")


def check_cpu(cpuinfo: str = "/proc/cpuinfo") -> None:
    """Raises an ImportError if the CPU lacks what the library is compiled for (x86-64-v3)."""
    try:
        with open(cpuinfo, encoding="ascii", errors="replace") as file:
            flags = next((line.split(":", 1)[1].split() for line in file if line.startswith("flags")), None)
    except OSError:
        return  # Not told here; nothing is known to be wrong.
    missing = [] if flags is None else [flag for flag in NEEDED if flag not in flags]
    if missing:
        raise ImportError(
            f"polystep needs an x86-64 CPU with AVX2 and FMA (any since about 2013); this one has no {', '.join(missing)}"
        )
