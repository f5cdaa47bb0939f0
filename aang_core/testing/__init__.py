"""The former place of ``aang_testing``, for one more release."""

import sys
import warnings

import aang_testing

warnings.warn(
    "aang_core.testing is aang_testing now, of the distribution aang-testing",
    DeprecationWarning,
    stacklevel=2,
)
sys.modules[__name__] = aang_testing
