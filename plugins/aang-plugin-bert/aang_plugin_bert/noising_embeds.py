"""The transform ``noising-embeds``."""

from torch import Generator, Tensor

from aang_core import (
    SELECTION_RATE,
    Corruption,
    EmbeddedRows,
    Vocabulary,
    flag_option,
    number_option,
    select_tokens,
)
from aang_plugin_bert.selection import selection_rate

_START = 0.1
"""The gradient is taken at the random noise times this factor."""


class NoisingEmbeds:
    """Noise on the embeddings of the ordinary tokens; their ids stay (AANG, Figure 2).

    The paper names this transform and does not define it. Here the noise is Gaussian, or
    adversarial: just as long, in the direction in which the objective's loss rises most. With the
    outputs ``end-task`` and ``denoise`` that is the fast gradient method of Miyato et al. (2017,
    equation 5), taken near the clean text instead of at it; with ``consistency`` it is virtual
    adversarial training (Miyato et al., 2018, section 3.3, one power iteration), whose gradient is
    zero at the clean text.

    Args:
        scale: standard deviation of the noise, as a multiple of the root mean square of the row's
            embeddings.
        adversarial: turn the noise of each row against the objective, which takes one more forward
            and backward pass.
        rate: probability of selecting an ordinary token as a prediction target.

    Raises:
        ConfigError: ``scale`` is not above zero, or ``rate`` is not in (0, 1].
    """

    def __init__(
        self, scale: float = 0.5, adversarial: bool = False, rate: float = SELECTION_RATE
    ) -> None:
        self.scale = number_option("option scale of noising-embeds", scale, low=0, above_low=True)
        self.adversarial = flag_option("option adversarial of noising-embeds", adversarial)
        self.rate = selection_rate(rate)

    def __call__(
        self, ids: Tensor, ordinary: Tensor, vocabulary: Vocabulary, generator: Generator
    ) -> Corruption:
        return Corruption(ids, select_tokens(ordinary, generator, self.rate))

    def noise(self, rows: EmbeddedRows, generator: Generator) -> Tensor:
        """See :class:`aang_core.NoisesEmbeddings`."""
        noisy = rows.noisy.unsqueeze(2)
        squares = (rows.embeddings * noisy).square().sum(dim=(1, 2), keepdim=True)
        numbers = noisy.sum(dim=(1, 2), keepdim=True).clamp(min=1) * rows.embeddings.shape[2]
        noise = self.scale * (squares / numbers).sqrt() * rows.normal(generator)
        if not self.adversarial:
            return noise
        gradient = rows.gradient(_START * noise)
        length = gradient.norm(dim=(1, 2), keepdim=True)
        # A row without targets has no gradient, and keeps its random noise.
        turned = gradient * (noise.norm(dim=(1, 2), keepdim=True) / length.clamp(min=1e-30))
        return noise.where(length == 0, turned)
