"""A representation that reads the text: tokens see their own sentence and the first token.

aang --plugin aang_plugin_sentences.py train --space task/mask/own-sentence/denoise
"""

from aang_core import hookimpl


class OwnSentence:
    def of_text(self, rows, generator):
        from aang_core import sentence_starts

        starts = sentence_starts(rows.ids, rows.ordinary, rows.vocabulary)
        # A special token belongs to no sentence and has a number of its own.
        sentence = (starts | ~rows.ordinary).cumsum(dim=1)
        sees = sentence.unsqueeze(1) == sentence.unsqueeze(2)
        sees[:, 0] = sees[:, :, 0] = True
        return sees & rows.real.unsqueeze(1)


@hookimpl
def aang_register_representations(register):
    register(
        "own-sentence",
        "every token sees its own sentence",
        OwnSentence,
        provides=("sentence-representation",),
    )
