"""Weights learned by trial: train for a while, measure the dev score, remember what was trained.

A gradient's cosine predicts the effect of one small step. A bandit takes many steps and measures
the effect. It needs no dev gradient, so its steps cost as much as those of fixed weights; scoring
the dev rows after every k of them is the only overhead. The objectives to try next are chosen by
Thompson sampling: draw once from the distribution over the value of each, and train the one with
the highest draw. The draws of little-known objectives are sometimes high, so that they get tried;
those of objectives that have often failed are not.

================  ====================================================
weighter          class
================  ====================================================
autosem           aang_plugin_bandit.autosem:AutoSem
factored-bandit   aang_plugin_bandit.factored_bandit:FactoredBandit
================  ====================================================

Nothing is imported here, so that listing plug-ins stays light.
"""
