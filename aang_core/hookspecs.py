"""Every hook that a plug-in may implement, and the function that each one receives.

A plug-in is a module with functions of these names, decorated with :data:`hookimpl`. Each hook is
called once with ``register``, which is bound to the plug-in: every registration records the
distribution and the version it came from. An invalid registration (a malformed name or trait, a
name registered twice, a missing summary) raises :class:`~aang_core.errors.PluginError`. The plug-in
then registers nothing at all, and the command continues without it.

Hooks whose names do not begin with ``aang_register`` are called later, when their event happens or
their result is needed.

Keep registrations light. With a target ``"module:object"``, the module of the primitive and
everything it needs are imported when the primitive is first used.

Deprecations are announced here: a hook with ``@hookspec(warn_on_impl=...)``, a former name of
``register`` in ``warn_on_impl_args``. ``aang plugins`` and ``aang check-plugin`` then say which
plug-ins use it. They keep working, since a hook receives the same object under both names.
"""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pluggy

if TYPE_CHECKING:
    import click
    import torch
    from aang import Run, TextModel, TrainedPart

    from aang_core import AangError, Observer, Processes

PROJECT = "aang"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class RegisterPrimitive(Protocol):
    """What the hooks of the four stages and of the weighters receive.

    Examples:
        >>> from aang_core import Data, RegisterPrimitive, hookimpl
        >>> class Shout(Data):
        ...     def examples(self, context):
        ...         return context.train
        >>> @hookimpl
        ... def aang_register_data(register: RegisterPrimitive) -> None:
        ...     register("shout", "the training texts", Shout, provides=("text",))
        >>> def show(name, summary, target, *, provides=(), requires=()):
        ...     print(name, "provides", *provides)
        >>> aang_register_data(show)
        shout provides text
    """

    def __call__(
        self,
        name: str,
        summary: str,
        target: str | Callable[..., Any],
        *,
        provides: Iterable[str] = (),
        requires: Iterable[str] = (),
    ) -> None:
        """Register one primitive.

        Args:
            name: lower-case letters, digits and hyphens.
            summary: one line that describes it to people.
            target: what makes the primitive when called with the user's options, or
                ``"module:object"``, imported when first used.
            provides: traits that the primitive provides.
            requires: traits that the primitive needs. A combination is legal if its four primitives
                together provide every trait that any of them requires.
        """
        ...


class RegisterSpace(Protocol):
    """What :func:`aang_register_spaces` receives.

    Examples:
        >>> from aang_core import RegisterSpace, hookimpl
        >>> @hookimpl
        ... def aang_register_spaces(register: RegisterSpace) -> None:
        ...     stages = {"data": ["task"], "transform": ["mask", "no-op"]}
        ...     stages |= {"representation": ["bidirectional"], "output": ["denoise"]}
        ...     register("masks", "denoising, with and without masks", stages)
        >>> aang_register_spaces(lambda name, summary, source: print(name, source["transform"]))
        masks ['mask', 'no-op']
    """

    def __call__(
        self, name: str, summary: str, source: str | PathLike[str] | Mapping[str, Any]
    ) -> None:
        """Register one space.

        Args:
            name: lower-case letters, digits, hyphens and plus signs.
            summary: one line that describes it to people.
            source: the path of its YAML file, or the same content as a mapping.
        """
        ...


class RegisterObjective(Protocol):
    """What :func:`aang_register_objectives` receives.

    Examples:
        >>> from aang_core import RegisterObjective, hookimpl
        >>> @hookimpl
        ... def aang_register_objectives(register: RegisterObjective) -> None:
        ...     register("my-bert", "BERT's objective", "task/bert-op/bidirectional/denoise")
        >>> aang_register_objectives(lambda name, summary, *objectives: print(name, *objectives))
        my-bert task/bert-op/bidirectional/denoise
    """

    def __call__(self, name: str, summary: str, *objectives: str) -> None:
        """Register a name for one or several objectives.

        Args:
            name: lower-case letters, digits and hyphens.
            summary: one line that describes them to people.
            objectives: each as ``data/transform/representation/output``.
        """
        ...


