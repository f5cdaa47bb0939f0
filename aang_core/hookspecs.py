"""Every hook that a plug-in may implement, and what each hands to it.

A plug-in is a module with functions of these names, decorated with :data:`hookimpl`. Each hook is
called once with ``register``, which is bound to the plug-in, so that everything registered knows
the distribution and version it came from. What ``register`` refuses (a name or trait of the wrong
form, a name given twice, a missing summary) raises :class:`~aang_core.errors.PluginError`; the
plug-in then registers nothing at all, and the command goes on without it.

The hooks whose names do not begin with ``aang_register`` are called later, when what they are for
has happened or is asked for.

A registration should be light: with a target ``"module:object"``, the module that holds the
primitive, and whatever it needs, is imported when the primitive is first used.

What is to go is announced here first: a hook by ``@hookspec(warn_on_impl=...)``, and a former name
of ``register`` by an argument that ``warn_on_impl_args`` names. pluggy warns the plug-ins that use
it, which go on working: under either name a hook is handed the same.
"""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pluggy

if TYPE_CHECKING:
    import click

    from aang_core import Diagnosis, Run

PROJECT = "aang"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class RegisterPrimitive(Protocol):
    """What the hooks of the four stages and of the weighters are handed."""

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

        name: lower-case letters, digits and hyphens.
        summary: one line for people.
        target: what makes the primitive when called with the user's options, or
            ``"module:object"``, imported when first used.
        provides, requires: traits. A combination is legal if all that its four primitives require
            is provided by some of them.
        """
        ...


class RegisterSpace(Protocol):
    """What :func:`aang_register_spaces` is handed."""

    def __call__(
        self, name: str, summary: str, source: str | PathLike[str] | Mapping[str, Any]
    ) -> None:
        """Register one space.

        name: lower-case letters, digits, hyphens and plus signs. summary: one line for people.
        source: the path of its YAML file, or the same content as a mapping.
        """
        ...


class RegisterObjective(Protocol):
    """What :func:`aang_register_objectives` is handed."""

    def __call__(self, name: str, summary: str, *objectives: str) -> None:
        """Register a name for one or several objectives.

        name: lower-case letters, digits and hyphens. summary: one line for people.
        objectives: each as ``data/transform/representation/output``.
        """
        ...


class RegisterRecipe(Protocol):
    """What :func:`aang_register_recipes` is handed."""

    def __call__(
        self,
        name: str,
        summary: str,
        *,
        pretraining: Iterable[str] = (),
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Register one recipe, a whole way of training.

        name: lower-case letters, digits, hyphens and plus signs. summary: one line for people.
        pretraining: named objectives that the encoder is trained on first, each alone and in turn.
        options: options of ``aang train`` that the recipe sets, with underscores for dashes; the
            user can override each of them. What it sets of a weighter, such as ``{"set": {"static":
            {"n": 3}}}``, holds as long as the user chooses no other weighter.
        """
        ...


class RegisterCommand(Protocol):
    """What :func:`aang_register_commands` is handed."""

    def __call__(self, name: str, summary: str, target: "str | click.Command") -> None:
        """Add one command to ``aang``.

        Args:
            name: Lower-case letters, digits and hyphens.
            summary: One line for people; ``aang --help`` shows it.
            target: A command made with click, or ``"module:object"``, imported when the command is
                run.
        """
        ...


class RegisterGrid(Protocol):
    """What :func:`aang_register_grids` is handed."""

    def __call__(self, name: str, summary: str, options: Mapping[str, Iterable[Any]]) -> None:
        """Register one grid of hyper-parameters.

        Args:
            name: Lower-case letters, digits and hyphens.
            summary: One line for people.
            options: The values to try of each option of ``aang train``, named as in a configuration
                file. An option of a primitive or weighter is written ``NAME.OPTION``; a method with
                another weighter ignores it.
        """
        ...


@hookspec
def aang_register_data(register: RegisterPrimitive) -> None:
    """Register data primitives: where the text of an objective comes from.

    The target makes a :class:`~aang_core.objectives.stages.Data`.
    Traits in use: ``text`` for a source of
    texts, ``labels:end-task`` for one whose examples carry the end task's labels, ``labels:own``
    for one whose examples carry labels of another task, ``rows-of-the-step`` for the rows that the
    end task trains on in the step (:class:`~aang_core.objectives.stages.StepData`).
    """


@hookspec
def aang_register_transforms(register: RegisterPrimitive) -> None:
    """Register transforms: how the input is corrupted and which tokens are to be predicted.

    The target makes a :class:`~aang_core.objectives.stages.Transform`.
    Traits in use: ``masks-tokens`` where
    some of the selected tokens become the mask token, ``replaces-tokens`` where some become
    another ordinary token, ``unchanged-input`` where the ids stay as they are.
    """


@hookspec
def aang_register_representations(register: RegisterPrimitive) -> None:
    """Register representations: which tokens a token may see.

    The target makes a :class:`~aang_core.objectives.stages.Representation`.
    Traits in use: ``directional``
    where tokens see one side only, ``sentence-representation`` where the first token sees the
    whole row, so that it can stand for the sentence, ``reading-order`` where a token sees itself
    and those before it in some order of the row, ``full-attention`` where every token sees the
    whole row.
    """


@hookspec
def aang_register_outputs(register: RegisterPrimitive) -> None:
    """Register outputs: what is predicted, and its loss.

    The target makes an :class:`~aang_core.objectives.stages.Output`.
    An output says what it needs of the
    other stages with ``requires``: any of the traits that they provide. Trait in use:
    ``several-views`` where each row is shown several times, so that it shares no pass with others.
    """


@hookspec
def aang_register_weighters(register: RegisterPrimitive) -> None:
    """Register weighters: strategies that decide task weights and drive the training.

    The target makes a :class:`~aang_core.tasks.weighting.Weighter` from ``target(end_task_card,
    auxiliary_cards, **options)``. Weighters belong to no stage; their traits play no part.
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
    """Register commands, written with click and added to ``aang``."""


@hookspec
def aang_register_grids(register: RegisterGrid) -> None:
    """Register grids of hyper-parameters: the values that a comparison tries.

    The plug-in that owns a weighter registers the grids that its paper searched.
    """


@hookspec
def aang_after_run(run: "Run") -> None:
    """Do something with a run that has ended: report it, upload it, tell somebody.

    Called in the first process, once all files of the run are written but ``result.json``, which
    makes the run finished. Files may be added to ``run.folder``. Where a run is interrupted just
    then, the hook is called again when it is resumed.

    An exception does not lose the run: the user is shown it in one line, and the run finishes.

    Args:
        run: The run, with everything that :class:`aang_core.Run` reads.
    """


@hookspec
def aang_plot_run(run: "Run", what: str) -> Any:
    """Draw the chart of a run that :meth:`aang_core.Run.plot` is asked for.

    Only one of the plug-ins that are loaded can implement it.

    Args:
        run: The run.
        what: The name of the chart.

    Returns:
        A figure that notebooks show.

    Raises:
        ConfigError: The run has no such chart; the message names those that it has.
    """


@hookspec
def aang_plot_diagnosis(path: Path) -> "Callable[[Diagnosis], None]":
    """Prepare the figure of ``aang diagnose --plot``, before anything is measured.

    Only one of the plug-ins that are loaded can implement it.

    Args:
        path: The file that the figure is to be in.

    Returns:
        What writes the figure of a diagnosis into ``path``.

    Raises:
        ConfigError: The file is of a kind that cannot be written.
    """
    raise NotImplementedError
