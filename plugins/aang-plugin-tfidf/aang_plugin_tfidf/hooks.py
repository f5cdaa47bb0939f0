"""What this plug-in registers."""

from aang_core import RegisterPrimitive, hookimpl


@hookimpl
def aang_register_outputs(register: RegisterPrimitive) -> None:
    """Term weighting as a regression per token."""
    register(
        "tf-idf",
        "predict every token's TF-IDF in its document",
        "aang_plugin_tfidf.tf_idf:TfIdf",
        requires=("text",),
    )