class RegisterRecipe(Protocol):
    """What :func:`aang_register_recipes` receives.

    Examples:
        >>> from aang_core import RegisterRecipe, hookimpl
        >>> @hookimpl
        ... def aang_register_recipes(register: RegisterRecipe) -> None:
        ...     options = {"space": "td", "weighter": "static", "set": {"static": {"n": 3}}}
        ...     register("three", "three objectives per step, equally weighted", options=options)
        >>> aang_register_recipes(lambda name, summary, *, options: print(name, options["set"]))
        three {'static': {'n': 3}}
    """

    def __call__(
        self,
        name: str,
        summary: str,
        *,
        pretraining: Iterable[str] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Register one recipe, a complete way of training.

        Args:
            name: lower-case letters, digits, hyphens and plus signs.
            summary: one line that describes it to people.
            pretraining: named objectives that the encoder is trained on first, one after the other.
            options: options of ``aang train`` that the recipe sets, with underscores for dashes;
                the user can override each of them. Options of a weighter, such as ``{"set":
                {"static": {"n": 3}}}``, are dropped if the user chooses another weighter, those of
                a primitive if the user chooses another space than the recipe's; those of a stage of
                ``pretraining``, such as ``{"set": {"tapt": {"steps": 200}}}``, stay.
        """
        ...


class RegisterCommand(Protocol):
    """What :func:`aang_register_commands` receives.

    Examples:
        >>> from aang_core import RegisterCommand, hookimpl
        >>> @hookimpl
        ... def aang_register_commands(register: RegisterCommand) -> None:
        ...     register("hello", "Say hello.", "my_plugin.commands:hello")
        >>> aang_register_commands(lambda name, summary, target: print(name, target))
        hello my_plugin.commands:hello
    """

    def __call__(self, name: str, summary: str, target: "str | click.Command") -> None:
        """Add one command to ``aang``.

        Args:
            name: lower-case letters, digits and hyphens.
            summary: one line that describes it to people; ``aang --help`` shows it.
            target: a click command, or ``"module:object"``, imported when the command runs.
        """
        ...


class RegisterTarget(Protocol):
    """What the hooks of gradient engines, dev heads, end tasks and their kinds receive.

    Examples:
        >>> from aang_core import RegisterTarget, hookimpl
        >>> @hookimpl
        ... def aang_register_engines(register: RegisterTarget) -> None:
        ...     register("mine", "one task at a time, in my way", "my_plugin.engine:MyEngine")
        >>> aang_register_engines(lambda name, summary, target: print(name, target))
        mine my_plugin.engine:MyEngine
    """

    def __call__(self, name: str, summary: str, target: str | Callable[..., Any]) -> None:
        """Register one thing that the user chooses by its name.

        Args:
            name: lower-case letters, digits and hyphens.
            summary: one line that describes it to people.
            target: a callable, or ``"module:object"``, imported when first used.
        """
        ...


class RegisterGrid(Protocol):
    """What :func:`aang_register_grids` receives.

    Examples:
        >>> from aang_core import RegisterGrid, hookimpl
        >>> @hookimpl
        ... def aang_register_grids(register: RegisterGrid) -> None:
        ...     register("rates", "three learning rates", {"lr": [1e-5, 1e-4, 1e-3]})
        >>> aang_register_grids(lambda name, summary, options: print(name, options["lr"]))
        rates [1e-05, 0.0001, 0.001]
    """

    def __call__(self, name: str, summary: str, options: Mapping[str, Iterable[Any]]) -> None:
        """Register one grid of hyper-parameters.

        Args:
            name: lower-case letters, digits and hyphens.
            summary: one line that describes it to people.
            options: for each option of ``aang train``, named as in a configuration file, the values
                to try. An option of a primitive or weighter is written ``NAME.OPTION``; a method
                with another weighter ignores it.
        """
        ...


class RegisterCandidate(Protocol):
    """What :func:`aang_register_candidates` receives.

    Examples:
        >>> from aang_core import RegisterCandidate, hookimpl
        >>> @hookimpl
        ... def aang_register_candidates(register: RegisterCandidate) -> None:
        ...     register("gentle", "contrast, gently", options={"recipe": "contrast", "lr": 1e-5})
        >>> aang_register_candidates(lambda name, summary, *, options: print(name, options["lr"]))
        gentle 1e-05
    """

    def __call__(
        self,
        name: str,
        summary: str,
        target: str | Callable[..., Any] | None = None,
        *,
        options: Mapping[str, Any] | None = None,
        needs: str = "",
        cost: float | None = None,
    ) -> None:
        """Register one candidate: either options to train with, or a target.

        Args:
            name: lower-case letters, digits, hyphens and plus signs.
            summary: one line that describes it to people.
            target: makes a classifier with scikit-learn's ``fit``, ``predict_proba`` and
                ``classes_``, given the options of a training (``TrainConfig``); or
                ``"module:object"``, imported when first used. It is fitted to a list of N texts
                or, in tasks over pairs, an array of texts ``[N, 2]``, and to N labels.
            options: options of ``aang train`` that it is trained with.
            needs: an option of ``aang train`` without which it is not tried, such as
                ``"unlabelled"``.
            cost: about how long it takes, in units of plain fine-tuning; cheap ones come first. By
                default 1 with options, and 0 with a target, for what takes seconds and is fitted
                before the race. A target with a cost above 0 takes part in the race.
        """
        ...


class RegisterOption(Protocol):
    """What :func:`aang_register_options` receives.

    Examples:
        >>> from aang_core import RegisterOption, hookimpl
        >>> @hookimpl
        ... def aang_register_options(register: RegisterOption) -> None:
        ...     register("shout", "train on texts in capital letters", bool, default=False)
        >>> aang_register_options(lambda name, summary, type, *, default: print(name, default))
        shout False
    """

    def __call__(
        self,
        name: str,
        summary: str,
        type: Any,
        *,
        default: Any = None,
        goes_with: str | None = None,
        reporting: bool = False,
    ) -> None:
        """Add one option to ``aang train``.

        Args:
            name: as in a configuration file: lower-case letters, digits and underscores.
            summary: its help, one line.
            type: the type of its value: ``int``, ``float``, ``str``, ``bool``, ``Path``,
                ``tuple[str, ...]``, or anything else that pydantic validates. ``"module:object"``
                is imported when a training is configured.
            default: the value if the option is not given. With None its type need not allow None.
            goes_with: the option without which this one has no meaning and is refused.
            reporting: whether it only decides what is reported, or done with the finished model.
                The numbers of a training must not depend on it, so a run can be resumed with
                another value, and ``aang diagnose`` does not have it.
        """
        ...


@hookspec
def aang_register_data(register: RegisterPrimitive) -> None:
    """Register data primitives: where the text of an objective comes from.

    The target makes a :class:`~aang_core.objectives.stages.Data`.

    Traits in use: ``text`` for a source of texts; ``labels:end-task`` if its examples carry the end
    task's labels; ``labels:own`` if they carry the labels of another task; ``rows-of-the-step`` if
    they are the rows that the end task trains on in the same step (``of_step`` of
    :class:`~aang_core.objectives.stages.Data`); ``reads:domain``, ``reads:out-of-domain`` and
    ``reads:unlabelled`` if they read the text of the option of that name, which a run refuses if
    nothing reads it.
    """


@hookspec
def aang_register_transforms(register: RegisterPrimitive) -> None:
    """Register transforms: how the input is corrupted and which tokens are predicted.

    The target makes a :class:`~aang_core.objectives.stages.Transform`.

    Traits in use: ``masks-tokens`` if some of the selected tokens become the mask token;
    ``replaces-tokens`` if some become another ordinary token; ``unchanged-input`` if the ids stay
    as they are; ``noises-embeddings`` if it is a
    :class:`~aang_core.objectives.stages.NoisesEmbeddings`, whose objective shares no forward pass.
    """


@hookspec
def aang_register_representations(register: RegisterPrimitive) -> None:
    """Register representations: which tokens each token may attend to.

    The target makes a :class:`~aang_core.objectives.stages.Representation`.

    Traits in use: ``directional`` if tokens see one side only; ``sentence-representation`` if the
    first token sees the whole row, so that it can represent the sentence; ``reading-order`` if each
    token sees itself and the tokens before it in some order of the row; ``full-attention`` if every
    token sees the whole row.
    """


@hookspec
def aang_register_outputs(register: RegisterPrimitive) -> None:
    """Register outputs: what is predicted, and its loss.

    The target makes an :class:`~aang_core.objectives.stages.Output`. An output names the traits
    that it needs from the other stages in ``requires``.

    Traits in use: ``several-views`` if each row is shown to the encoder several times; such an
    objective shares a forward pass only with objectives that have the same views. ``end-task-head``
    if its head has the shape of the end task's: it then reads the first token, or every token if
    the end task labels words. An output that needs an end task of one kind requires
    ``end-task:KIND``, such as ``end-task:single-label``.
    """


@hookspec
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """Register weighters: strategies that decide task weights and drive the training.

    The target makes a :class:`~aang_core.tasks.weighting.Weighter` when called as
    ``target(end_task_card, auxiliary_cards, **options)``. Weighters belong to no stage;
    their traits have no effect.
    """


@hookspec
def aang_register_spaces(register: RegisterSpace) -> None:
    """Register spaces: named lists of primitives per stage, ready for ``--space NAME``."""


@hookspec
def aang_register_objectives(register: RegisterObjective) -> None:
    """Register named objectives, such as ``tapt`` for ``task/bert-op/bidirectional/denoise``."""


@hookspec
def aang_register_recipes(register: RegisterRecipe) -> None:
    """Register recipes: systems and baselines under one name, for ``aang train --recipe NAME``."""


@hookspec
def aang_register_commands(register: RegisterCommand) -> None:
    """Register commands, written with click, that ``aang`` offers as its own."""


@hookspec
def aang_register_grids(register: RegisterGrid) -> None:
    """Register grids of hyper-parameters, for ``--grid NAME`` of the commands that take one.

    The plug-in that owns a weighter registers the grids that its paper searched.
    """


@hookspec
def aang_register_candidates(register: RegisterCandidate) -> None:
    """Register candidates: ways to a classifier among which ``aang best`` chooses by outcome."""


@hookspec
def aang_register_engines(register: RegisterTarget) -> None:
    """Register gradient engines, which measure signals, for ``--gradients NAME``.

    The target is an :class:`~aang_core.gradients.EngineFactory`.
    """


@hookspec
def aang_register_dev_heads(register: RegisterTarget) -> None:
    """Register dev heads: throw-away heads of the end task that the dev gradient goes through."""


@hookspec
def aang_register_task_types(register: RegisterTarget) -> None:
    """Register kinds of end task: how labels are read, predicted and scored.

    The target is a subclass of ``aang.task_types.TaskType`` whose ``name`` is the registered
    name. Objectives of a run with such an end task have the trait ``end-task:NAME``.
    """


@hookspec
def aang_register_tasks(register: RegisterTarget) -> None:
    """Register end tasks that the plug-in brings, for ``--dataset NAME``.

    The target takes a :class:`~aang_core.ReadReport` and returns an
    ``aang.corpora.TaskWithTexts``. The one called ``demo`` is trained if no data is named.
    """


@hookspec
def aang_register_options(register: RegisterOption) -> None:
    """Register options of ``aang train``.

    They have the same name in configuration files and in Python. The plug-in reads them from
    ``options`` in the hooks below, and after a run from ``run.options``.
    """


@hookspec
def aang_before_training(options: Mapping[str, Any], resumed: bool) -> None:
    """Refuse what cannot work, before the encoder is loaded or anything is written.

    Called in every process of a training, by ``aang train --dry-run`` and by ``aang diagnose``.

    Args:
        options: every option of the training, by its name in configuration files.
        resumed: whether an interrupted run is being resumed.

    Raises:
        AangError: the training cannot be done; the message says why.
    """


@hookspec
def aang_prepare_model(
    model: "TextModel", options: Mapping[str, Any], stage: str | None
) -> "TrainedPart | None":
    """Change which part of the encoder is trained, or how, just after it has been loaded.

    Called for the main training and for every stage of pre-training, in every process. Parameters
    without ``requires_grad`` are left out of gradients, signals, updates and checkpoints. Draw only
    from torch's generator, so that a seed fixes the run.

    Args:
        model: the encoder with the end task's head; ``model.body.base`` is changed in place.
        options: every option of the training, by its name in configuration files.
        stage: the stage of pre-training; None for the main training.

    Returns:
        What was made of the encoder; None if it is unchanged.

    Raises:
        AangError: the encoder cannot be used in this way; the message says why.
    """


@hookspec
def aang_observe(folder: Path, options: Mapping[str, Any]) -> "Observer | None":
    """Watch the main training of a run, to log it somewhere, for instance.

    Called in the first process when the run folder exists.

    Args:
        folder: the run folder.
        options: every option of the training, by its name in configuration files.

    Returns:
        An observer; None to watch nothing. If it has a method ``close``, that is called when the
        training has ended.
    """


@hookspec
def aang_after_training(run: "Run") -> None:
    """Do something with a run that has just been trained: report it, upload it, tell somebody.

    Called in the first process when every file of the run except ``result.json`` is written. That
    file comes last and marks the run as finished. The hook may add files to ``run.folder``. If the
    run is interrupted at this point, the hook is called again when the run is resumed.

    An exception does not harm the run: the user sees one line about it, and the run finishes.

    Args:
        run: the run, with everything that :class:`aang.Run` reads.
    """


@hookspec
def aang_open_classifier(source: Path, device: "torch.device", trust_remote_code: bool) -> Any:
    """Open a folder that is neither a run nor a transformers classifier, for ``aang predict``.

    Args:
        source: what the user named.
        device: the device to compute on.
        trust_remote_code: whether Python code that comes with a model may run.

    Returns:
        A dataclass with the ``labels``, ``columns``, ``pairs``, ``task_type``, ``predict`` and
        ``labelled_logits`` of :class:`aang.runs.predict.Predictor`; None for any other folder.
    """


@hookspec
def aang_join_processes(device: "torch.device | AangError") -> "Processes":
    """Meet the other processes that a launcher has started to share a training.

    Only one loaded plug-in may implement it. Called in every process; a process may join twice.

    Args:
        device: the device that this process computes on; or the error why it cannot take part,
            which is to be raised in the other processes.

    Returns:
        The processes, which exchange tensors from now on.

    Raises:
        AangError: they cannot find each other, or one of them cannot take part.
    """
    raise NotImplementedError


@hookspec
def aang_plot_run(run: "Run", what: str) -> Any:
    """Draw a chart of a run, for :meth:`aang.Run.plot`.

    Only one loaded plug-in may implement it.

    Args:
        run: the run.
        what: the name of the chart.

    Returns:
        A figure that notebooks can show.

    Raises:
        ConfigError: the run has no such chart; the message lists the charts that it has.
    """


@hookspec
def aang_plot_diagnosis(path: Path) -> Callable[[Any], None]:
    """Prepare the figure of ``aang diagnose --plot``, before anything is measured.

    Only one loaded plug-in may implement it.

    Args:
        path: the file to write the figure to.

    Returns:
        A function that writes the figure of a diagnosis to ``path``.

    Raises:
        ConfigError: this type of file cannot be written.
    """
    raise NotImplementedError
