"""Steps along combinations of the tasks' gradients that avoid conflicts between them.

PCGrad (Yu et al., "Gradient Surgery for Multi-Task Learning", NeurIPS 2020) takes out of each
gradient what points against another task's. CAGrad (Liu et al., "Conflict-Averse Gradient Descent
for Multi-task Learning", NeurIPS 2021) looks near the mean gradient for the direction in which the
task that gains least gains most.

=========  ===================================
weighter   class
=========  ===================================
pcgrad     aang_plugin_surgery.pcgrad:PCGrad
cagrad     aang_plugin_surgery.cagrad:CAGrad
=========  ===================================

Nothing is imported here, so that listing plug-ins stays light.
"""
