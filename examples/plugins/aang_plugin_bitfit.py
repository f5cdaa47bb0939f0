"""Options of aang train, and what acts on them: BitFit (Ben Zaken et al., 2022).

aang --plugin aang_plugin_bitfit.py train --bitfit --lr 1e-3
"""

from aang import TrainedPart

from aang_core import ConfigError, hookimpl


@hookimpl
def aang_register_options(register):
    register("bitfit", "train the bias terms of the encoder alone", bool, default=False)


@hookimpl
def aang_before_training(options, resumed):
    if options["bitfit"] and options["from_scratch"]:
        raise ConfigError(
            "--bitfit trains no weights, and --from-scratch makes them at random; leave one out"
        )


@hookimpl
def aang_prepare_model(model, options):
    if not options["bitfit"]:
        return None
    for name, parameter in model.body.named_parameters():
        parameter.requires_grad_(name.endswith("bias"))
    return TrainedPart("bias terms alone are trained")
