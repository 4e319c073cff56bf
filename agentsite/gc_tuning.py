"""Tuning of the garbage collector for long-running processes."""

import gc


def freeze_gc() -> None:
    """Exclude all loaded modules from garbage collection.

    Otherwise each full collection of a busy process walks through all of them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
