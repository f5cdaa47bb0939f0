"""Weights that objectives share through the primitives they are made of.

AANG (Dery et al., "AANG: Automating Auxiliary Learning", ICLR 2023), section 5 and Algorithm 1.
Among dozens of objectives, each is sampled too rarely to learn a weight of its own. But an
objective that was not sampled shares primitives with those that were; factors per primitive let it
learn from them, and show which choices matter, stage by stage.

=========  ======================================
weighter   class
=========  ======================================
factored   aang_plugin_factored.factored:Factored
=========  ======================================

Nothing is imported here, so that listing plug-ins stays light.
"""
