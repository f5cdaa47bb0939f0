"""Models of runs on the Hugging Face hub.

========  ======================================================================================
module    what it holds
========  ======================================================================================
hooks     the command, the check before a training and the push after it
command   ``aang push``
account   who pushes: the token, the names that it may write to, whether one is taken
files     what is pushed: the model's files without paths of this machine, and the card
origins   the licence and languages of the encoder, from its own card
pushing   one commit, or nothing
errors    what went wrong, in one line
========  ======================================================================================

Nothing is imported here, so that listing plug-ins does not load the hub's client.
"""
