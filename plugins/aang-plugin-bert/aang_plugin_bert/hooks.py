"""What this plug-in registers."""

from aang_core import RegisterObjective, RegisterPrimitive, RegisterRecipe, hookimpl


@hookimpl
def aang_register_transforms(register: RegisterPrimitive) -> None:
    """BERT's corruption of the input, the two operations it is made of, and noise instead."""
    register(
        "mask",
        "every selected token becomes the mask token",
        "aang_plugin_bert.mask:Mask",
        provides=("masks-tokens",),
    )
    register(
        "replace",
        "every selected token becomes a random token",
        "aang_plugin_bert.replace:Replace",
        provides=("replaces-tokens",),
    )
    register(
        "bert-op",
        "of the selected tokens 80% are masked, 10% replaced, 10% kept",
        "aang_plugin_bert.bert_op:BertOp",
        provides=("masks-tokens", "replaces-tokens"),
    )
    register(
        "noising-embeds",
        "noise on the embeddings of the tokens, random or against the objective",
        "aang_plugin_bert.noising_embeds:NoisingEmbeds",
        provides=("noises-embeddings",),
    )


@hookimpl
def aang_register_representations(register: RegisterPrimitive) -> None:
    """BERT's attention."""
    register(
        "bidirectional",
        "every token sees the whole row",
        "aang_plugin_bert.bidirectional:Bidirectional",
        provides=("sentence-representation", "full-attention"),
    )


@hookimpl
def aang_register_outputs(register: RegisterPrimitive) -> None:
    """Masked language modelling, whatever the corruption was."""
    register(
        "denoise",
        "predict the original token at every selected position",
        "aang_plugin_bert.denoise:Denoise",
        requires=("text",),
    )


@hookimpl
def aang_register_objectives(register: RegisterObjective) -> None:
    """BERT's objective on the task's own text and on generic text."""
    register(
        "tapt",
        "BERT's objective on the task's own text (Gururangan et al., 2020)",
        "task/bert-op/bidirectional/denoise",
    )
    register(
        "bert",
        "BERT's pre-training on generic text (Devlin et al., 2019)",
        "out-of-domain/bert-op/bidirectional/denoise",
    )
    register("bert-style", "AANG's baseline Z", "task/bert-op/bidirectional/denoise")


@hookimpl
def aang_register_recipes(register: RegisterRecipe) -> None:
    """Continued pre-training with BERT's objective, and fine-tuning after it."""
    fine_tuning = {"weighter": "single-task"}
    register(
        "tapt",
        "pre-train on the task's own text, then fine-tune (Gururangan et al., 2020)",
        pretraining=("tapt",),
        options=fine_tuning,
    )
    register(
        "dapt",
        "pre-train on in-domain text, then fine-tune (Gururangan et al., 2020)",
        pretraining=("dapt",),
        options=fine_tuning,
    )
    register(
        "dapt+tapt",
        "pre-train on in-domain text, then on the task's own, then fine-tune",
        pretraining=("dapt", "tapt"),
        options=fine_tuning,
    )
