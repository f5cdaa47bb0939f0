"""Weights learned by trying: train for a while, look at the dev score, remember what was trained.

A gradient's cosine says where one small step would lead. A bandit takes many steps and looks. It
needs no dev gradient, so its steps cost what those of fixed weights cost; a look at the dev rows
after every k of them is all that is added. Which objectives to try next is drawn by Thompson
sampling: one draw from what is believed of each, and the best of the draws is trained. What is
little known is drawn high now and then and gets its try; what has failed often does not.

================  ====================================================
weighter          class
================  ====================================================
autosem           aang_plugin_bandit.autosem:AutoSem
factored-bandit   aang_plugin_bandit.factored_bandit:FactoredBandit
================  ====================================================

Nothing is imported here, so that listing plug-ins stays light.
"""
