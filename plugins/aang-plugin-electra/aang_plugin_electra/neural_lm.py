"""The data ``neural-lm``."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from aang import atomic_write, cache_folder

from aang_core import Data, DataContext, DataError, Example, number_option, whole_number_option

_FORMAT = 1
"""Increase when the same settings give other texts, so that old caches are not used."""


class NeuralLm(Data):
    """Text written by a language model (AANG, Figure 1: the data of Electra).

    The texts depend only on these options, the seed of the run, the training text and the model.
    They are sampled once and then cached.

    Args:
        model: folder or hub name of a causal or a masked language model. A causal one writes each
            text from its start token. A masked one rewrites a training text of the end task until
            it has sampled every token (Wang and Cho, 2019). Without a name, a small causal one is
            first trained on the end task's training text.
        texts: number of texts; None for as many as the end task has training examples.
        max_tokens: longest text, in tokens of the model.
        temperature: of sampling.
        top_k: number of most likely tokens to sample from; 0 for the whole vocabulary.
        train_steps: training steps of the default model.

    Raises:
        ConfigError: an option is out of range.
    """

    def __init__(
        self,
        model: str | None = None,
        texts: int | None = None,
        max_tokens: int = 64,
        temperature: float = 1.0,
        top_k: int = 50,
        train_steps: int = 300,
    ) -> None:
        self._model = model
        self._texts = texts
        if texts is not None:
            whole_number_option("neural-lm.texts", texts)
        self._max_tokens = whole_number_option("neural-lm.max_tokens", max_tokens, low=2)
        self._temperature = number_option(
            "neural-lm.temperature", temperature, low=0, above_low=True
        )
        self._top_k = whole_number_option("neural-lm.top_k", top_k, low=0)
        self._train_steps = whole_number_option("neural-lm.train_steps", train_steps)

    def examples(self, context: DataContext) -> Iterator[Example]:
        """The sampled texts, without labels.

        Raises:
            DataError: there is no training text to start from, or only blank texts were sampled.
            ModelError: ``model`` cannot be loaded, or cannot generate text.
        """
        if not context.train:
            raise DataError("The data 'neural-lm' starts from the end task's texts; it has none.")
        path = cache_folder() / "neural-lm" / f"{self._digest(context)}.json"
        if not path.exists():
            texts = self._sampled(context)
            with atomic_write(path) as draft:
                draft.write_text(json.dumps(texts), encoding="utf-8")
        texts = json.loads(path.read_text(encoding="utf-8"))
        source = self._model or "a small language model trained on the task's text"
        context.report.note(f"neural-lm: {len(texts)} texts sampled from {source}")
        return (Example(text) for text in texts)

    def _sampled(self, context: DataContext) -> Sequence[str]:
        # Imported here: looking up the texts in the cache needs no torch.
        from aang_plugin_electra.sampling import LanguageModel, Sampling

        settings = Sampling(
            self._texts or len(context.train), self._max_tokens, self._temperature, self._top_k
        )
        originals = [example.text for example in context.train]
        if self._model is None:
            model = LanguageModel.trained(
                originals, self._max_tokens, steps=self._train_steps, seed=context.seed
            )
        else:
            model = LanguageModel.load(self._model)
        return model.sample(originals, settings, seed=context.seed)

    def _digest(self, context: DataContext) -> str:
        settings = [
            *(_FORMAT, self._texts, self._max_tokens, self._temperature, self._top_k),
            *(self._train_steps, context.seed, self._model, _state_of(self._model)),
        ]
        content = json.dumps([settings, [example.text for example in context.train]])
        return hashlib.sha256(content.encode()).hexdigest()[:32]


def _state_of(model: str | None) -> list[tuple[str, int, int]]:
    """Size and time of the files of a model folder, which may change between two runs."""
    if model is None or not Path(model).is_dir():
        return []
    files = sorted(path for path in Path(model).iterdir() if path.is_file())
    return [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
