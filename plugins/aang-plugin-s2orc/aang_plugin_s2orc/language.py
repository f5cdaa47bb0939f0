"""In which language a text is written, judged by py3langid.

Lui and Baldwin, langid.py: An Off-the-shelf Language Identification Tool, ACL 2012: naive Bayes
over byte n-grams. It draws nothing at random, so a text is always judged alike.
"""

from aang_core import ConfigError

_CHARACTERS = 500
"""What a text is judged by: more of it changes the answer rarely and costs time in proportion."""


class Language:
    """A language that is asked for, by its ISO 639 code such as ``en``.

    Raises:
        ConfigError: py3langid is not installed, or does not know the language.
    """

    def __init__(self, code: object) -> None:
        # YAML takes Norwegian, no, for a truth value.
        code = "no" if code is False else str(code)
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ImportError as error:
            raise ConfigError(
                f"s2orc.language is {code!r}: telling languages needs py3langid; "
                "pip install 'aang-plugin-s2orc[language]'"
            ) from error
        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
        self.code = code.strip().lower()
        if self.code not in self._identifier.labels:
            known = " ".join(sorted(self._identifier.labels))
            raise ConfigError(
                f"s2orc.language is {code!r}; give the code of one language. Those that can be "
                f"told apart are {known}."
            )

    def of(self, text: str) -> str:
        """The code of the language that the beginning of ``text`` is likeliest in."""
        code, _ = self._identifier.classify(text[:_CHARACTERS])
        return str(code)
