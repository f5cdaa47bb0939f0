"""Weights learned from what short trainings of several branches do to the dev set.

ForkMerge (Jiang et al., "ForkMerge: Mitigating Negative Transfer in Auxiliary-Task Learning",
NeurIPS 2023) trains branches with different task weights from the same point and merges them by dev
score. TapWeight (Zhang et al., "TapWeight: Reweighting Pretraining Objectives for Task-Adaptive
Pretraining", TMLR 2025; arXiv 2024) weighs pre-training objectives by the dev loss that fine-tuning
after them reaches.

=========  ========================================
weighter   class
=========  ========================================
forkmerge  aang_plugin_fork.forkmerge:ForkMerge
tapweight  aang_plugin_fork.tapweight:TapWeight
=========  ========================================

Nothing is imported here, so that listing plug-ins stays light.
"""
