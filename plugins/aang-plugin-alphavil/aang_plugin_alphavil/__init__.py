"""Weights learned from how whole updates of the tasks change the dev loss or score.

αVIL (Kourdis et al., "αVIL: Learning to Leverage Auxiliary Tasks for Multitask Learning"): train
each task alone for a while, then find by gradient descent how much of each task's update the model
should take. Discriminative Importance Weighting (Sivasankaran et al., ICASSP 2017), as section 4.1
of that paper describes it: raise the weight of the tasks that score better alone than together,
until the dev score improves.

=========  ========================================
weighter   class
=========  ========================================
alpha-vil  aang_plugin_alphavil.alpha_vil:AlphaVil
diw        aang_plugin_alphavil.diw:Diw
=========  ========================================

Nothing is imported here, so that listing plug-ins stays light.
"""
