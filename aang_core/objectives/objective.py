"""Objectives: one primitive of each stage, and whether the combination is legal."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from aang_core.errors import ConfigError, UnknownNameError
from aang_core.plugins.primitive import STAGES, Primitive, Stage
from aang_core.plugins.registry import (
    ONE_CLASS,
    PREFIX,
    READS_END_TASK_HEAD,
    EndTaskTraits,
    Registry,
)


@dataclass(frozen=True)
class Objective:
    """An auxiliary objective: data → transform → representation → output (AANG, section 3).

    Attributes:
        data: where its texts come from.
        transform: how they are corrupted and which tokens are predicted.
        representation: which tokens each token may attend to.
        output: what is predicted, and the loss.
        end_task: the traits that it has from the kind of end task.

    Examples:
        >>> from aang_core import Objective, load_plugins
        >>> registry = load_plugins().registry
        >>> print(Objective.parse("tapt", registry))
        task/bert-op/bidirectional/denoise
        >>> Objective.parse("task/mask/left-to-right/end-task", registry).missing
        {'output': frozenset({'sentence-representation'})}
    """

    data: Primitive
    transform: Primitive
    representation: Primitive
    output: Primitive
    end_task: EndTaskTraits = field(default=ONE_CLASS, kw_only=True)

    @classmethod
    def parse(cls, name: str, registry: Registry) -> "Objective":
        """Look up an objective and its four primitives.

        It need not be legal: see :attr:`illegal_because`.

        Args:
            name: ``data/transform/representation/output``, or the name of a registered objective.
            registry: where the names are looked up.

        Raises:
            ConfigError: ``name`` does not have four parts, or names several objectives.
            UnknownNameError: one of its parts is not registered.
            AmbiguousNameError: several plug-ins own the short name of one of its parts.
        """
        written = name
        if "/" not in name:
            written, registry = _registered(name, registry)
        parts = written.split("/")
        if len(parts) != len(STAGES):
            raise ConfigError(
                f"{written} is not an objective: it has {len(parts)} parts and needs "
                f"{len(STAGES)}, {'/'.join(STAGES)}, as in task/bert-op/bidirectional/denoise"
            )
        data, transform, representation, output = (
            registry.primitive(stage, part) for stage, part in zip(STAGES, parts, strict=True)
        )
        return cls(data, transform, representation, output, end_task=registry.end_task)

    def __str__(self) -> str:
        return self.name

    @property
    def primitives(self) -> tuple[Primitive, Primitive, Primitive, Primitive]:
        """The four primitives in the order of the stages."""
        return self.data, self.transform, self.representation, self.output

    @property
    def name(self) -> str:
        """Such as ``task/bert-op/bidirectional/denoise``; :meth:`parse` reads it."""
        return "/".join(primitive.key for primitive in self.primitives)

    @property
    def factors(self) -> Mapping[str, str]:
        """The primitive's name by stage; weighters can share weight between equal names."""
        return {primitive.stage: primitive.key for primitive in self.primitives}

    @property
    def missing(self) -> Mapping[Stage, frozenset[str]]:
        """For each stage, the traits that its primitive requires and nothing provides."""
        provided = self.end_task.provides.union(*(p.provides for p in self.primitives))
        if READS_END_TASK_HEAD in self.output.provides:
            provided |= self.end_task.waived
        return {
            primitive.stage: primitive.requires - provided
            for primitive in self.primitives
            if not primitive.requires <= provided
        }

    @property
    def legal(self) -> bool:
        """Whether primitives and end task provide every trait that any primitive requires."""
        return not self.missing

    @property
    def illegal_because(self) -> str | None:
        """A clause that says which required traits are missing; None if legal."""
        clauses = []
        for primitive in self.primitives:
            missing = self.missing.get(primitive.stage, frozenset())
            of_end_task = sorted(trait for trait in missing if trait.startswith(PREFIX))
            of_others = sorted(missing.difference(of_end_task))
            requires = f"the {primitive.stage} {primitive.key} requires"
            if of_end_task:
                clauses.append(
                    f"{requires} {' and '.join(of_end_task)}, and this end task is "
                    f"{self.end_task.task_type}"
                )
            if of_others:
                *most, last = (p.key for p in self.primitives if p != primitive)
                clauses.append(
                    f"{requires} {' and '.join(of_others)}, which {', '.join(most)} and {last} do "
                    "not provide"
                )
        return "; ".join(clauses) or None


def _registered(name: str, registry: Registry) -> tuple[str, Registry]:
    """What a named objective stands for, and the registry that knows what its names mean."""
    try:
        entry = registry.objectives.find(name)
    except UnknownNameError as error:
        raise UnknownNameError(
            f"{error}; or write four names, as in task/bert-op/bidirectional/denoise"
        ) from None
    if len(entry.objectives) > 1:
        raise ConfigError(
            f"{name} is the name of {len(entry.objectives)} objectives, and one is needed here: "
            f"{' or '.join(entry.objectives)}"
        )
    return entry.objectives[0], registry.as_meant_by(entry.origin.distribution)
