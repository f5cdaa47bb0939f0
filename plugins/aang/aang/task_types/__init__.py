"""The kinds of end task: what a label is, and all that follows from it, one file a kind.

=============  ====================================  ===========================================
task type      a label is                            class
=============  ====================================  ===========================================
single-label   one class                             aang.task_types.single_label:SingleLabel
multi-label    any number of classes, or none        aang.task_types.multi_label:MultiLabel
regression     one number                            aang.task_types.regression:Regression
token-labels   a tag for every word of the text      aang.task_types.token_labels:TokenLabels
=============  ====================================  ===========================================

:mod:`~aang.task_types.task_type` has the protocol that each of them keeps, and
:mod:`~aang.task_types.choose` chooses one from the data. To add a kind, write its class and
list it in ``names.py`` and ``choose.py``.

Nothing is imported here, so that naming a kind does not load torch.
"""
