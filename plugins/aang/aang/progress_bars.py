"""The progress bars of libraries, whose switches hold for the whole process."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_dataset_bars() -> Iterator[None]:
    """Hide the bars of ``datasets`` in the block."""
    from datasets import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


@contextmanager
def no_model_bars() -> Iterator[None]:
    """Hide the bars of ``transformers`` and ``huggingface_hub`` in the block."""
    from huggingface_hub.utils.tqdm import progress_bar_states
    from transformers.utils import logging

    # The switch of transformers also sets those of huggingface_hub.
    shown, of_hub = logging.is_progress_bar_enabled(), dict(progress_bar_states)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
        progress_bar_states.clear()
        progress_bar_states.update(of_hub)
