"""Turns the options of a training or a preparation into the settings of encoder training."""

from dataclasses import replace

from aang.assembly.chain_stage import StageSettings
from aang.config import TrainConfig
from aang.runs.encoder_training import EncoderTraining
from aang.runs.preparation_config import PreparationConfig
from aang_core.training.optimization import OptimizerSettings
from aang_core.training.precision import in_effect


def encoder_settings(
    config: TrainConfig | PreparationConfig, pace: StageSettings | PreparationConfig
) -> EncoderTraining:
    """The settings of encoder training.

    Args:
        config: the options of the whole command.
        pace: steps, rows per step and learning rates: the settings of a stage of pre-training, or
            the options of a preparation.
    """
    optimizer = OptimizerSettings(
        lr=pace.lr,
        head_lr=pace.head_lr,
        weight_decay=config.weight_decay,
        warmup=config.warmup,
        max_grad_norm=config.max_grad_norm,
    )
    if isinstance(config, TrainConfig):
        optimizer = replace(optimizer, eps=config.adam_eps)
    return EncoderTraining(
        optimizer=optimizer,
        steps=pace.steps,
        seconds=pace.seconds if isinstance(pace, PreparationConfig) else None,
        eval_every=pace.eval_every,
        batch_size=pace.batch_size,
        micro_batch_size=config.micro_batch_size,
        precision=in_effect(config.precision),
        seed=config.seed,
        on_nan=config.on_nan,
        checkpoint_every=config.checkpoint_every,
    )
