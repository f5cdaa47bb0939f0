"""The command ``aang best``, which finds the best way to a classifier by outcome.

Every labelled row is predicted once by a model that has not seen it. The candidates race fold by
fold; the best one is trained again on all rows. From Python: ``from aang import best, AangBest``.
"""
