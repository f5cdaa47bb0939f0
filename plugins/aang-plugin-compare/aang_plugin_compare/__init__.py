"""Comparisons of methods × tasks × seeds: planning, training in separate processes, testing.

The command is ``aang_plugin_compare.command:compare``. Nothing is imported here, so that listing
plug-ins stays light.

Public, for commands of other plug-ins that train many runs:

- ``launcher``: ``launcher_options`` adds options to a command, ``chosen_launcher`` returns the
  launcher that they ask for, processes of this machine or a Ray cluster; it trains an ``Order``;
- ``runner``: ``Runs`` writes orders, ``Runner`` trains a sequence of ``cells.Job``; ``resumable``
  says how to go on after an interrupt;
- ``run_folders``: ``make_root`` makes the folder for such runs, ``run_state`` says how far a run in
  it has come, ``remove_checkpoints`` removes those of a run that will not be resumed;
- ``settings``: ``read_yaml`` and ``validated`` read a file of options, ``layered`` lays options
  over options, ``with_setting`` puts values of a grid or a search into them;
- ``tables``: ``plain_table`` and ``score_text`` make tables.
"""
