"""The kinds of end task: what a label is, and all that follows from it, one file a kind.

=============  ====================================  ===========================================
task type      a label is                            class
=============  ====================================  ===========================================
single-label   one class                             aang_core.task_types.single_label:SingleLabel
multi-label    any number of classes, or none        aang_core.task_types.multi_label:MultiLabel
regression     one number                            aang_core.task_types.regression:Regression
token-labels   a tag for every word of the text      aang_core.task_types.token_labels:TokenLabels
=============  ====================================  ===========================================

:mod:`~aang_core.task_types.task_type` has the protocol that each of them keeps, and
:mod:`~aang_core.task_types.choose` chooses one from the data. To add a kind, write its class and
list it in ``names.py`` and ``choose.py``.

Nothing is imported here, so that naming a kind does not load torch.
"""
