"""Cards of models, and models on the Hugging Face hub.

========  ======================================================================================
module    what it holds
========  ======================================================================================
hooks     the command, the check before a training, the card and the push after it
command   ``aang push``
account   who pushes: the token, the names that it may write to, whether one is taken
card      the model card, ``README.md`` of every model folder
origins   what the card says about the encoder, data set, licence and languages
files     what is pushed: the model's files without paths of this machine, and the card
pushing   one commit, or nothing
errors    what went wrong, in one line
========  ======================================================================================

Nothing is imported here, so that listing plug-ins does not load the hub's client.
"""
