"""Agreement of the end task's predictions on clean and corrupted text, which needs no labels.

With few labels and much text of the task, what the classifier predicts for a clean text teaches it
to predict the same for a corrupted one: with the whole prediction as the target (UDA; Xie et al.,
2020), or with its class (FixMatch; Sohn et al., 2020).

======  =============  ================================================
stage   primitive      class
======  =============  ================================================
output  consistency    aang_plugin_consistency.consistency:Consistency
output  pseudo-label   aang_plugin_consistency.pseudo_label:PseudoLabel
======  =============  ================================================

Nothing is imported here, so that listing plug-ins does not load torch.
"""
