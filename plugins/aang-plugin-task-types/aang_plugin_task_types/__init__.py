"""Kinds of end task beside one class a text.

=============  ====================================  ==========================================
task type      a label is                            class
=============  ====================================  ==========================================
token-labels   a tag for every word of the text      aang_plugin_task_types.token_labels:TokenLabels
multi-label    any number of classes, or none        aang_plugin_task_types.multi_label:MultiLabel
regression     one number                            aang_plugin_task_types.regression:Regression
=============  ====================================  ==========================================

Nothing is imported here, so that listing plug-ins does not load torch.
"""
