"""Weights from the sizes of losses and gradients, without the dev set.

Kendall et al. ("Multi-Task Learning Using Uncertainty to Weigh Losses for Scene Geometry and
Semantics", CVPR 2018) learn how uncertain each task is. GradNorm (Chen et al., "GradNorm: Gradient
Normalization for Adaptive Loss Balancing in Deep Multitask Networks", ICML 2018) brings the tasks'
gradients to lengths that follow how fast each task learns. Dynamic Weight Average (Liu, Johns and
Davison, "End-to-End Multi-Task Learning with Attention", CVPR 2019) needs the losses alone.

===========  =============================================
weighter     class
===========  =============================================
uncertainty  aang_plugin_balance.uncertainty:Uncertainty
gradnorm     aang_plugin_balance.gradnorm:GradNorm
dwa          aang_plugin_balance.dwa:DynamicWeightAverage
===========  =============================================

Nothing is imported here, so that listing plug-ins stays light.
"""
