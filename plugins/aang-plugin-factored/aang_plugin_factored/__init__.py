"""Weights that objectives share through the primitives they are made of.

AANG (Dery et al., "AANG: Automating Auxiliary Learning", ICLR 2023), section 5 and Algorithm 1.
Among dozens of objectives, each is sampled too rarely to learn a weight of its own. But it shares
primitives with objectives that were sampled. Factors per primitive let it learn from those, and
show which primitives matter in each stage.

=========  ======================================
weighter   class
=========  ======================================
factored   aang_plugin_factored.factored:Factored
=========  ======================================

Nothing is imported here, so that listing plug-ins stays light.
"""
