"""Scalars of a training for TensorBoard, Weights & Biases and other trackers.

Nothing is imported here, so that listing plug-ins does not load accelerate.
"""
