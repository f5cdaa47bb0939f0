"""One training shared by the processes that ``torchrun`` or ``accelerate launch`` has started.

``processes`` has what they exchange, ``engine`` the gradient engine that shares a step between
them. Nothing is imported here, so that listing plug-ins stays light.
"""
