"""Tuning of the garbage collector, for starts and for long-running processes."""

import gc


def collect_rarely() -> None:
    """Let a process start without looking for garbage all the time.

    Importing makes 300,000 objects and no garbage; the search took 15% of a start.
    """
    gc.set_threshold(100_000, 50, 100)


def freeze_gc() -> None:
    """Exclude all loaded modules from garbage collection.

    Otherwise each full collection of a busy process walks through all of them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
