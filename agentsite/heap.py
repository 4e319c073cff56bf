"""What the garbage collector of a process that stays for long need not look at."""

import gc


def settle_heap() -> None:
    """Spare the collector what stays for good: every module that is loaded.

    Else it walks through all of it again and again while the process is busy.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
