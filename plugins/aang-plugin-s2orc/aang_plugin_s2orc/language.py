"""The language of a text, identified by py3langid.

Lui and Baldwin, langid.py: An Off-the-shelf Language Identification Tool, ACL 2012: naive Bayes
over byte n-grams. Nothing is random, so the same text always gets the same language.
"""

from aang_core import ConfigError

_CHARACTERS = 500
"""Length of the start of a text that is used; more rarely changes the answer and takes longer."""


class Language:
    """A wanted language.

    Args:
        code: its ISO 639 code, such as ``en``.

    Raises:
        ConfigError: py3langid is not installed, or does not know the language.
    """

    def __init__(self, code: object) -> None:
        # YAML reads the code of Norwegian, no, as false.
        code = "no" if code is False else str(code)
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ImportError as error:
            raise ConfigError(
                f"s2orc.language is {code!r}: identifying languages needs py3langid; "
                "pip install 'aang-plugin-s2orc[language]'"
            ) from error
        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
        self.code = code.strip().lower()
        if self.code not in self._identifier.labels:
            known = " ".join(sorted(self._identifier.labels))
            raise ConfigError(
                f"s2orc.language is {code!r}; give the code of one language. The known codes "
                f"are {known}."
            )

    def of(self, text: str) -> str:
        """The code of the most likely language of the start of ``text``."""
        code, _ = self._identifier.classify(text[:_CHARACTERS])
        return str(code)
