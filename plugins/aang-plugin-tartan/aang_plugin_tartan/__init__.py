"""Training on all tasks at once, with weights that are fixed or learned one by one.

TARTAN (Dery et al., "Should We Be Pre-training? An Argument for End-task Aware Training as an
Alternative", ICLR 2022): instead of pre-training on auxiliary tasks and fine-tuning afterwards,
train on the end task and the auxiliary tasks together. MT-TARTAN keeps the weights fixed;
META-TARTAN learns them from the gradient of the end task's dev loss.

===========  ====================================================
weighter     class
===========  ====================================================
static       aang_plugin_tartan.static:Static
meta-tartan  aang_plugin_tartan.meta_tartan:MetaTartan
===========  ====================================================

Nothing is imported here, so that listing plug-ins stays light.
"""
