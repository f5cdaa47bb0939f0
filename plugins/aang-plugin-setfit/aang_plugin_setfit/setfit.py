"""SetFit (Tunstall et al., 2022, section 3): tune an encoder on pairs of texts, then classify."""

import gc
import shutil
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import torch
from aang.assembly import encoder_of
from aang.config import TrainConfig
from aang.modeling import load_text_model, load_tokenizer
from aang.modeling.loading import quiet
from aang.runs.training import choose_training_device
from aang_plugin_best.quick import FrozenMean
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from transformers import PrinterCallback

from aang_core import ConfigError
from aang_core.turns import generators_kept, training_turn

with warnings.catch_warnings():  # setfit changes the warnings of the whole process
    from setfit import TrainingArguments
    from setfit.sampler import ContrastiveDataset

PAIRS = 16
"""Pairs in a step."""
MOST_ROWS = 5000
"""The most rows to draw pairs from: setfit lists all pairs, 200 MB here, before it draws."""


def setfit(config: TrainConfig) -> Any:
    """Logistic regression on the mean of the tokens, after the encoder has been tuned.

    Raises:
        ConfigError: SetFit cannot be trained on such rows, or with such options.
    """
    if config.text_pair is not None:
        raise ConfigError("SetFit pairs the texts itself, and these rows have two texts each")
    if config.from_scratch:
        raise ConfigError("--from-scratch: SetFit tunes an encoder that has been pre-trained")
    if choose_training_device(config.device).index:
        raise ConfigError(
            f"--device {config.device}: SetFit's trainer takes the first GPU that it sees; choose "
            "with CUDA_VISIBLE_DEVICES instead"
        )
    # Classes count equally in training if they do in the metric.
    weights = "balanced" if config.metric == "macro-f1" else None
    classes = LogisticRegression(max_iter=1000, class_weight=weights)
    return Pipeline([("encoder", TunedMean(encoder_of(config), config)), ("classes", classes)])


class TunedMean(FrozenMean):
    """The mean of the tokens of an encoder that every fit tunes anew."""

    def fit(self, texts: Any, labels: Any = None) -> "TunedMean":
        """Tune the encoder on pairs of N texts with N labels.

        Raises:
            AangError: the encoder cannot be loaded, or there is no such device.
        """
        folder = Path(tempfile.mkdtemp(prefix="aang-setfit-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        generator = torch.Generator().manual_seed(self.config.seed)
        rows = torch.randperm(len(texts), generator=generator)[:MOST_ROWS].tolist()
        self.encoder, self._loaded = str(folder), None
        tune(self.config, [texts[i] for i in rows], [labels[i] for i in rows], folder)
        # The trainer's parts refer to each other, and other trainings need the memory of the GPU.
        gc.collect()
        torch.cuda.empty_cache()
        return self

    def transform(self, texts: Any) -> NDArray[np.float32]:
        """Encode N texts: float32 ``[N, H]``."""
        with generators_kept():  # loading the encoder draws a head that is not used
            return super().transform(texts)


class Trainer(SentenceTransformerTrainer):
    """The trainer without its model card, whose examples are drawn behind a progress bar."""

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Add none."""


def tune(config: TrainConfig, texts: list[str], labels: list[int], folder: Path) -> None:
    """Write an encoder whose means are similar for texts of one class, and different otherwise.

    It sees every pair once, or as many as ``config.steps`` steps take, with setfit's defaults.
    """
    device = choose_training_device(config.device)
    with training_turn(), quiet():
        torch.manual_seed(config.seed)
        load_text_model(
            encoder_of(config),
            load_tokenizer(encoder_of(config), trust_remote_code=config.trust_remote_code),
            ("0", "1"),
            allow_missing_weights=config.allow_missing_weights,
            trust_remote_code=config.trust_remote_code,
        ).save(folder, config.max_length)
        words = Transformer(str(folder))
        pooling = Pooling(words.get_embedding_dimension(), "mean")
        model = SentenceTransformer(modules=[words, pooling], device=str(device))
        pairs = ContrastiveDataset(texts, labels, False, max_pairs=PAIRS * config.steps)
        defaults = TrainingArguments(report_to="none")
        arguments = SentenceTransformerTrainingArguments(
            str(folder),
            per_device_train_batch_size=PAIRS,
            num_train_epochs=1,
            learning_rate=defaults.body_embedding_learning_rate,
            warmup_steps=defaults.warmup_proportion,
            weight_decay=defaults.l2_weight,
            seed=config.seed,
            use_cpu=device.type == "cpu",
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        arguments._n_gpu = min(1, arguments.n_gpu)  # with several, a step would take more pairs
        trainer = Trainer(
            model,
            arguments,
            train_dataset=Dataset.from_list(list(pairs)),
            loss=defaults.loss(model),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        words.auto_model.save_pretrained(folder)
